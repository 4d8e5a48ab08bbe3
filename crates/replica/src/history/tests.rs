use std::sync::Weak;

use bytes::Bytes;
use concord_store::{Change, KeyValue};

use super::*;
use crate::{
    EventKind, Snapshot,
    kept::{LARGE_BYTES, LONGEST_WAY},
    live::Live,
    state::State,
};

const LONG: usize = 3 * LARGE_BYTES;

/// A state with everything it did.
struct World {
    state: State,
    packer: Packer,
    events: Vec<Event>,
}

impl World {
    fn new() -> Self {
        let state = State::loaded(Live::default(), 1);
        Self { state, packer: Packer::default(), events: Vec::new() }
    }

    fn change(&mut self, change: Change, seal: bool) {
        self.state.revision += 1;
        let event = self.state.apply(self.state.revision, change).expect("something changes");
        self.state.history.push(&event, &mut self.packer);
        self.state.history.end_revision(seal);
        self.events.push(event);
    }

    /// Gives a key a value and returns what stays if nobody else has it.
    fn put(&mut self, key: &str, value: Vec<u8>) -> Weak<KeyValue> {
        let revision = self.state.revision + 1;
        let before = self.state.get(key.as_bytes()).map_or(revision, |entry| entry.create_revision);
        let key = Bytes::copy_from_slice(key.as_bytes());
        let kv = KeyValue {
            key: key.clone(),
            value: value.into(),
            create_revision: before,
            mod_revision: revision,
        };
        // Chunks of two, so that what refers to the same value is in the same chunk, in others and in none.
        self.change(Change::Put(kv), revision.is_multiple_of(2));
        self.state.get(&key).map(Arc::downgrade).expect("it is there")
    }

    fn delete(&mut self, key: &'static str) {
        self.change(Change::Delete { key: key.into() }, false);
    }

    fn history(&self) -> &History {
        &self.state.history
    }

    fn replayed(&self, after: Revision) -> Vec<Event> {
        let chunks = self.history().after(after);
        let events = chunks.iter().flat_map(|chunk| &chunk.events).filter(|event| event.revision > after);
        events.map(Record::event).collect()
    }
}

fn text(n: u8) -> Vec<u8> {
    vec![n; LONG]
}

fn noise(seed: u64) -> Vec<u8> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(seed), next).map(|state| (state >> 56) as u8).take(LONG).collect()
}

#[test]
fn a_large_value_is_let_go_of_once_it_is_superseded() {
    let mut world = World::new();
    let first = world.put("a", text(1));
    let second = world.put("a", text(2));
    world.events.clear();
    assert!(first.upgrade().is_none() && second.upgrade().is_some());
    world.delete("a");
    world.events.clear();
    assert!(second.upgrade().is_none());
    let third = world.put("a", text(3));
    let held = third.upgrade();
    world.put("a", text(4));
    world.events.clear();
    let past = |revision| Snapshot::new(world.state.clone()).at(revision).expect("in the window");
    let same = past(5).get(b"a").zip(held.as_ref()).map(|(read, held)| Arc::ptr_eq(read, held));
    assert_eq!(same, Some(true), "what somebody holds is not unpacked");
    drop(held);
    assert!(third.upgrade().is_none());
    let value =
        |revision| past(revision).get(b"a").map(|entry| (entry.value.to_vec(), entry.create_revision));
    let values: Vec<_> = (1..=6).map(value).collect();
    let expected =
        [None, Some((text(1), 2)), Some((text(2), 2)), None, Some((text(3), 5)), Some((text(4), 5))];
    assert_eq!(values, expected);
}

#[test]
fn what_is_unpacked_is_let_go_of_with_the_snapshot() {
    let mut world = World::new();
    world.put("a", text(1));
    world.put("a", text(2));
    world.events.clear();
    let past = Snapshot::new(world.state.clone()).at(2).expect("in the window");
    let lent = Arc::downgrade(past.get(b"a").expect("it was there"));
    let again = past.scan(&KeyRange::all()).next().map(Arc::downgrade).expect("it was there");
    assert!(lent.upgrade().is_some() && lent.ptr_eq(&again), "unpacked once for all who have it");
    drop(past);
    assert!(lent.upgrade().is_none());
}

#[test]
fn nothing_is_unpacked_to_be_counted() {
    let mut world = World::new();
    for key in ["a", "b", "c"] {
        world.put(key, text(1));
        world.put(key, text(2));
        world.events.clear();
    }
    let past = Snapshot::new(world.state.clone()).at(4).expect("in the window");
    assert_eq!((past.len(), past.is_empty()), (2, false));
    let page = past.page(&KeyRange::all(), std::num::NonZeroUsize::MIN);
    assert_eq!(page.resume.as_deref(), Some(&b"b"[..]));
    let first = |revision| world.history().first_after(b"b", revision).and_then(Record::previous);
    assert!(first(4).is_some_and(|kept| kept.bytes() < LONG / 10 && !kept.is_whole()));
}

#[test]
fn small_values_and_noise_are_kept_as_they_are() {
    let mut world = World::new();
    let small = world.put("a", vec![0; LARGE_BYTES - 1]);
    world.put("a", noise(1));
    let noisy = world.put("a", noise(2));
    world.put("a", text(0));
    world.events.clear();
    assert!(small.upgrade().is_some() && noisy.upgrade().is_some());
    let kept =
        |revision| world.history().first_after(b"a", revision).and_then(Record::previous).map(Kept::bytes);
    assert_eq!([kept(2), kept(3), kept(4)], [Some(LARGE_BYTES), Some(LONG + 1), Some(LONG + 1)]);
    world.put("a", text(1));
    let kept = world.history().first_after(b"a", 5).and_then(Record::previous).map(Kept::bytes);
    assert!(kept.is_some_and(|bytes| bytes < LONG / 10));
}

#[test]
fn what_was_there_before_the_history_is_packed_too() {
    let mut live = Live::default();
    let loaded =
        Arc::new(KeyValue { key: "a".into(), value: text(1).into(), create_revision: 1, mod_revision: 1 });
    live.put(Arc::clone(&loaded));
    let mut world = World { state: State::loaded(live, 1), ..World::new() };
    world.put("a", text(2));
    let expected = std::mem::take(&mut world.events);
    drop(expected);
    let weak = Arc::downgrade(&loaded);
    drop(loaded);
    assert!(weak.upgrade().is_none());
    let past = Snapshot::new(world.state.clone()).at(1).expect("in the window");
    assert_eq!(past.get(b"a").map(|entry| entry.value.to_vec()), Some(text(1)));
}

#[test]
fn events_are_replayed_as_they_were() {
    let mut world = World::new();
    // Created, changed in every way, deleted and created anew; a replay that begins in between sees
    // what is superseded later.
    world.put("a", text(1));
    world.put("b", text(1));
    world.put("a", noise(1));
    world.put("a", text(2));
    let early = (world.history().after(1), world.events.len());
    world.put("a", b"small".to_vec());
    world.put("a", text(3));
    world.delete("a");
    world.delete("b");
    world.put("a", text(4));
    world.put("a", text(5));
    for after in 1..=world.state.revision {
        let expected: Vec<Event> =
            world.events.iter().filter(|event| event.revision > after).cloned().collect();
        assert_eq!(world.replayed(after), expected, "after {after}");
    }
    let whole = |event: &Event| matches!(&event.kind, EventKind::Created(entry) if entry.value.len() == LONG);
    assert_eq!(world.replayed(1).iter().filter(|event| whole(event)).count(), 3);
    // With nobody else who has the values, all of them are unpacked.
    let expected = world.events.clone();
    let copies: Vec<Vec<u8>> =
        expected.iter().filter_map(|event| event.current()).map(|entry| entry.value.to_vec()).collect();
    drop((expected, std::mem::take(&mut world.events)));
    let replayed = world.replayed(1);
    let values = replayed.iter().filter_map(|event| event.current()).map(|entry| entry.value.to_vec());
    assert_eq!(values.collect::<Vec<_>>(), copies);
    let (chunks, count) = early;
    let events: Vec<Event> = chunks.iter().flat_map(|chunk| &chunk.events).map(Record::event).collect();
    assert_eq!(events, replayed[..count], "a replay that was begun before");
}

#[test]
fn what_differs_is_all_that_is_kept_of_a_value_that_is_changed_again_and_again() {
    let mut world = World::new();
    // More than what is found again in one part, with a change at the start that moves everything.
    let value = |n: u8| [&vec![b'x'; usize::from(n)], &noise(1)[..], &noise(2), &[n]].concat();
    let versions = 3 * LONGEST_WAY as u8;
    (0..versions).for_each(|n| drop(world.put("a", value(n))));
    world.events.clear();
    let kept = |n: u8| {
        let event = world.history().first_after(b"a", 2 + u64::from(n));
        event.and_then(Record::previous).map(Kept::bytes).expect("superseded")
    };
    // What is packed by itself is noise, and stays whole.
    let large = (0..versions - 1).filter(|n| kept(*n) > LONG / 10).count();
    assert_eq!(large, usize::from(versions - 1) / (LONGEST_WAY + 1));
    for n in (0..versions).rev() {
        let past = Snapshot::new(world.state.clone()).at(2 + u64::from(n)).expect("in the window");
        let read = past.get(b"a").map(|entry| (entry.value.to_vec(), entry.mod_revision));
        assert_eq!(read, Some((value(n), 2 + u64::from(n))));
    }
}
