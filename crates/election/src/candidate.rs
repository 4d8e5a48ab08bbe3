use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use concord_merge::apply::Time;
use concord_meta::{GroupVersion, Reason, Status};
use concord_registry::{
    Context, Item, Object, ObjectName, Part, Registry, Resource, Resources, UpdateRequest,
};
use concord_replica::{Closed, Entry, Error as ReplicaError, Scope, Subscription};
use concord_store::Revision;
use rand::RngExt as _;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Leadership,
    leadership::Term,
    record::{self, Record, Step},
};

/// Where the Leases are.
const NAMESPACE: &str = "kube-system";

/// How long giving back the Lease may take at the end.
const LEAVING: Duration = Duration::from_secs(5);

/// How servers take turns.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the Lease.
    pub name: String,
    /// Who this process is; nobody else may be called so, not even an earlier process of the same server.
    pub identity: String,
    /// How long others wait after the last sign of life of who leads. Default: 15 seconds, as upstream's.
    pub lease_duration: Duration,
    /// How long who leads goes on without being able to renew. Default: 10 seconds, as upstream's.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed, and how long to wait after a failure. Default: 2 seconds, as upstream's.
    pub retry_period: Duration,
}

impl Settings {
    /// Upstream's times, for a process of this server.
    pub fn new(name: impl Into<String>, server: &str) -> Self {
        Self {
            name: name.into(),
            identity: format!("{server}_{:032x}", rand::random::<u128>()),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// A server that wants to lead.
pub struct Candidate {
    settings: Settings,
    registry: Arc<Registry>,
    leases: Arc<Resource>,
    term: watch::Sender<Option<Term>>,
    /// When the renewal began that this candidate leads by.
    renewed: watch::Sender<Option<Instant>>,
}

/// The Lease, as it was last seen to change.
struct Seen {
    revision: Option<Revision>,
    since: Instant,
}

impl Candidate {
    /// Leases are written through `registry`. Does nothing before it is run. `None` if Leases are not served.
    pub fn new(settings: Settings, registry: Arc<Registry>, resources: &dyn Resources) -> Option<Self> {
        let leases = resources.find(&GroupVersion::new("coordination.k8s.io", "v1"), "leases")?;
        leases.storage()?;
        let (term, renewed) = (watch::Sender::new(None), watch::Sender::new(None));
        Some(Self { settings, registry, leases, term, renewed })
    }

    /// Whether this candidate leads.
    pub fn leadership(&self) -> Leadership {
        Leadership::new(self.term.subscribe())
    }

    /// Stands for election until it is cancelled, and then lets somebody else lead at once.
    pub async fn run(self, cancel: CancellationToken) {
        let standing = async {
            tokio::select! {
                () = self.follow() => {}
                () = self.expire() => {}
            }
        };
        cancel.run_until_cancelled(standing).await;
        let led = self.is_leader();
        self.resign();
        if led && tokio::time::timeout(LEAVING, self.give_back()).await.is_err() {
            tracing::warn!(
                lease = self.settings.name,
                "The lease could not be given back; it ends by itself."
            );
        }
    }

    /// Ends a term in which the Lease was not renewed in time, whatever else this candidate waits for: the store, or the
    /// replica.
    async fn expire(&self) {
        let mut renewals = self.renewed.subscribe();
        loop {
            let renewed = *renewals.borrow_and_update();
            let late = async {
                match renewed {
                    Some(renewed) => sleep_until(renewed + self.settings.renew_deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                renewed = renewals.changed() => if renewed.is_err() { return },
                () = late => {
                    tracing::warn!(
                        lease = self.settings.name,
                        "The lease could not be renewed; this server leads no more."
                    );
                    self.resign();
                }
            }
        }
    }

    async fn follow(&self) {
        loop {
            let scope = Scope::key(self.key());
            match self.registry.replica().snapshot_and_subscribe(scope) {
                Ok((_, changes)) => {
                    if matches!(self.stand(changes).await, Closed::Shutdown | Closed::Failed) {
                        return;
                    }
                }
                Err(ReplicaError::Shutdown | ReplicaError::Failed { .. }) => return,
                Err(_) => tokio::time::sleep(self.retry_pause()).await,
            }
        }
    }

    /// Stands for election for as long as changes of the Lease are told.
    async fn stand(&self, mut changes: Subscription) -> Closed {
        let mut seen = Seen { revision: None, since: Instant::now() };
        let mut due = Instant::now();
        loop {
            let Ok(newest) = self.registry.replica().newest() else { return Closed::Lagged };
            let entry = newest.get(&self.key()).cloned();
            let revision = entry.as_ref().map(|entry| entry.mod_revision);
            if seen.revision != revision {
                seen = Seen { revision, since: Instant::now() };
            }
            let record = entry.as_ref().map(|entry| self.read(entry));
            let step = record::step(&self.settings.identity, record.as_ref(), seen.since.elapsed());
            if self.is_leader() && !matches!(step, Step::Renew) {
                tracing::warn!(
                    lease = self.settings.name,
                    "Somebody else took the lease; this server leads no more."
                );
                self.resign();
            }
            let wake = match step {
                Step::Wait(time) => Instant::now() + time.max(Duration::from_millis(1)),
                _ if due > Instant::now() => due,
                _ => {
                    let begun = Instant::now();
                    if self.hold(entry.as_ref()).await {
                        self.lead(begun);
                    }
                    due = begun + self.retry_pause();
                    due
                }
            };
            tokio::select! {
                changed = changes.next() => if let Err(closed) = changed { return closed },
                () = sleep_until(wake) => {}
            }
            // A Lease that somebody gave back is taken at once.
            if !self.is_leader() {
                due = due.min(Instant::now() + self.settings.retry_period / 20);
            }
        }
    }

    /// Writes down that this candidate leads; whether that was possible.
    async fn hold(&self, entry: Option<&Entry>) -> bool {
        let deadline = Instant::now() + self.settings.renew_deadline / 2;
        match timeout_at(deadline, Box::pin(self.write(entry))).await {
            Ok(Ok(())) => true,
            // Somebody else was faster.
            Ok(Err(status)) if [Reason::CONFLICT, Reason::ALREADY_EXISTS].contains(&status.reason) => false,
            Ok(Err(status)) => {
                tracing::debug!(lease = self.settings.name, %status, "The lease could not be written.");
                false
            }
            Err(_) => {
                tracing::debug!(lease = self.settings.name, "The lease could not be written in time.");
                false
            }
        }
    }

    async fn write(&self, entry: Option<&Entry>) -> Result<(), Status> {
        let Settings { name, identity, lease_duration, .. } = &self.settings;
        let (now, context) = (micro_time(), self.context());
        let written = match entry {
            None => {
                let mut lease = record::new(name);
                record::hold(&mut lease, identity, *lease_duration, &now);
                self.registry.create(&context, &self.leases, NAMESPACE, lease).await?
            }
            Some(entry) => {
                // It says at which revision it was read, so that nobody else's change is overwritten.
                let mut lease = self.leases.object(&Item::from(entry))?;
                record::hold(&mut lease, identity, *lease_duration, &now);
                self.replace(&context, lease).await?
            }
        };
        // What is decided next must not be decided on what was there before.
        let seen =
            self.registry.replica().not_older_than(written.revision.unwrap_or_default(), LEAVING).await;
        seen.map(drop).map_err(Status::internal_error)
    }

    async fn replace(&self, context: &Context, lease: Object) -> Result<Item, Status> {
        let name = ObjectName { namespace: NAMESPACE, name: &self.settings.name };
        let request = UpdateRequest { name, part: Part::Main, object: lease };
        self.registry.update(context, &self.leases, request).await.map(|written| written.item)
    }

    async fn give_back(&self) {
        let Ok(newest) = self.registry.replica().newest() else { return };
        let Some(entry) = newest.get(&self.key()) else { return };
        let Ok(mut lease) = self.leases.object(&Item::from(entry)) else { return };
        if Record::read(&lease).holder != self.settings.identity {
            return;
        }
        record::give_back(&mut lease, &micro_time());
        if let Err(status) = Box::pin(self.replace(&self.context(), lease)).await {
            tracing::debug!(lease = self.settings.name, %status, "The lease could not be given back.");
        }
    }

    fn read(&self, entry: &Entry) -> Record {
        // What cannot be read is nobody's.
        self.leases.object(&Item::from(entry)).map(|lease| Record::read(&lease)).unwrap_or_default()
    }

    fn key(&self) -> Bytes {
        let name = ObjectName { namespace: NAMESPACE, name: &self.settings.name };
        self.leases.storage().map(|storage| storage.key(name)).unwrap_or_default()
    }

    fn context(&self) -> Context {
        Context::of_the_server(Time { unix: milliseconds() / 1000 })
    }

    fn is_leader(&self) -> bool {
        self.term.borrow().is_some()
    }

    fn lead(&self, renewed: Instant) {
        self.renewed.send_replace(Some(renewed));
        if !self.is_leader() {
            tracing::info!(
                lease = self.settings.name,
                identity = self.settings.identity,
                "This server leads."
            );
            self.term.send_replace(Some(Term::new()));
        }
    }

    fn resign(&self) {
        self.renewed.send_replace(None);
        if let Some(term) = self.term.send_replace(None) {
            term.end();
        }
    }

    /// Not all at the same moment.
    fn retry_pause(&self) -> Duration {
        self.settings.retry_period.mul_f64(rand::rng().random_range(1.0..=1.2))
    }
}

fn milliseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Now, as Kubernetes writes moments with microseconds.
fn micro_time() -> String {
    let time = jiff::Timestamp::from_millisecond(milliseconds()).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
