//! Candidates on one log, in one process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use concord_apis::{Settings as Apis, api_set};
use concord_election::{Candidate, Leadership, Settings};
use concord_meta::GroupVersion;
use concord_registry::{Item, ObjectName, Registry, Resource, Resources as _};
use concord_replica::Replica;
use concord_store::{CommitStream, Committed, Error, Revision, Scan, ScanPage, Store, Txn};
use concord_store_embedded::{EmbeddedStore, Options};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(60);

struct Cluster {
    store: Arc<EmbeddedStore>,
    _directory: TempDir,
}

struct Server {
    leadership: Leadership,
    registry: Arc<Registry>,
    leases: Arc<Resource>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Cluster {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db"))).expect("a store");
        Self { store: Arc::new(store), _directory: directory }
    }

    async fn server(&self, identity: &str) -> Server {
        server_on(self.store.clone(), identity).await
    }
}

async fn server_on(store: Arc<dyn Store>, identity: &str) -> Server {
    let replica = Replica::start(store.clone(), concord_replica::Config::default(), Vec::new());
    replica.consistent(SOON).await.expect("loads");
    let registry = Arc::new(Registry::new(store, Arc::new(replica), Vec::new()));
    let apis = api_set(&Apis::default());
    let leases = apis.find(&GroupVersion::new("coordination.k8s.io", "v1"), "leases").expect("served");
    let settings = Settings {
        lease_duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_millis(200),
        identity: identity.to_owned(),
        ..Settings::new("controllers", identity)
    };
    let candidate = Candidate::new(settings, registry.clone(), &apis).expect("served");
    let (leadership, cancel) = (candidate.leadership(), CancellationToken::new());
    let task = tokio::spawn(candidate.run(cancel.clone()));
    Server { leadership, registry, leases, cancel, task }
}

impl Server {
    fn lease(&self) -> Option<Value> {
        let name = ObjectName { namespace: "kube-system", name: "controllers" };
        let key = self.leases.storage().expect("stored").key(name);
        let newest = self.registry.replica().newest().expect("a state");
        let lease = newest.get(&key).map(Item::from)?;
        Some(Value::Object(self.leases.object(&lease).expect("readable")))
    }

    fn holder(&self) -> String {
        self.lease()
            .and_then(|lease| Some(lease["spec"]["holderIdentity"].as_str()?.to_owned()))
            .unwrap_or_default()
    }

    async fn until_leader(&self) {
        until(|| self.leadership.is_leader()).await;
    }
}

async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, wait).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_leads_and_the_next_takes_over_at_once_when_it_leaves() {
    let cluster = Cluster::new();
    let one = cluster.server("one").await;
    one.until_leader().await;
    let other = cluster.server("other").await;
    let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for server in [&one, &other] {
        let (leadership, working, most) = (server.leadership.clone(), working.clone(), most.clone());
        tokio::spawn(async move {
            let work = |end: CancellationToken| {
                let (working, most) = (working.clone(), most.clone());
                async move {
                    most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    end.cancelled().await;
                    working.fetch_sub(1, Ordering::SeqCst);
                }
            };
            leadership.lead(&CancellationToken::new(), work).await;
        });
    }
    until(|| working.load(Ordering::SeqCst) == 1).await;
    assert!(!other.leadership.is_leader());
    assert_eq!(one.holder(), "one");

    one.cancel.cancel();
    timeout(SOON, one.task).await.expect("in time").expect("no panic");
    other.until_leader().await;
    until(|| other.holder() == "other" && working.load(Ordering::SeqCst) == 1).await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "never two at once");
    let lease = other.lease().expect("a lease");
    // Given back is no transition; taken is one.
    assert_eq!(
        (&lease["spec"]["leaseTransitions"], &lease["spec"]["leaseDurationSeconds"]),
        (&1.into(), &3.into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_vanishes_is_waited_for_as_long_as_its_lease_says() {
    let cluster = Cluster::new();
    let one = cluster.server("one").await;
    one.until_leader().await;
    one.task.abort();
    let vanished = Instant::now();
    let other = cluster.server("other").await;
    other.until_leader().await;
    // It renewed last at most a renewal's pause before it vanished, and the other one may have seen that late, never early.
    assert!(vanished.elapsed() >= Duration::from_millis(2500), "{:?}", vanished.elapsed());
    assert_eq!(other.holder(), "other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_somebody_deletes_or_takes_ends_the_term() {
    let cluster = Cluster::new();
    let one = cluster.server("one").await;
    one.until_leader().await;
    let (terms, leadership) = (Arc::new(AtomicUsize::new(0)), one.leadership.clone());
    let counted = terms.clone();
    tokio::spawn(async move {
        let count = |end: CancellationToken| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { end.cancelled().await }
        };
        leadership.lead(&CancellationToken::new(), count).await;
    });
    until(|| terms.load(Ordering::SeqCst) == 1).await;
    let name = ObjectName { namespace: "kube-system", name: "controllers" };
    let key = one.leases.storage().expect("stored").key(name);
    cluster.store.transact(Txn::new().delete(key)).await.expect("deleted");
    until(|| terms.load(Ordering::SeqCst) == 2).await;
    one.until_leader().await;
    assert_eq!(one.holder(), "one");
}

/// A store that can be held up.
struct Stuck {
    inner: Arc<EmbeddedStore>,
    is_stuck: AtomicBool,
}

#[async_trait::async_trait]
impl Store for Stuck {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        if self.is_stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.inner.transact(txn).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.inner.scan(scan).await
    }

    fn follow(&self, after: Revision) -> CommitStream {
        self.inner.follow(after)
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.inner.current_revision().await
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.inner.compact(revision).await
    }

    async fn health(&self) -> Result<(), Error> {
        self.inner.health().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_cannot_renew_stops_before_anybody_else_begins() {
    let cluster = Cluster::new();
    let stuck = Arc::new(Stuck { inner: cluster.store.clone(), is_stuck: AtomicBool::new(false) });
    let one = server_on(stuck.clone(), "one").await;
    one.until_leader().await;
    let other = cluster.server("other").await;
    stuck.is_stuck.store(true, Ordering::SeqCst);
    until(|| !one.leadership.is_leader() || other.leadership.is_leader()).await;
    assert!(!one.leadership.is_leader() && !other.leadership.is_leader(), "never two at once");
    other.until_leader().await;
    assert!(!one.leadership.is_leader());
}
