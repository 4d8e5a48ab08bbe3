//! Whether a server is well.

use std::{sync::Arc, time::Duration};

use concord_replica::Replica;
use concord_server::{Coalesced, HealthCheck, HealthChecks, Unhealthy, check_fn};
use concord_store::Store;

use crate::serve::assembly::Assembly;

/// Health endpoints are open to everyone: however often they are asked, the store is asked only this often.
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The checks by upstream's names, which monitoring looks for: `etcd` is the store, whichever it is.
pub(super) fn health_checks(
    log_check: impl HealthCheck,
    store: Arc<dyn Store>,
    assembly: &Assembly,
) -> HealthChecks {
    let (replica, customs) = (assembly.replica.clone(), assembly.parts.customs.clone());
    let aggregator = assembly.parts.aggregator.clone();
    let ask_store = check_fn("etcd", move || {
        let store = store.clone();
        async move { store.health().await.map_err(|error| Unhealthy(error.to_string())) }
    });
    let store_check = Arc::new(Coalesced::new(ask_store, STORE_CHECK_INTERVAL));
    let same_check = store_check.clone();
    let checks = HealthChecks::new()
        .with(log_check)
        .with(store_check)
        .with_readiness(check_fn("etcd-readiness", move || {
            let check = same_check.clone();
            async move { check.check().await }
        }))
        .with_readiness(check_fn("informer-sync", move || std::future::ready(replica_health(&replica))))
        .with_readiness(check_fn("poststarthook/crd-informer-synced", move || {
            let synced = customs.is_synced().then_some(());
            std::future::ready(synced.ok_or_else(|| Unhealthy("not finished".to_owned())))
        }))
        .with_readiness(check_fn("autoregister-completion", move || {
            let registered = aggregator.is_registered().then_some(());
            std::future::ready(registered.ok_or_else(|| Unhealthy("missing APIServices".to_owned())))
        }));
    assembly.at_rest.health(assembly.parts.health(checks.with(assembly.access.check())))
}

fn replica_health(replica: &Replica) -> Result<(), Unhealthy> {
    let status = replica.status();
    if status.is_ready() {
        return Ok(());
    }
    let last_error = status.last_error.map(|error| format!(": {error}")).unwrap_or_default();
    Err(Unhealthy(format!("the replica is {:?}{last_error}", status.phase)))
}
