//! What holds after any sequence of commits, outages, compactions and rollbacks.

mod support;

use std::num::NonZeroUsize;

use bytes::Bytes;
use concord_replica::{Batch, Closed, Config, Error, Event, Replica, Scope, Subscription};
use concord_store::{KeyRange, KeyValue, Revision, Write};
use proptest::prelude::*;

use support::{MemoryStore, Model, caught_up, config, contents, started};

/// What can happen to a store.
#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<(Bytes, Option<Value>)>),
    CommitNothing,
    Outage(bool),
    /// Streams hold back everything after the present revision, or no longer do.
    Hold(bool),
    Compact,
    Rollback(u64),
    /// The test lets the replica see all of the above.
    CatchUp,
    Subscribe(Scope, u64),
}

/// What a key can be given. The history packs values that are large, if that makes them smaller.
#[derive(Debug, Clone, Copy)]
enum Value {
    Small(u8),
    Text(u8),
    Noise(u8),
}

impl Value {
    /// More than the history keeps as it is.
    const LARGE: usize = 9_000;

    fn bytes(self) -> Bytes {
        match self {
            Self::Small(byte) => vec![byte; 20].into(),
            Self::Text(byte) => vec![byte; Self::LARGE].into(),
            Self::Noise(seed) => {
                let next = |n: &u32| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
                let numbers = std::iter::successors(Some(u32::from(seed)), next);
                numbers.map(|number| (number >> 24) as u8).take(Self::LARGE).collect()
            }
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => any::<u8>().prop_map(Value::Small),
        2 => any::<u8>().prop_map(Value::Text),
        1 => any::<u8>().prop_map(Value::Noise),
    ]
}

/// Few keys, so that they meet often, and bytes at both ends of what a byte can be.
fn any_key() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(vec![0_u8, b'a', 0xff]), 1..4).prop_map(Bytes::from)
}

fn any_scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(vec![0_u8, b'a', 0xff]), 0..3).prop_map(Scope::prefix),
        any_key().prop_map(Scope::key),
    ]
}

fn any_commit() -> impl Strategy<Value = Step> {
    let change = (any_key(), prop::option::weighted(0.7, any_value()));
    prop::collection::vec(change, 1..5).prop_map(Step::Commit)
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any_commit(),
        1 => Just(Step::CommitNothing),
        2 => any::<bool>().prop_map(Step::Outage),
        2 => any::<bool>().prop_map(Step::Hold),
        1 => Just(Step::Compact),
        1 => (0_u64..4).prop_map(Step::Rollback),
        4 => Just(Step::CatchUp),
        2 => (any_scope(), 0_u64..6).prop_map(|(scope, back)| Step::Subscribe(scope, back)),
    ]
}

fn writes(changes: &[(Bytes, Option<Value>)]) -> Vec<Write> {
    let mut writes: Vec<Write> = Vec::new();
    for (key, value) in changes {
        if writes.iter().all(|write| write.key() != key) {
            writes.push(match value {
                Some(value) => Write::Put { key: key.clone(), value: value.bytes(), ttl: None },
                None => Write::Delete { key: key.clone() },
            });
        }
    }
    writes
}

/// A subscription with everything it delivered.
struct Follower {
    subscription: Subscription,
    after: Revision,
    delivered: Vec<Batch>,
    closed: Option<Closed>,
}

impl Follower {
    fn drain(&mut self) {
        while self.closed.is_none() {
            match self.subscription.try_next() {
                Ok(Some(batch)) => self.delivered.push(batch),
                Ok(None) => return,
                Err(reason) => self.closed = Some(reason),
            }
        }
    }

    /// Applies everything delivered to the state the subscription began with; each event must fit.
    fn replayed(&self, mut state: Model) -> Model {
        let mut last = self.after;
        for batch in &self.delivered {
            assert!(batch[0].revision > last, "revisions grow, each is delivered once");
            last = batch[0].revision;
            for event in batch.iter() {
                assert_eq!(event.revision, last, "a batch is of one revision");
                self.replay(&mut state, event);
            }
        }
        state
    }

    fn replay(&self, state: &mut Model, event: &Event) {
        let key = event.key().clone();
        assert!(self.subscription.scope().contains(&key), "{key:?} is not in the scope");
        let previous = match event.current() {
            Some(current) => {
                assert_eq!(current.mod_revision, event.revision);
                state.insert(key, KeyValue::clone(current))
            }
            None => state.remove(&key),
        };
        assert_eq!(previous.as_ref(), event.previous().map(|entry| &**entry), "the previous value");
    }
}

fn in_scope(model: Model, scope: &Scope) -> Model {
    model.into_iter().filter(|(key, _)| scope.contains(key)).collect()
}

/// A store, a replica of it and followers of that.
struct World {
    store: MemoryStore,
    replica: Replica,
    followers: Vec<Follower>,
}

impl World {
    async fn new(config: Config) -> Self {
        let store = MemoryStore::default();
        let replica = started(&store, config).await;
        Self { store, replica, followers: Vec::new() }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Commit(changes) => drop(self.store.commit(writes(&changes))),
            Step::CommitNothing => drop(self.store.commit_nothing()),
            Step::Outage(outage) => self.store.set_available(!outage),
            Step::Hold(hold) => self.store.show_up_to(hold.then(|| self.store.revision())),
            Step::Compact => self.store.compact_all(),
            Step::Rollback(back) => self.rollback(back).await,
            Step::CatchUp => self.catch_up().await,
            Step::Subscribe(scope, back) => self.subscribe(scope, back),
        }
        self.check_bookmarks();
    }

    /// Goes back a little, then lets the replica notice before revisions are used again: two
    /// histories with the same revisions cannot be told apart by anyone.
    async fn rollback(&mut self, back: u64) {
        self.catch_up().await;
        let revision = self.store.revision();
        if back == 0 || revision <= back {
            return;
        }
        for follower in &mut self.followers {
            follower.drain();
        }
        self.check();
        self.followers.clear();
        self.store.rollback(revision - back);
        while self.replica.newest().expect("loaded").revision() != revision - back {
            tokio::task::yield_now().await;
        }
    }

    async fn catch_up(&mut self) {
        self.store.set_available(true);
        self.store.show_up_to(None);
        caught_up(&self.store, &self.replica).await;
        self.check();
    }

    fn subscribe(&mut self, scope: Scope, back: u64) {
        let newest = self.replica.newest().expect("loaded");
        let after = newest.revision().saturating_sub(back).max(newest.oldest());
        let subscription = self.replica.subscribe(scope, after).expect("in the window");
        self.followers.push(Follower { subscription, after, delivered: Vec::new(), closed: None });
    }

    /// A bookmark never promises what was not delivered.
    fn check_bookmarks(&mut self) {
        for follower in &mut self.followers {
            let bookmark = follower.subscription.bookmark();
            let undelivered = follower.subscription.try_next();
            if let Ok(Some(batch)) = undelivered {
                assert!(bookmark < batch[0].revision, "{bookmark} ran ahead");
                follower.delivered.push(batch);
            }
        }
    }

    /// The replica equals a fresh read of the store at every revision of its window, and each
    /// subscription equals the difference of two of them.
    fn check(&mut self) {
        let newest = self.replica.newest().expect("loaded");
        assert_eq!(newest.revision(), self.store.revision());
        for revision in newest.oldest()..=newest.revision() {
            let past = newest.at(revision).expect("in the window");
            let expected = self.store.state_at(revision);
            assert_eq!(past.len(), expected.len());
            assert_eq!(contents(&past), expected, "at {revision}");
            for (key, kv) in &expected {
                assert_eq!(past.get(key).map(|entry| &**entry), Some(kv));
            }
            let gone = newest.scan(&KeyRange::all()).find(|entry| !expected.contains_key(&entry.key));
            assert!(gone.is_none_or(|entry| past.get(&entry.key).is_none()));
        }
        for follower in &mut self.followers {
            follower.drain();
            let scope = follower.subscription.scope().clone();
            let bookmark = follower.subscription.bookmark();
            if follower.closed.is_none() {
                assert_eq!(bookmark, newest.revision(), "nothing is pending");
            }
            // A closed one is complete as well, up to where it came.
            let before = in_scope(self.store.state_at(follower.after), &scope);
            assert_eq!(follower.replayed(before), in_scope(self.store.state_at(bookmark), &scope));
        }
        self.followers.retain(|follower| follower.closed.is_none());
    }
}

fn run(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_replica_equals_its_store_and_a_subscription_the_difference(
        steps in prop::collection::vec(any_step(), 1..60),
        run_length in 1_usize..5,
        // Small enough to evict, to have closed and open chunks at once, and to do neither.
        window_bytes in prop::sample::select(vec![3_000_usize, 40_000, 64 << 20]),
        load_page in 1_usize..4,
    ) {
        run(async {
            let load_page = NonZeroUsize::new(load_page).expect("not zero");
            let mut world = World::new(Config { window_bytes, load_page, ..config() }).await;
            world.store.set_run(run_length);
            for step in steps {
                world.step(step).await;
            }
            world.catch_up().await;
        });
    }

    #[test]
    fn pages_at_a_revision_never_skip_or_repeat(
        before in prop::collection::vec(any_commit(), 1..20),
        between in prop::collection::vec(any_commit(), 0..20),
        scope in any_scope(),
        limit in 1_usize..4,
    ) {
        run(async {
            let mut world = World::new(config()).await;
            for step in before {
                world.step(step).await;
            }
            world.catch_up().await;
            let revision = world.store.revision();
            let expected: Vec<KeyValue> = in_scope(world.store.state_at(revision), &scope).into_values().collect();
            let (mut paged, mut range, mut writes) = (Vec::new(), scope.range(), between.into_iter());
            loop {
                let snapshot = world.replica.at(revision).expect("in the window");
                let page = snapshot.page(&range, NonZeroUsize::new(limit).expect("not zero"));
                assert!(page.entries.len() <= limit);
                paged.extend(page.entries.iter().map(|entry| KeyValue::clone(entry)));
                let Some(resume) = page.resume else { break };
                range = range.starting_at(resume);
                if let Some(step) = writes.next() {
                    world.step(step).await;
                    world.catch_up().await;
                }
            }
            assert_eq!(paged, expected);
        });
    }

    #[test]
    fn a_lagging_subscriber_is_closed_and_the_others_are_not(
        buffer in 1_usize..8,
        commits in 1_u64..20,
        keeps_up in any::<bool>(),
    ) {
        run(async {
            let subscription_buffer = NonZeroUsize::new(buffer).expect("not zero");
            let mut world = World::new(Config { subscription_buffer, ..config() }).await;
            let scope = Scope::prefix("a");
            let (_, mut slow) = world.replica.snapshot_and_subscribe(scope.clone()).expect("loaded");
            let (_, mut elsewhere) = world.replica.snapshot_and_subscribe(Scope::prefix("b")).expect("loaded");
            world.subscribe(scope, 0);
            for _ in 0..commits {
                world.store.put("a", "1");
                world.catch_up().await;
                if keeps_up {
                    assert!(matches!(slow.try_next(), Ok(Some(_))));
                }
            }
            let lagged = !keeps_up && commits > buffer as u64;
            assert_eq!(slow.try_next().is_err(), lagged);
            if lagged {
                assert_eq!(slow.next().await, Err(Closed::Lagged));
                assert_eq!(slow.bookmark(), 1, "nothing was delivered");
            }
            assert_eq!(elsewhere.try_next(), Ok(None));
            assert_eq!(elsewhere.bookmark(), world.store.revision());
            assert_eq!(world.followers.len(), 1, "the one that kept up is still open");
        });
    }
}

#[test]
fn groups_go_with_their_last_subscriber() {
    run(async {
        let world = World::new(config()).await;
        let subscribe = |scope: Scope| world.replica.snapshot_and_subscribe(scope).expect("loaded").1;
        let (one, two) = (subscribe(Scope::prefix("a")), subscribe(Scope::prefix("a")));
        let three = subscribe(Scope::key("a"));
        assert_eq!(world.replica.status().scopes, 2);
        drop((one, three));
        assert_eq!(world.replica.status().scopes, 1);
        drop(two);
        assert_eq!(world.replica.status().scopes, 0);
    });
}

#[test]
fn a_subscription_cannot_begin_before_the_window() {
    run(async {
        let world = World::new(Config { window_bytes: 0, ..config() }).await;
        let last = world.store.put("a", "1");
        caught_up(&world.store, &world.replica).await;
        let early = world.replica.subscribe(Scope::prefix(""), last - 1);
        assert_eq!(early.err(), Some(Error::Expired { requested: last - 1, oldest: last }));
        assert!(world.replica.subscribe(Scope::prefix(""), last).is_ok());
    });
}
