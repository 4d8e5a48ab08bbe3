//! What shall go wrong: the words of the control file, read anew at every call.

use std::{
    ffi::c_int,
    ptr::NonNull,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    layout::{self, WORDS, Word},
    sys,
};

static OWN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static SHARED: OnceLock<&'static [AtomicU64; WORDS]> = OnceLock::new();

/// What happens to a write or a sync.
pub(crate) enum Verdict {
    Pass,
    Fail(c_int),
    Short,
}

pub(crate) fn start() {
    for (name, word) in layout::ENV_WORDS {
        let value = sys::env(name).and_then(|value| value.to_str().ok()?.parse().ok());
        OWN[word as usize].store(value.unwrap_or(0), Ordering::Relaxed);
    }
    if let Some(path) = sys::env(layout::ENV_CONTROL)
        && let Some(address) = sys::map_shared(path, WORDS * size_of::<u64>())
    {
        // SAFETY: the mapping is page aligned, lives as long as the process, and the file is made with
        // the length of all words by this crate; words are only ever accessed atomically.
        SHARED.get_or_init(|| unsafe { NonNull::cast::<[AtomicU64; WORDS]>(address).as_ref() });
    }
}

/// Counts a write and decides about it.
pub(crate) fn write() -> Verdict {
    let number = count(Word::Writes);
    if strikes(number, Word::WriteOneIn, Word::WriteNth) {
        count(Word::WriteFaults);
        return Verdict::Fail(errno(Word::WriteErrno));
    }
    if one_in(number.rotate_left(32), get(Word::ShortOneIn)) {
        count(Word::WriteFaults);
        return Verdict::Short;
    }
    Verdict::Pass
}

/// Counts a sync, delays it, and decides about it. Returns its number, too.
pub(crate) fn sync() -> (u64, Verdict) {
    let number = count(Word::Syncs);
    let delay = get(Word::SyncDelayMicros);
    if delay > 0 {
        sys::sleep_micros(delay);
    }
    if strikes(number, Word::SyncOneIn, Word::SyncNth) {
        count(Word::SyncFaults);
        return (number, Verdict::Fail(errno(Word::SyncErrno)));
    }
    (number, Verdict::Pass)
}

/// Seconds to add to the wall clock.
pub(crate) fn clock_offset() -> i64 {
    get(Word::ClockOffsetSeconds).cast_signed()
}

fn strikes(number: u64, in_word: Word, nth_word: Word) -> bool {
    get(nth_word) == number || one_in(number, get(in_word))
}

fn one_in(number: u64, n: u64) -> bool {
    match n {
        0 => false,
        _ => mix(get(Word::Seed) ^ mix(number)).is_multiple_of(n),
    }
}

/// The finaliser of splitmix64: neighbouring numbers give unrelated results.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn errno(word: Word) -> c_int {
    c_int::try_from(get(word)).unwrap_or(c_int::MAX)
}

fn words() -> &'static [AtomicU64; WORDS] {
    SHARED.get().copied().unwrap_or(&OWN)
}

fn get(word: Word) -> u64 {
    words()[word as usize].load(Ordering::Relaxed)
}

/// Adds one and returns the new count.
fn count(word: Word) -> u64 {
    words()[word as usize].fetch_add(1, Ordering::Relaxed) + 1
}
