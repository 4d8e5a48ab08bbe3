//! Services get addresses and node ports that nobody else has, and give them back.

mod support;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use concord_controllers::{NodePortRange, ServiceRepair};
use concord_registry::Part;
use concord_store::Compare;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Cluster, Server, context, range, refused};

const ADDRESSES: &str = "/registry/ipaddresses/";
const PORTS: &str = "/registry/services/nodeports/";

async fn server(cluster: &Cluster) -> Server {
    let server = cluster.server().await;
    server.create("/namespaces//ns", json!({})).await.expect("a namespace");
    server
}

async fn create(server: &Server, name: &str, spec: Value) -> Result<Value, concord_meta::Status> {
    server
        .create(&format!("/services/ns/{name}"), json!({"spec": spec}))
        .await
        .map(|service| service["spec"].clone())
}

#[tokio::test]
async fn an_address_is_an_object_that_comes_and_goes_with_the_service() {
    let cluster = Cluster::new();
    let server = server(&cluster).await;
    let spec = create(&server, "a", json!({"type": "ClusterIP"})).await.expect("created");
    let ip = spec["clusterIP"].as_str().expect("an address").to_owned();
    assert_eq!(
        spec,
        json!({"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})
    );
    let path = format!("networking.k8s.io/ipaddresses//{ip}");
    let address = server.get(&path).await.expect("an IPAddress");
    assert_eq!(
        address["spec"],
        json!({"parentRef": {"resource": "services", "namespace": "ns", "name": "a"}})
    );
    assert_eq!(
        address["metadata"]["labels"],
        json!({"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"})
    );
    let service = server.get("/services/ns/a").await.expect("a service");
    assert_eq!(
        address["metadata"]["resourceVersion"], service["metadata"]["resourceVersion"],
        "they were written by the same transaction"
    );
    assert!(address["metadata"]["uid"].is_string() && address["metadata"]["creationTimestamp"].is_string());
    let taken =
        format!("ipaddresses.networking.k8s.io \"{ip}\" is forbidden: the address is in use by Service ns/a");
    assert_eq!(refused(server.delete(&path).await), (403, taken));
    server.create("/endpoints/ns/a", json!({})).await.expect("created");
    server.create("/endpoints/ns/b", json!({})).await.expect("created");
    server.delete("/services/ns/a").await.expect("deleted");
    assert_eq!(cluster.keys(ADDRESSES).await, Vec::<String>::new());
    assert_eq!(cluster.keys("/registry/services/endpoints/").await, ["/registry/services/endpoints/ns/b"]);
}

#[tokio::test]
async fn a_service_that_waits_for_a_finalizer_keeps_what_it_has() {
    let cluster = Cluster::new();
    let server = server(&cluster).await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    server.create("/services/ns/a", held).await.expect("created");
    server.delete("/services/ns/a").await.expect("marked");
    assert_eq!((cluster.keys(ADDRESSES).await.len(), cluster.keys(PORTS).await.len()), (1, 1));
    server
        .merge("/services/ns/a", Part::Main, json!({"metadata": {"finalizers": null}}))
        .await
        .expect("let go");
    assert!(server.get("/services/ns/a").await.is_none());
    assert_eq!((cluster.keys(ADDRESSES).await.len(), cluster.keys(PORTS).await.len()), (0, 0));
}

#[tokio::test]
async fn addresses_that_are_asked_for_are_checked() {
    let cluster = Cluster::new();
    let server = server(&cluster).await;
    create(&server, "first", json!({"clusterIP": "10.0.0.5"})).await.expect("free");
    for (spec, why) in [
        (
            json!({"clusterIP": "192.168.1.1"}),
            "spec.clusterIPs: Invalid value: [\"192.168.1.1\"]: failed to allocate IP 192.168.1.1: the provided network does not match the current range",
        ),
        (
            json!({"clusterIP": "10.0.0.5"}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.5\"]: failed to allocate IP 10.0.0.5: provided IP is already allocated",
        ),
        (
            json!({"clusterIP": "10.0.0.15"}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.15\"]: failed to allocate IP 10.0.0.15: the provided network does not match the current range",
        ),
        (
            json!({"clusterIP": "bad"}),
            "spec.clusterIPs[0]: Invalid value: \"bad\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            json!({"clusterIP": "fd00::1"}),
            "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster",
        ),
        (
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
        ),
        (
            json!({"ipFamilies": ["IPv6"]}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            json!({"clusterIPs": ["10.0.0.7"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.7\"]: must be empty when `clusterIP` is not specified",
        ),
        (
            json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7", "10.0.0.8"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.7\",\"10.0.0.8\"]: may specify no more than one IP for each IP family",
        ),
    ] {
        let outcome = create(&server, "second", spec).await;
        assert_eq!(refused(outcome), (422, format!("Service \"second\" is invalid: {why}")));
    }
    let other =
        server.update("/services/ns/first", Part::Main, json!({"spec": {"clusterIP": "10.0.0.7"}})).await;
    let why = "Service \"first\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.0.0.7\"]: may not change once set";
    assert_eq!(refused(other), (422, why.to_owned()));
    assert_eq!(cluster.keys(ADDRESSES).await, ["/registry/ipaddresses/10.0.0.5"]);
}

#[tokio::test]
async fn families_are_filled_in_as_upstream_does() {
    let cluster = Cluster::new();
    let server = server(&cluster).await;
    let parts = |spec: &Value| {
        json!([spec["clusterIP"], spec["clusterIPs"], spec["ipFamilies"], spec["ipFamilyPolicy"]])
    };
    for (name, spec, want) in [
        ("a", json!({"clusterIP": "None"}), json!(["None", ["None"], ["IPv4", "IPv6"], "RequireDualStack"])),
        (
            "b",
            json!({"clusterIP": "None", "selector": {"a": "b"}}),
            json!(["None", ["None"], ["IPv4"], "SingleStack"]),
        ),
        ("c", json!({"type": "ExternalName", "externalName": "a.b"}), json!([null, null, null, null])),
        (
            "d",
            json!({"clusterIP": "10.0.0.9", "ipFamilyPolicy": "PreferDualStack"}),
            json!(["10.0.0.9", ["10.0.0.9"], ["IPv4"], "PreferDualStack"]),
        ),
    ] {
        let spec = create(&server, name, spec).await.expect("created");
        assert_eq!(parts(&spec), want, "{name}");
    }
    let external = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
    let spec = server.update("/services/ns/d", Part::Main, external).await.expect("updated");
    assert_eq!(parts(&spec["spec"]), json!([null, null, null, null]));
    assert_eq!(cluster.keys(ADDRESSES).await, Vec::<String>::new(), "given back");
    let back = server
        .update("/services/ns/d", Part::Main, json!({"spec": {"type": "ClusterIP"}}))
        .await
        .expect("updated");
    assert!(back["spec"]["clusterIP"].is_string(), "{back}");
    let ip = back["spec"]["clusterIP"].clone();
    let kept = server.update(
        "/services/ns/d",
        Part::Main,
        json!({"spec": {"type": "ClusterIP", "selector": {"a": "b"}}}),
    );
    assert_eq!(
        kept.await.expect("updated")["spec"]["clusterIP"],
        ip,
        "an update that does not mention it keeps it"
    );
}

#[tokio::test]
async fn node_ports_are_given_out_and_checked() {
    let cluster = Cluster::new();
    let server = server(&cluster).await;
    let spec =
        create(&server, "a", json!({"type": "NodePort", "ports": [{"port": 80}]})).await.expect("created");
    let port = spec["ports"][0]["nodePort"].as_i64().expect("a port");
    assert!((30_000..=32_767).contains(&port), "{port}");
    assert_eq!(cluster.keys(PORTS).await, [format!("{PORTS}{port}")]);
    for (wanted, why) in [
        (port, "provided port is already allocated"),
        (80, "provided port is not in the valid range. The range of valid ports is 30000-32767"),
    ] {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": wanted}]});
        // Another server, which did not choose the port itself.
        let outcome = create(&cluster.server().await, "b", spec).await;
        let text =
            format!("Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: {wanted}: {why}");
        assert_eq!(refused(outcome), (422, text));
    }
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80, "nodePort": 30001}]});
    let spec = create(&server, "c", local).await.expect("created");
    assert!(spec["healthCheckNodePort"].is_i64());
    assert_eq!(cluster.keys(PORTS).await.len(), 3);
    let plain = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
    server.update("/services/ns/c", Part::Main, plain).await.expect("updated");
    server.delete("/services/ns/a").await.expect("deleted");
    assert_eq!(cluster.keys(PORTS).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_dry_run_takes_nothing() {
    let cluster = Cluster::new();
    let server = server(&cluster).await;
    let mut dry = context();
    dry.dry_run = true;
    let body = json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let service = server.create_as(&dry, "/services/ns/a", body).await.expect("would be created");
    assert!(service["spec"]["clusterIP"].is_string() && service["spec"]["ports"][0]["nodePort"].is_i64());
    assert_eq!(cluster.keys(ADDRESSES).await, Vec::<String>::new());
    assert_eq!(cluster.keys(PORTS).await, Vec::<String>::new());
}

/// Two servers that know nothing of each other use up a small range at the same time. Whoever loses a race is told to try
/// again, as clients do by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_address_is_used_twice_and_a_full_range_is_told() {
    let cluster = Cluster::new();
    let servers = [Arc::new(server(&cluster).await), Arc::new(cluster.server().await)];
    let mut creates = tokio::task::JoinSet::new();
    for index in 0..18 {
        let server = Arc::clone(&servers[index % 2]);
        creates.spawn(async move {
            for _ in 0..100 {
                match create(&server, &format!("s{index}"), json!({})).await {
                    Err(status) if status.retry_after_seconds().is_some() => {}
                    outcome => return outcome.map(|spec| spec["clusterIP"].clone()),
                }
            }
            panic!("lost a hundred races");
        });
    }
    let outcomes = creates.join_all().await;
    let given: BTreeSet<String> =
        outcomes.iter().filter_map(|ip| ip.as_ref().ok()).map(ToString::to_string).collect();
    assert_eq!(given.len(), 14, "every address once");
    let refusals: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(refusals.len(), 4, "everybody else none");
    for status in refusals {
        assert_eq!(status.code, 500);
        assert!(status.message.ends_with("range is full"), "{}", status.message);
    }
    assert_eq!(cluster.keys(ADDRESSES).await.len(), 14);
}

/// Waits until just these node ports are held.
async fn until_held(cluster: &Cluster, ports: &[i64]) {
    let wanted: Vec<String> = ports.iter().map(|port| format!("{PORTS}{port}")).collect();
    for _ in 0..600 {
        if cluster.keys(PORTS).await == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?} are held, not {wanted:?}", cluster.keys(PORTS).await);
}

/// As after a kube-apiserver on the same etcd: its Services say what they use, and nothing else does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_services_of_others_use_is_held_for_them() {
    let cluster = Cluster::new();
    let server = server(&cluster).await;
    let other = cluster.server().await.fenced(Compare::absent("none"));
    let ip = create(&server, "own", json!({})).await.expect("created")["clusterIP"].clone();
    server.delete("/services/ns/own").await.expect("deleted");
    let spec = |port: i64| {
        json!({"type": "NodePort", "clusterIP": ip, "clusterIPs": [ip], "ipFamilies": ["IPv4"],
            "ports": [{"port": 80, "nodePort": port}]})
    };
    create(&other, "before", spec(30_007)).await.expect("created");
    let (registry, resources) = (server.registry.clone(), server.resources.clone());
    let repair = ServiceRepair::new(registry, resources.as_ref(), range(), NodePortRange::default());
    let repair = Arc::new(repair.expect("there are services"));
    let cancel = CancellationToken::new();
    assert!(!repair.is_done());
    let running = tokio::spawn(repair.clone().run(cancel.clone()));
    while !repair.is_done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(cluster.keys(PORTS).await, [format!("{PORTS}30007")], "it is done once all of it is held");
    let address = format!("networking.k8s.io/ipaddresses//{}", ip.as_str().expect("an address"));
    let address = server.get(&address).await.expect("an IPAddress");
    assert_eq!(address["spec"]["parentRef"]["name"], "before");

    let mut later = spec(30_008);
    later["clusterIP"] = "None".into();
    later["clusterIPs"] = json!(["None"]);
    create(&other, "later", later).await.expect("created");
    until_held(&cluster, &[30_007, 30_008]).await;
    let taken = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_007}]});
    let (status, message) = refused(create(&server, "c", taken).await);
    assert_eq!(status, 422);
    assert!(message.ends_with("provided port is already allocated"), "{message}");

    // A Service that nobody can read, since its key is gone or a newer server wrote it, is not one that is gone.
    let key = "/registry/services/specs/ns/before";
    let kept = cluster.value(key).await;
    cluster.put(key, "k8s:enc:aescbc:v1:lost:".into()).await;
    other.delete("/services/ns/later").await.expect("deleted");
    until_held(&cluster, &[30_007]).await;
    cluster.put(key, kept).await;
    server.delete("/services/ns/before").await.expect("deleted");
    until_held(&cluster, &[]).await;
    assert_eq!(cluster.keys(ADDRESSES).await, Vec::<String>::new());
    cancel.cancel();
    running.await.expect("ends");
}
