//! Whether a server is well.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use concord_meta::GroupVersion;
use concord_registry::{ObjectName, Resources as _};
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
    let (aggregator, repair) = (assembly.parts.aggregator.clone(), assembly.parts.repair.clone());
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
        }))
        .with_readiness(check_fn("poststarthook/start-service-ip-repair-controllers", move || {
            let done = repair.is_done().then_some(());
            std::future::ready(done.ok_or_else(|| Unhealthy("not finished".to_owned())))
        }));
    let checks = OBJECTS.iter().fold(checks, |checks, objects| checks.with(in_place(*objects, assembly)));
    assembly.at_rest.health(assembly.parts.health(checks.with(assembly.access.check())))
}

/// Objects that clients take for granted: group, plural, namespace and names.
type Objects = (&'static str, &'static str, &'static str, &'static str, &'static [&'static str]);

/// By the names of the hooks that make them upstream.
const OBJECTS: [Objects; 5] = [
    (
        "start-system-namespaces-controller",
        "",
        "namespaces",
        "",
        &["default", "kube-node-lease", "kube-public", "kube-system"],
    ),
    (
        "scheduling/bootstrap-system-priority-classes",
        "scheduling.k8s.io",
        "priorityclasses",
        "",
        &["system-cluster-critical", "system-node-critical"],
    ),
    (
        "priority-and-fairness-config-producer",
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        "",
        &["catch-all", "exempt"],
    ),
    ("bootstrap-controller", "", "services", "default", &["kubernetes"]),
    ("start-kubernetes-service-cidr-controller", "networking.k8s.io", "servicecidrs", "", &["kubernetes"]),
];

/// Whether objects are there, or were since the start: what a user removes later makes no server unhealthy. Those of a group
/// that is not served are not waited for.
fn in_place(
    (hook, group, plural, namespace, names): Objects,
    assembly: &Assembly,
) -> impl HealthCheck + use<> {
    let (apis, replica) = (assembly.parts.apis.clone(), assembly.replica.clone());
    let seen = AtomicBool::new(false);
    let are_there = move || {
        let resource = apis.find(&GroupVersion::new(group, "v1"), plural);
        let Some(storage) = resource.as_ref().and_then(|resource| resource.storage()) else { return true };
        let Ok(snapshot) = replica.newest() else { return false };
        names.iter().all(|name| snapshot.get(&storage.key(ObjectName { namespace, name })).is_some())
    };
    check_fn(format!("poststarthook/{hook}"), move || {
        if !seen.load(Ordering::Relaxed) && are_there() {
            seen.store(true, Ordering::Relaxed);
        }
        let done = seen.load(Ordering::Relaxed).then_some(());
        std::future::ready(done.ok_or_else(|| Unhealthy("not finished".to_owned())))
    })
}

fn replica_health(replica: &Replica) -> Result<(), Unhealthy> {
    let status = replica.status();
    if status.is_ready() {
        return Ok(());
    }
    let last_error = status.last_error.map(|error| format!(": {error}")).unwrap_or_default();
    Err(Unhealthy(format!("the replica is {:?}{last_error}", status.phase)))
}
