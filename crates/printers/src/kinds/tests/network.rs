//! Services and traffic.

use super::*;

const SERVICE: Kind = ("", "v1", "Service");

#[test]
fn services() {
    let object = json!({"spec": {
        "type": "NodePort",
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1", "fd00::1"],
        "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
        "selector": {"app": "web"},
    }});
    let cells = json!(["x", "NodePort", "10.0.0.1", "<none>", "80:30080/TCP,53/UDP", "2d5h", "app=web"]);
    check(SERVICE, object, cells);
    check(SERVICE, json!({}), json!(["x", "ClusterIP", "<none>", "<none>", "<none>", "2d5h", "<none>"]));
    let older = json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    check(SERVICE, older, json!(["x", "ClusterIP", "None", "<none>", "80/TCP", "2d5h", "<none>"]));
}

#[test]
fn external_addresses_of_services() {
    let external = |service_type: &str, own: &[&str], ingress: Value| {
        let spec = json!({"type": service_type, "externalIPs": own, "externalName": "db.example"});
        cell(SERVICE, 3, json!({"spec": spec, "status": {"loadBalancer": {"ingress": ingress}}}))
    };
    assert_eq!(external("ClusterIP", &["1.1.1.1", "2.2.2.2"], json!([{"ip": "9.9.9.9"}])), "1.1.1.1,2.2.2.2");
    assert_eq!(external("ExternalName", &["1.1.1.1"], json!(null)), "db.example");
    assert_eq!(external("LoadBalancer", &[], json!(null)), "<pending>");
    assert_eq!(external("LoadBalancer", &["1.1.1.1"], json!(null)), "1.1.1.1");
    let points =
        json!([{"hostname": "lb.example"}, {"ip": "9.9.9.9", "hostname": "n"}, {"ip": "9.9.9.9"}, {}]);
    assert_eq!(external("LoadBalancer", &[], points.clone()), "9.9.9.9,lb.example");
    assert_eq!(external("LoadBalancer", &["1.1.1.1"], points), "9.9.9.9,lb.example,1.1.1.1");
    assert_eq!(external("Other", &["1.1.1.1"], json!(null)), "<unknown>");
}

#[test]
fn endpoints() {
    let kind = ("", "v1", "Endpoints");
    let shown = |subsets: Value| cell(kind, 1, json!({"subsets": subsets}));
    check(kind, json!({}), json!(["x", "<none>", "2d5h"]));
    let addresses = json!([{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]);
    let one = json!([{"addresses": addresses, "ports": [{"port": 80}]}]);
    assert_eq!(shown(one), "10.0.0.1:80,[fd00::1]:80");
    let more =
        json!([{"addresses": addresses, "ports": [{"port": 80}, {"port": 443}]}, {"addresses": addresses}]);
    assert_eq!(shown(more), "10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 3 more...");
    assert_eq!(shown(json!([{"addresses": addresses}])), "10.0.0.1,fd00::1");
    assert_eq!(shown(json!([{"notReadyAddresses": addresses}])), "");
}

#[test]
fn endpoint_slices() {
    let kind = ("discovery.k8s.io", "v1", "EndpointSlice");
    let object = json!({
        "addressType": "IPv4",
        "ports": [{"port": 80}, {"name": "any"}],
        "endpoints": [{"addresses": ["1.1.1.1", "2.2.2.2"]}, {"addresses": ["3.3.3.3", "4.4.4.4"]}],
    });
    check(kind, object, json!(["x", "IPv4", "80,any", "1.1.1.1,2.2.2.2,3.3.3.3 + 1 more...", "2d5h"]));
    check(kind, json!({"ports": [{}]}), json!(["x", "", "<unset>", "<unset>", "2d5h"]));
}

#[test]
fn ingresses() {
    let kind = ("networking.k8s.io", "v1", "Ingress");
    let object = json!({
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "a.example"}], "tls": [{}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "fd00:1111:2222:3333:4444:5555:6666:7777"}]}},
    });
    let address = "fd00:1111:2222:3333:4444:5555:6666:7777";
    check(kind, object, json!(["x", "nginx", "a.example", address, "80, 443", "2d5h"]));
    check(kind, json!({}), json!(["x", "<none>", "*", "", "80", "2d5h"]));

    let hosts = |hosts: &[&str]| {
        let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
        cell(kind, 2, json!({"spec": {"rules": rules}}))
    };
    assert_eq!(hosts(&["", ""]), "*");
    assert_eq!(hosts(&["a", "", "b"]), "a,b");
    assert_eq!(hosts(&["a", "b", "c"]), "a,b,c");
    assert_eq!(hosts(&["a", "", "b", "c"]), "a,b,c");
    assert_eq!(hosts(&["a", "b", "c", "d", "e"]), "a,b,c + 2 more...");
    // Rules without a host are left over, too.
    assert_eq!(hosts(&["a", "b", "c", ""]), "a,b,c + 1 more...");
}

#[test]
fn ingress_classes() {
    let kind = ("networking.k8s.io", "v1", "IngressClass");
    let parameters = json!({"apiGroup": "k8s.example", "kind": "Settings", "name": "s"});
    let object = json!({
        "metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "example.com/c", "parameters": parameters},
    });
    check(kind, object, json!(["x (default)", "example.com/c", "Settings.k8s.example/s", "2d5h"]));
    check(kind, json!({}), json!(["x", "", "<none>", "2d5h"]));
    let core = json!({"spec": {"parameters": {"kind": "ConfigMap", "name": "s"}}});
    assert_eq!(cell(kind, 2, core), "ConfigMap/s");
}

#[test]
fn policies_ranges_and_addresses() {
    let kind = ("networking.k8s.io", "v1", "NetworkPolicy");
    let object = json!({"spec": {"podSelector": {"matchLabels": {"app": "web"}}}});
    check(kind, object, json!(["x", "app=web", "2d5h"]));
    check(kind, json!({"spec": {"podSelector": {}}}), json!(["x", "<none>", "2d5h"]));
    let invalid = json!({"spec": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}});
    check(kind, invalid, json!(["x", "<error>", "2d5h"]));

    let kind = ("networking.k8s.io", "v1", "ServiceCIDR");
    check(
        kind,
        json!({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/112"]}}),
        json!(["x", "10.0.0.0/24,fd00::/112", "2d5h"]),
    );

    let kind = ("networking.k8s.io", "v1", "IPAddress");
    let parent = json!({"resource": "Services", "namespace": "default", "name": "kubernetes"});
    let object = json!({"spec": {"parentRef": parent}});
    check(kind, object, json!(["x", "services/default/kubernetes", "2d5h"]));
    let parent = json!({"group": "g.io", "resource": "things", "name": "t"});
    assert_eq!(cell(kind, 1, json!({"spec": {"parentRef": parent}})), "things.g.io/t");
    check(kind, json!({}), json!(["x", "<none>", "2d5h"]));
}
