//! What the metrics say about the store and about features.

use std::{path::PathBuf, sync::Arc, time::Duration};

use concord_controllers::Controllers;
use concord_meta::GroupResource;
use concord_registry::{Observer, QueueEvent, Resources, RuleWork};
use concord_replica::Replica;
use concord_server::Metrics;
use concord_store::KeyRange;
use tokio_util::sync::CancellationToken;

use crate::{emulation::Emulation, engine::Engine};

/// Tells how long the store takes, and what controllers have to do.
pub(crate) struct StoreLatency(pub(crate) Arc<Metrics>);

impl Observer for StoreLatency {
    fn answered(&self, operation: &'static str, resource: &GroupResource, took: Duration) {
        self.0.storage_latency(operation, resource).observe(took);
    }

    fn queue(&self, queue: &'static str, event: QueueEvent) {
        let queues = self.0.queues();
        match event {
            QueueEvent::Added(count) => queues.added(queue, count),
            QueueEvent::Depth(depth) => queues.set_depth(queue, depth),
            QueueEvent::Begun(waited) => queues.begun(queue, waited),
            QueueEvent::Done { took, again } => queues.done(queue, took, again),
        }
    }
}

/// Tells how long the rules of custom resources take.
pub(crate) fn tell_of_rules(metrics: &Arc<Metrics>) {
    let metrics = metrics.clone();
    concord_registry::observe_rules(move |work, took| match work {
        RuleWork::Compilation => metrics.cel().compiled(took),
        RuleWork::Evaluation => metrics.cel().evaluated(took),
    });
}

/// Says which features there are, and, at each scrape, how much is stored.
pub(super) fn tell(
    metrics: &Metrics,
    emulation: &Emulation,
    engine: &Engine,
    resources: Arc<dyn Resources>,
    replica: Arc<Replica>,
) {
    for (name, stage, enabled) in emulation.features.stages(emulation.release) {
        metrics.set_feature_enabled(name, stage, enabled);
    }
    let file = engine.file().map(PathBuf::from);
    metrics.before_scrape(move |metrics| {
        count(metrics, &*resources, &replica);
        if let Some(size) = file.as_ref().and_then(|file| std::fs::metadata(file).ok()) {
            metrics.set_storage_size(i64::try_from(size.len()).unwrap_or(i64::MAX));
        }
    });
}

/// How often etcd is asked how large it is: as often as upstream does.
const SIZE_INTERVAL: Duration = Duration::from_secs(30);

/// Says from now on how large etcd is. Where there is a file, scrapes look at that.
pub(super) async fn follow_size(engine: &Engine, metrics: Arc<Metrics>, controllers: &Controllers) {
    let Some(etcd) = engine.etcd() else { return };
    let ask = async move {
        loop {
            match etcd.size().await {
                Ok(size) => metrics.set_storage_size(i64::try_from(size).unwrap_or(i64::MAX)),
                Err(error) => tracing::debug!(%error, "etcd does not say how large it is."),
            }
            tokio::time::sleep(SIZE_INTERVAL).await;
        }
    };
    let until_told = |cancel: CancellationToken| async move {
        cancel.run_until_cancelled(ask).await;
    };
    controllers.run_also(until_told).await;
}

/// How many objects of each resource there are. The versions of one share what is stored, and are counted once.
fn count(metrics: &Metrics, resources: &dyn Resources, replica: &Replica) {
    let Ok(snapshot) = replica.newest() else { return };
    let mut counted = std::collections::BTreeSet::new();
    for resource in resources.all() {
        let Some(storage) = resource.storage() else { continue };
        if counted.insert(storage.key_prefix(None)) {
            let stored = snapshot.scan(&KeyRange::prefix(storage.key_prefix(None))).count();
            metrics.set_objects(&storage.resource, i64::try_from(stored).unwrap_or(i64::MAX));
        }
    }
}
