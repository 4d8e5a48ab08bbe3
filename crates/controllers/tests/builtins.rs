//! The objects that every cluster has, as the built-in kinds take them.

mod support;

use std::{collections::BTreeMap, sync::Arc};

use concord_apis::{Settings, api_set};
use serde_json::{Value, json};

use crate::support::{Cluster, Server};

/// Every object there is, by its path.
async fn objects(server: &Server) -> BTreeMap<String, Value> {
    let snapshot = server.registry.replica().consistent(support::PATIENCE).await.expect("a state");
    let mut found = BTreeMap::new();
    for resource in server.resources.all() {
        let Some(storage) = resource.storage() else { continue };
        for entry in snapshot.scan(&concord_store::KeyRange::prefix(storage.prefix.clone())) {
            let object = resource.object(&entry.into()).expect("readable");
            let name = storage.object_name(&entry.key).expect("a name");
            let path = format!("{}/{}/{}", resource.names.plural, name.namespace, name.name);
            found.insert(path, Value::Object(object));
        }
    }
    found
}

/// The flow schemas, and the priority levels they put requests into.
fn flow_schemas() -> [(&'static str, &'static str); 11] {
    [
        ("exempt", "exempt"),
        ("probes", "exempt"),
        ("system-leader-election", "leader-election"),
        ("system-node-high", "node-high"),
        ("system-nodes", "system"),
        ("kube-controller-manager", "workload-high"),
        ("kube-scheduler", "workload-high"),
        ("kube-system-service-accounts", "workload-high"),
        ("service-accounts", "workload-low"),
        ("global-default", "global-default"),
        ("catch-all", "catch-all"),
    ]
}

/// What the fields of an object are owned by.
fn managers(object: &Value) -> Vec<&str> {
    let managed = object["metadata"]["managedFields"].as_array();
    managed.into_iter().flatten().filter_map(|entry| entry["manager"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_kinds_take_all_default_objects() {
    let cluster = Cluster::new();
    let server = cluster.server_of(Arc::new(api_set(&Settings::default()))).await;
    let controllers = server.start();
    assert!(controllers.essentials().await);
    let told =
        |object: Option<&Value>| object.is_some_and(|object| object["status"]["conditions"].is_array());
    for (name, _) in flow_schemas() {
        server.until(&format!("flowcontrol.apiserver.k8s.io/flowschemas//{name}"), told).await;
    }
    server.until("networking.k8s.io/servicecidrs//kubernetes", told).await;
    server.until("discovery.k8s.io/endpointslices/default/kubernetes", |slice| slice.is_some()).await;
    server.until("/services/default/kubernetes", |service| service.is_some()).await;
    let all = objects(&server).await;
    let count = |plural: &str| all.keys().filter(|path| path.starts_with(plural)).count();
    let counts =
        ["namespaces/", "priorityclasses/", "prioritylevelconfigurations/", "flowschemas/"].map(count);
    assert_eq!(counts, [4, 2, 8, 11]);
    let cidr = &all["servicecidrs//kubernetes"];
    assert_eq!(cidr["spec"]["cidrs"], json!(["10.0.0.0/28"]));
    assert_eq!(managers(cidr), ["kubernetes-service-cidr-controller", "kube-apiserver"]);
    for (name, level) in flow_schemas() {
        let schema = &all[&format!("flowschemas//{name}")];
        assert_eq!(schema["spec"]["priorityLevelConfiguration"]["name"], level);
        assert!(all.contains_key(&format!("prioritylevelconfigurations//{level}")));
    }
    let schema = &all["flowschemas//exempt"];
    assert_eq!(
        managers(schema),
        ["api-priority-and-fairness-config-consumer-v1", "api-priority-and-fairness-config-producer-v1"]
    );
    let service = &all["services/default/kubernetes"];
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
    let owned = &service["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    let owned: Vec<&String> = owned.as_object().expect("fields").keys().collect();
    let fields = ["clusterIP", "internalTrafficPolicy", "ipFamilyPolicy", "ports", "sessionAffinity", "type"];
    assert_eq!(owned, fields.map(|name| format!("f:{name}")).iter().collect::<Vec<_>>());
    assert!(all.contains_key("ipaddresses//10.0.0.1") && all.contains_key("endpoints/default/kubernetes"));
    controllers.shutdown().await;
}
