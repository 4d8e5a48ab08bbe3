//! The calls that are replaced. Each has the signature of its libc namesake and keeps its contract.
//!
//! `open` and `openat` are variadic in C. A definition with a fixed third argument receives the same
//! registers on the Linux ABIs of `x86_64` and `aarch64`, and the mode is meaningless whenever it was
//! not passed.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{
    layout::Kind,
    path::Path,
    plan::{self, Verdict},
    sys::{self, IoVec, TimeSpec},
    trace,
};

/// Declares exported functions; `= body` is run with what the caller of libc vouched for.
macro_rules! replace {
    ($($name:ident ( $($arg:ident : $ty:ty),* ) -> $ret:ty = $body:expr;)*) => { $(
        // SAFETY: the name is libc's and the signature is libc's, so every caller fits.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the caller upholds what the libc function of this name requires.
            unsafe { $body }
        }
    )* };
}

replace! {
    open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int = opened(sys::open64(path, flags, mode), flags);
    open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int = opened(sys::open64(path, flags, mode), flags);
    openat(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int =
        opened(sys::openat64(dir, path, flags, mode), flags);
    openat64(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int =
        opened(sys::openat64(dir, path, flags, mode), flags);
    write(fd: c_int, buf: *const c_void, len: usize) -> isize =
        written(fd, buf, len, None, |len| sys::write(fd, buf, len));
    pwrite(fd: c_int, buf: *const c_void, len: usize, offset: i64) -> isize =
        written(fd, buf, len, Some(offset), |len| sys::pwrite64(fd, buf, len, offset));
    pwrite64(fd: c_int, buf: *const c_void, len: usize, offset: i64) -> isize =
        written(fd, buf, len, Some(offset), |len| sys::pwrite64(fd, buf, len, offset));
    writev(fd: c_int, vector: *const IoVec, count: c_int) -> isize = match first(fd, vector, count) {
        Some(piece) => write(fd, piece.base, piece.len),
        None => sys::writev(fd, vector, count),
    };
    pwritev(fd: c_int, vector: *const IoVec, count: c_int, offset: i64) -> isize =
        pwritev64(fd, vector, count, offset);
    pwritev64(fd: c_int, vector: *const IoVec, count: c_int, offset: i64) -> isize = match first(fd, vector, count) {
        Some(piece) => pwrite64(fd, piece.base, piece.len, offset),
        None => sys::pwritev64(fd, vector, count, offset),
    };
    ftruncate(fd: c_int, len: i64) -> c_int = truncated(fd, len);
    ftruncate64(fd: c_int, len: i64) -> c_int = truncated(fd, len);
    fallocate(fd: c_int, mode: c_int, offset: i64, len: i64) -> c_int =
        if may_write(fd) { sys::fallocate64(fd, mode, offset, len) } else { -1 };
    fallocate64(fd: c_int, mode: c_int, offset: i64, len: i64) -> c_int = fallocate(fd, mode, offset, len);
    fsync(fd: c_int) -> c_int = synced(fd, || sys::fsync(fd));
    fdatasync(fd: c_int) -> c_int = synced(fd, || sys::fdatasync(fd));
    clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int = told(clock, time, sys::clock_gettime(clock, time));
    unlink(path: *const c_char) -> c_int =
        renamed(sys::AT_FDCWD, path, std::ptr::null(), || sys::unlink(path));
    unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int =
        renamed(dir, path, std::ptr::null(), || sys::unlinkat(dir, path, flags));
    rename(from: *const c_char, to: *const c_char) -> c_int =
        renamed(sys::AT_FDCWD, from, to, || sys::rename(from, to));
}

/// # Safety
///
/// If the call went well, `time` is what it filled.
unsafe fn told(clock: c_int, time: *mut TimeSpec, result: c_int) -> c_int {
    if result == 0 && sys::WALL_CLOCKS.contains(&clock) {
        // SAFETY: the caller says so.
        let time = unsafe { &mut *time };
        time.seconds = time.seconds.saturating_add(plan::clock_offset());
    }
    result
}

fn opened(fd: c_int, flags: c_int) -> c_int {
    if fd >= 0
        && flags & (sys::O_CREAT | sys::O_TRUNC) != 0
        && let Some(path) = Path::of_fd(fd)
    {
        if flags & sys::O_CREAT != 0 {
            trace::event(Kind::Create, &path, 0);
        }
        if flags & sys::O_TRUNC != 0 {
            trace::event(Kind::Truncate, &path, 0);
        }
    }
    fd
}

/// # Safety
///
/// `buf` holds `len` readable bytes.
unsafe fn written(
    fd: c_int,
    buf: *const c_void,
    len: usize,
    offset: Option<i64>,
    real: impl FnOnce(usize) -> isize,
) -> isize {
    let Some(path) = Path::of_fd(fd) else { return real(len) };
    let allowed = match plan::write() {
        Verdict::Pass => len,
        Verdict::Short => (len / 2).max(1).min(len),
        Verdict::Fail(errno) => {
            sys::set_errno(errno);
            return -1;
        }
    };
    let done = real(allowed);
    if let Ok(done) = usize::try_from(done) {
        // A plain write moves the position, also one that appends: it began so many bytes before.
        let start = offset.unwrap_or_else(|| sys::position(fd) - i64::try_from(done).unwrap_or(0));
        // SAFETY: the caller vouches for more bytes than were written.
        unsafe { trace::record(Kind::Write, &path, u64::try_from(start).unwrap_or(0), buf, done) };
    }
    done
}

/// The first piece with bytes in it, if the file is watched: writing no more than that is a short
/// write, which callers of vectored writes handle anyway.
///
/// # Safety
///
/// `vector` holds `count` pieces.
unsafe fn first<'a>(fd: c_int, vector: *const IoVec, count: c_int) -> Option<&'a IoVec> {
    Path::of_fd(fd)?;
    // SAFETY: the caller says that so many pieces are there, valid during the call.
    let pieces = unsafe { std::slice::from_raw_parts(vector, usize::try_from(count).ok()?) };
    pieces.iter().find(|piece| piece.len > 0)
}

/// Decides about a change of a file's length; false with errno set if it shall fail.
fn may_write(fd: c_int) -> bool {
    if Path::of_fd(fd).is_some()
        && let Verdict::Fail(errno) = plan::write()
    {
        sys::set_errno(errno);
        return false;
    }
    true
}

/// # Safety
///
/// None beyond that of libc.
unsafe fn truncated(fd: c_int, len: i64) -> c_int {
    if !may_write(fd) {
        return -1;
    }
    // SAFETY: any arguments are allowed.
    let result = unsafe { sys::ftruncate64(fd, len) };
    if result == 0
        && let Some(path) = Path::of_fd(fd)
    {
        trace::event(Kind::Truncate, &path, u64::try_from(len).unwrap_or(0));
    }
    result
}

fn synced(fd: c_int, real: impl FnOnce() -> c_int) -> c_int {
    let Some(path) = Path::of_fd(fd) else { return real() };
    let (number, verdict) = plan::sync();
    trace::event(Kind::SyncStart, &path, number);
    let result = match verdict {
        Verdict::Fail(errno) => {
            sys::set_errno(errno);
            -1
        }
        Verdict::Pass | Verdict::Short => real(),
    };
    trace::event(if result == 0 { Kind::SyncEnd } else { Kind::SyncFail }, &path, number);
    result
}

/// Removes (`to` is null) or renames.
///
/// # Safety
///
/// The paths are null or C strings.
unsafe fn renamed(dir: c_int, from: *const c_char, to: *const c_char, real: impl FnOnce() -> c_int) -> c_int {
    // Looked up before the call: a relative name needs its directory to be still there.
    // SAFETY: the caller vouches for both.
    let (old, new) = unsafe { (Path::of_name(dir, from), Path::of_name(dir, to)) };
    let result = real();
    if result == 0
        && let Some(old) = old
    {
        match new {
            None => trace::event(Kind::Unlink, &old, 0),
            Some(new) => {
                let new = new.as_bytes();
                // SAFETY: the payload is a slice.
                unsafe { trace::record(Kind::Rename, &old, 0, new.as_ptr().cast(), new.len()) };
            }
        }
    }
    result
}
