//! Keeps track of the other servers.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use concord_server::{HealthChecks, Metrics, Unhealthy, check_fn};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    ask::{AskError, ask},
    routing::Routing,
    tracker::{Question, Told, Tracker},
    transport::Transport,
    view::PeerState,
};

/// How long changes of the log gather before they are looked at: many come in one go, and most are about nobody here.
const GATHER: Duration = Duration::from_millis(20);

/// The other servers of the fleet: who they are, where they are, what they serve.
pub struct Peers {
    own_id: String,
    state: PeerState,
    transport: Arc<dyn Transport>,
    metrics: Arc<Metrics>,
    routing: ArcSwap<Routing>,
    suspects: Mutex<BTreeSet<String>>,
    suspected: Notify,
}

type Asked = (Question, Result<Arc<Told>, AskError>);

impl Peers {
    /// The peers of the server `own_id`, as far as the log says. Nothing is known before it is run.
    pub fn new(
        own_id: &str,
        state: PeerState,
        transport: Arc<dyn Transport>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            own_id: own_id.to_owned(),
            state,
            transport,
            metrics,
            routing: ArcSwap::default(),
            suspects: Mutex::default(),
            suspected: Notify::new(),
        })
    }

    /// This server's ID.
    pub fn own_id(&self) -> &str {
        &self.own_id
    }

    /// What is known now.
    pub fn routing(&self) -> Arc<Routing> {
        self.routing.load_full()
    }

    pub(crate) fn state(&self) -> &PeerState {
        &self.state
    }

    pub(crate) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A server did not take a request: whether it is still there is found out soon.
    pub(crate) fn suspect(&self, id: &str) {
        self.suspects.lock().insert(id.to_owned());
        self.suspected.notify_one();
    }

    /// The checks by upstream's names: a server is ready only when it has heard of the others, or waited long enough.
    #[must_use]
    pub fn health(self: &Arc<Self>, checks: HealthChecks) -> HealthChecks {
        // What says where this server is waits until it is ready, so nobody waits for that.
        let announces =
            check_fn("poststarthook/peer-endpoint-reconciler-controller", || std::future::ready(Ok(())));
        let mut checks = checks.with_readiness(announces);
        for name in ["mixed-version-proxy-handler", "local-discovery-cache-sync", "peer-discovery-workers"] {
            let peers = self.clone();
            checks = checks.with_readiness(check_fn(format!("poststarthook/{name}"), move || {
                let is_synced = peers.routing.load().is_synced;
                std::future::ready(
                    is_synced.then_some(()).ok_or_else(|| Unhealthy("not finished".to_owned())),
                )
            }));
        }
        checks
    }

    /// Keeps track of the others until it is cancelled.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.track()).await;
    }

    async fn track(&self) {
        let begin = Instant::now();
        let mut tracker = Tracker::new(&self.own_id, Duration::ZERO);
        let mut asking: JoinSet<Asked> = JoinSet::new();
        let mut changes = self.state.changes();
        loop {
            changes.mark_unchanged();
            let (known, departed) = self.state.take();
            tracker.observe(&known, departed, begin.elapsed());
            for id in std::mem::take(&mut *self.suspects.lock()) {
                tracker.suspect(&id, begin.elapsed());
            }
            for question in tracker.due(begin.elapsed()) {
                let (transport, metrics) = (self.transport.clone(), self.metrics.clone());
                asking.spawn(async move {
                    let told = ask(&*transport, &metrics, &question).await;
                    (question, told)
                });
            }
            self.publish(tracker.routing(begin.elapsed()));
            let next = tracker.next(begin.elapsed()).unwrap_or(Duration::from_secs(3600));
            tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => sleep(GATHER).await,
                    Err(_) => return,
                },
                Some(asked) = asking.join_next() => self.asked(&mut tracker, asked, begin.elapsed()),
                () = self.suspected.notified() => {}
                address = self.transport.closed() => tracker.hung_up(address, begin.elapsed()),
                () = sleep_until(begin + next) => {}
            }
        }
    }

    fn asked(&self, tracker: &mut Tracker, asked: Result<Asked, tokio::task::JoinError>, now: Duration) {
        let Ok((question, told)) = asked else {
            tracing::error!("Asking a server ended in a panic.");
            return;
        };
        let told = told.inspect_err(|error| {
            self.metrics.peers().sync_error("fetch_discovery");
            self.transport.forget(question.address);
            tracing::warn!(id = question.id, address = %question.address, %error, "A server does not say what it serves; what it said last counts.");
        });
        tracker.answered(&question, told.ok(), now);
    }

    /// Has tests say what is known.
    #[cfg(test)]
    pub(crate) fn set_routing(&self, routing: Routing) {
        self.routing.store(Arc::new(routing));
    }

    #[cfg(test)]
    pub(crate) fn suspects(&self) -> Vec<String> {
        self.suspects.lock().iter().cloned().collect()
    }

    fn publish(&self, routing: Arc<Routing>) {
        let before = self.routing.load();
        if before.generation == routing.generation {
            return;
        }
        if routing.is_crowded && !before.is_crowded {
            tracing::warn!(
                tracked = routing.peers.len(),
                "There are more identity leases of servers that do not say where they are than servers can be: paths that nobody is known to serve are answered 503."
            );
        }
        for peer in &routing.peers {
            let same = before.peers.iter().find(|other| other.id == peer.id);
            if same
                .is_none_or(|same| (same.is_known, same.is_reachable) != (peer.is_known, peer.is_reachable))
            {
                tracing::info!(id = peer.id, address = ?peer.address, known = peer.is_known, reachable = peer.is_reachable, "A peer.");
            }
            if peer.address.is_none() && same.is_none_or(|same| same.address.is_some()) {
                self.metrics.peers().sync_error("hostport_resolution");
            }
        }
        for gone in before.peers.iter().filter(|old| routing.peers.iter().all(|new| new.id != old.id)) {
            tracing::info!(id = gone.id, "A peer is gone.");
        }
        let count = |is: fn(&crate::RoutedPeer) -> bool| routing.peers.iter().filter(|peer| is(peer)).count();
        self.metrics.peers().set_peers([
            ("fresh", count(|peer| peer.is_known && peer.is_reachable)),
            ("lkg", count(|peer| peer.document.is_some() && !(peer.is_known && peer.is_reachable))),
            ("unknown", count(|peer| peer.document.is_none())),
        ]);
        self.routing.store(routing);
    }
}
