//! What the objects are.

use serde_json::{Value, json};

use super::writer::Wanted;
use crate::services::IpRange;

/// Who owns the fields of what the server makes for itself.
pub(super) const MANAGER: &str = "kube-apiserver";

pub(super) fn namespaces() -> Vec<Wanted> {
    let namespace = |name: &str| Wanted {
        group: "",
        version: "v1",
        plural: "namespaces",
        namespace: "",
        name: name.to_owned(),
        manager: MANAGER,
        object: json!({"metadata": {"labels": {"kubernetes.io/metadata.name": name}}}),
    };
    ["kube-system", "kube-public", "kube-node-lease", "default"].map(namespace).into()
}

pub(super) fn priority_classes() -> Vec<Wanted> {
    let class = |name: &str, value: i64, description: &str| Wanted {
        group: "scheduling.k8s.io",
        version: "v1",
        plural: "priorityclasses",
        namespace: "",
        name: name.to_owned(),
        manager: MANAGER,
        object: json!({"value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority"}),
    };
    vec![
        class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ]
}

pub(super) fn service_cidr(range: &IpRange) -> Wanted {
    Wanted {
        group: "networking.k8s.io",
        version: "v1",
        plural: "servicecidrs",
        namespace: "",
        name: "kubernetes".to_owned(),
        manager: MANAGER,
        object: json!({"spec": {"cidrs": [range.to_string()]}}),
    }
}

/// The Service by which Pods find the server.
pub(super) fn service(range: &IpRange, port: u16) -> Wanted {
    let object = json!({
        "metadata": {"labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": range.first().to_string(),
            "internalTrafficPolicy": "Cluster",
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    });
    in_default("", "v1", "services", object)
}

/// An object `default/kubernetes`.
pub(super) fn in_default(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    object: Value,
) -> Wanted {
    Wanted {
        group,
        version,
        plural,
        namespace: "default",
        name: "kubernetes".to_owned(),
        manager: MANAGER,
        object,
    }
}
