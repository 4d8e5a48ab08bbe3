//! What a view is told, and when.

mod support;

use std::sync::Arc;

use bytes::Bytes;
use concord_replica::{Closed, Error, Event, Phase, Replica, Scope, Snapshot, View};
use concord_store::Revision;
use parking_lot::Mutex;

use support::{MemoryStore, PATIENCE, caught_up, config, put};

/// A revision and the keys it changed.
type Seen = (Revision, Vec<Bytes>);

/// Remembers what it was told.
#[derive(Clone, Default)]
struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
    resets: Arc<Mutex<Vec<Revision>>>,
    panic_at: Option<Revision>,
}

impl View for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        vec!["a/".into(), "a/b".into(), "a/".into()]
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        self.resets.lock().push(snapshot.revision());
    }

    fn apply(&mut self, revision: Revision, events: &[Event]) {
        assert_ne!(Some(revision), self.panic_at, "as the test wants");
        assert!(events.iter().all(|event| event.revision == revision));
        self.seen.lock().push((revision, events.iter().map(|event| event.key().clone()).collect()));
    }
}

#[tokio::test]
async fn a_view_sees_its_keys_once_and_before_anyone_sees_the_revision() {
    let store = MemoryStore::default();
    let recorder = Recorder::default();
    let replica = Replica::start(store.shared(), config(), vec![Box::new(recorder.clone())]);
    caught_up(&store, &replica).await;
    assert_eq!(*recorder.resets.lock(), [1]);
    store.commit(vec![put("a/b1", "1"), put("x", "1"), put("a/c", "1")]);
    store.put("x", "2");
    store.delete("a/b1");
    let snapshot = caught_up(&store, &replica).await;
    assert_eq!(snapshot.revision(), 4);
    let seen = recorder.seen.lock().clone();
    assert_eq!(seen, [(2, vec!["a/b1".into(), "a/c".into()]), (4, vec!["a/b1".into()])]);
    store.set_available(false);
    store.put("a/d", "1");
    store.compact_all();
    store.set_available(true);
    caught_up(&store, &replica).await;
    assert_eq!(*recorder.resets.lock(), [1, 5]);
}

#[tokio::test]
async fn a_view_that_panics_stops_the_replica_visibly() {
    let store = MemoryStore::default();
    let recorder = Recorder { panic_at: Some(3), ..Recorder::default() };
    let replica = Replica::start(store.shared(), config(), vec![Box::new(recorder)]);
    caught_up(&store, &replica).await;
    let (held, mut subscription) = replica.snapshot_and_subscribe(Scope::prefix("")).expect("loaded");
    store.put("a/1", "1");
    store.put("a/1", "2");
    let failed = replica.not_older_than(3, PATIENCE).await;
    assert!(
        matches!(&failed, Err(Error::Failed { reason }) if reason.contains("recorder") && reason.contains("as the test wants"))
    );
    assert!(matches!(replica.newest(), Err(Error::Failed { .. })));
    let status = replica.status();
    assert!(status.phase == Phase::Failed && !status.is_ready() && status.last_error.is_some());
    while subscription.next().await.is_ok() {}
    assert_eq!(subscription.next().await, Err(Closed::Failed));
    assert!(subscription.bookmark() < 3);
    assert!(held.is_empty(), "what is held stays good");
}
