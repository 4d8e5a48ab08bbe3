use serde_json::json;

use super::*;

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

#[test]
fn nodes_are_known_by_name_and_group() {
    let user = |name: &str, groups: &[&str]| UserInfo {
        name: name.to_owned(),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..UserInfo::default()
    };
    assert_eq!(node(&user("system:node:n", &["system:nodes"])), Some("n"));
    assert_eq!(node(&user("system:node:n", &[])), None);
    assert_eq!(node(&user("n", &["system:nodes"])), None);
    assert_eq!(node(&user("system:node:", &["system:nodes"])), Some(""));
}

#[test]
fn labels_of_kubernetes_are_not_for_nodes_to_choose() {
    let labels = object(&json!({
        "kubernetes.io/os": "linux", "example.com/a": "b", "plain": "c", "foo.kubelet.kubernetes.io/x": "y",
        "node-role.kubernetes.io/master": "", "node-restriction.kubernetes.io/fips": "true", "other.k8s.io/z": "",
    }));
    assert_eq!(
        forbidden_labels(Some(&labels), None),
        ["node-restriction.kubernetes.io/fips", "node-role.kubernetes.io/master", "other.k8s.io/z"]
    );
    assert!(forbidden_labels(Some(&labels), Some(&labels)).is_empty(), "what does not change");
    let none = Object::new();
    assert_eq!(forbidden_labels(Some(&none), Some(&labels)).len(), 3, "nor what goes away");
}

#[test]
fn pods_of_nodes_refer_to_nothing() {
    let of = |spec: Value| reference(&object(&json!({"spec": spec}))).unwrap_or_default();
    for (spec, expected) in [
        (json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}), ""),
        (json!({"serviceAccountName": "default"}), "serviceaccounts"),
        (json!({"imagePullSecrets": [{"name": "s"}]}), "secrets"),
        (json!({"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}), "secrets"),
        (json!({"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "s"}}}]}]}), "configmaps"),
        (json!({"resourceClaims": [{}]}), "resourceclaims"),
        (json!({"volumes": [{"persistentVolumeClaim": {}}]}), "persistentvolumeclaims"),
        (json!({"volumes": [{"ephemeral": {}}]}), "persistentvolumeclaims (via ephemeral volumes)"),
        (json!({"volumes": [{"csi": {}}]}), "csidrivers (via CSI volumes)"),
        (json!({"volumes": [{"projected": {"sources": [{"downwardAPI": {}}]}}]}), ""),
        (
            json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {}}]}}]}),
            "serviceaccounts (via projected volumes)",
        ),
        (
            json!({"volumes": [{"projected": {"sources": [{"clusterTrustBundle": {}}]}}]}),
            "clustertrustbundles",
        ),
    ] {
        assert_eq!(of(spec), expected);
    }
}
