//! Nodes, events, access and what else a cluster has.

use super::*;
use crate::{ListMeta, TableOptions, Tables};

#[test]
fn small_kinds_of_the_core_group() {
    let terminating = json!({"status": {"phase": "Terminating"}});
    check(("", "v1", "Namespace"), terminating, json!(["x", "Terminating", "2d5h"]));
    check(("", "v1", "Namespace"), json!({}), json!(["x", "Active", "2d5h"]));
    let object = json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="}});
    check(("", "v1", "ConfigMap"), object, json!(["x", 3, "2d5h"]));
    let object = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}});
    check(("", "v1", "Secret"), object, json!(["x", "kubernetes.io/tls", 2, "2d5h"]));
    check(("", "v1", "Secret"), json!({}), json!(["x", "Opaque", 0, "2d5h"]));
    check(("", "v1", "ServiceAccount"), json!({}), json!(["x", "2d5h"]));
}

#[test]
fn quotas_show_limits_apart() {
    let hard = json!({"pods": "10", "limits.cpu": "4", "cpu": "2", "limits": "1", "limits.memory": "1.5Gi"});
    let used = json!({"pods": "3", "limits.cpu": "500m"});
    let object = json!({"status": {"hard": hard, "used": used}});
    let cells = json!([
        "x",
        "cpu: 0/2, limits: 0/1, pods: 3/10",
        "limits.cpu: 500m/4, limits.memory: 0/1536Mi",
        "2d5h"
    ]);
    check(("", "v1", "ResourceQuota"), object, cells);
    check(("", "v1", "ResourceQuota"), json!({}), json!(["x", "", "", "2d5h"]));
}

#[test]
fn components() {
    let kind = ("", "v1", "ComponentStatus");
    let status = |status: &str| {
        let condition = json!({"type": "Healthy", "status": status, "message": "ok", "error": "e"});
        json!({"conditions": [condition]})
    };
    check(kind, status("True"), json!(["x", "Healthy", "ok", "e"]));
    check(kind, status("False"), json!(["x", "Unhealthy", "ok", "e"]));
    check(kind, json!({}), json!(["x", "Unknown", "", ""]));
}

const NODE: Kind = ("", "v1", "Node");

#[test]
fn nodes() {
    let object = json!({
        "metadata": {"labels": {
            "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/": "",
            "kubernetes.io/role": "edge", "other": "label"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}, {"type": "Ready", "status": "True"}],
            "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"},
                          {"type": "ExternalIP", "address": "1.1.1.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Linux", "kernelVersion": "6.1",
                         "architecture": "arm64", "containerRuntimeVersion": "containerd://2"},
        },
    });
    let cells = json!([
        "x",
        "Ready,SchedulingDisabled",
        "edge,worker",
        "2d5h",
        "v1.36.4",
        "10.0.0.1",
        "1.1.1.1",
        "Linux",
        "6.1 (arm64)",
        "containerd://2"
    ]);
    check(NODE, object, cells);
    let cells = json!([
        "x",
        "Unknown",
        "<none>",
        "2d5h",
        "",
        "<none>",
        "<none>",
        "<unknown>",
        "<unknown>",
        "<unknown>"
    ]);
    check(NODE, json!({}), cells);
    let unknown = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    assert_eq!(cell(NODE, 1, unknown), "NotReady");
    check(("node.k8s.io", "v1", "RuntimeClass"), json!({"handler": "runsc"}), json!(["x", "runsc", "2d5h"]));
}

#[test]
fn events_of_both_groups() {
    let involved = json!({"kind": "ReplicaSet", "name": "web", "fieldPath": "spec"});
    let core = json!({
        "type": "Warning", "reason": "Failed", "message": " it broke\n",
        "involvedObject": involved, "count": 4,
        "source": {"component": "kubelet", "host": "n1"}, "reportingComponent": "r", "reportingInstance": "i",
        "firstTimestamp": "2026-01-03T04:00:00Z", "lastTimestamp": "2026-01-03T04:59:30Z",
    });
    let newer = json!({
        "type": "Warning", "reason": "Failed", "note": " it broke\n",
        "regarding": involved, "deprecatedCount": 4,
        "deprecatedSource": {"component": "kubelet", "host": "n1"},
        "deprecatedFirstTimestamp": "2026-01-03T04:00:00Z", "deprecatedLastTimestamp": "2026-01-03T04:59:30Z",
    });
    let cells = json!([
        "30s",
        "Warning",
        "Failed",
        "replicaset/web",
        "spec",
        "kubelet, n1",
        "it broke",
        "60m",
        4,
        "x"
    ]);
    check(("", "v1", "Event"), core, cells.clone());
    check(("events.k8s.io", "v1", "Event"), newer, cells);
}

#[test]
fn events_that_happened_once_or_often() {
    let kind = ("events.k8s.io", "v1", "Event");
    let once = json!({"regarding": {"kind": "Node"}, "eventTime": "2026-01-03T04:59:00.123456Z",
        "reportingController": "c"});
    check(kind, once, json!(["59s", "", "", "node", "", "c", "", "59s", 1, "x"]));
    let series = json!({"count": 9, "lastObservedTime": "2026-01-03T04:59:58.5Z"});
    let often = json!({"eventTime": "2026-01-03T04:00:00.000000Z", "series": series, "deprecatedCount": 2,
        "reportingController": "c", "reportingInstance": "i"});
    check(kind, often, json!(["1s", "", "", "", "", "c, i", "", "60m", 9, "x"]));
    check(kind, json!({}), json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "x"]));
}

#[test]
fn bindings() {
    let subjects = json!([
        {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "User", "name": "v"},
        {"kind": "ServiceAccount", "namespace": "n", "name": "s"}, {"kind": "Other", "name": "o"}]);
    let object = json!({"roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": subjects});
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        let cells = json!(["x", "ClusterRole/admin", "2d5h", "u, v", "g", "n/s"]);
        check(("rbac.authorization.k8s.io", "v1", kind), object.clone(), cells);
    }
}

#[test]
fn admission() {
    let group = "admissionregistration.k8s.io";
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        check((group, "v1", kind), json!({"webhooks": [{}, {}]}), json!(["x", 2, "2d5h"]));
    }
    let param_kind = json!({"apiVersion": "rules.example/v1", "kind": "Limit"});
    for (kind, rules) in
        [("ValidatingAdmissionPolicy", "validations"), ("MutatingAdmissionPolicy", "mutations")]
    {
        let object = json!({"spec": {rules: [{}, {}, {}], "paramKind": param_kind}});
        check((group, "v1", kind), object, json!(["x", 3, "rules.example/v1/Limit", "2d5h"]));
        check((group, "v1", kind), json!({}), json!(["x", 0, "<unset>", "2d5h"]));
    }
    for kind in ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"] {
        let kind = (group, "v1", kind);
        let shown = |reference: Value| cell(kind, 2, json!({"spec": {"paramRef": reference}}));
        check(kind, json!({"spec": {"policyName": "p"}}), json!(["x", "p", "<unset>", "2d5h"]));
        assert_eq!(shown(json!({"name": "l", "namespace": "n"})), "n/l");
        assert_eq!(shown(json!({"name": "l", "selector": {}})), "*/l");
        assert_eq!(shown(json!({})), "<unset>");
        let selector =
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}";
        assert_eq!(shown(json!({"selector": {}})), selector);
    }
}

#[test]
fn certificates() {
    let group = "certificates.k8s.io";
    let kind = (group, "v1", "CertificateSigningRequest");
    let spec = json!({"signerName": "s", "username": "u", "expirationSeconds": 86400});
    let object =
        json!({"spec": spec, "status": {"conditions": [{"type": "Approved"}], "certificate": "AA=="}});
    check(kind, object, json!(["x", "2d5h", "s", "u", "24h", "Approved,Issued"]));
    check(kind, json!({}), json!(["x", "2d5h", "<none>", "", "<none>", "Pending"]));
    let condition = |types: Value| cell(kind, 5, json!({"status": {"conditions": types}}));
    assert_eq!(condition(json!([{"type": "Approved"}, {"type": "Denied"}])), "Denied");
    assert_eq!(condition(json!([{"type": "Approved"}, {"type": "Failed"}])), "Approved,Failed");

    let kind = (group, "v1beta1", "ClusterTrustBundle");
    check(kind, json!({"spec": {"signerName": "s"}}), json!(["x", "s"]));
    check(kind, json!({}), json!(["x", "<none>"]));

    let kind = (group, "v1beta1", "PodCertificateRequest");
    let spec = json!({"podName": "p", "serviceAccountName": "a", "nodeName": "n", "signerName": "s",
        "unverifiedUserAnnotations": {"k": "v"}});
    let object = json!({"spec": spec, "status": {"conditions": [{"type": "Issued"}, {"type": "Other"}]}});
    check(kind, object, json!(["x", "p", "a", "n", "s", "Issued", "k=v"]));
    check(kind, json!({}), json!(["x", "", "", "", "", "Pending", "<none>"]));
}

#[test]
fn leases() {
    let kind = ("coordination.k8s.io", "v1", "Lease");
    check(kind, json!({"spec": {"holderIdentity": "me"}}), json!(["x", "me", "2d5h"]));
    let kind = ("coordination.k8s.io", "v1beta1", "LeaseCandidate");
    let spec = json!({"leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.35.0"});
    check(kind, json!({"spec": spec}), json!(["x", "l", "1.36.0", "1.35.0", "2d5h"]));
}

#[test]
fn flow_control() {
    let group = "flowcontrol.apiserver.k8s.io";
    let kind = (group, "v1", "FlowSchema");
    let spec = json!({"priorityLevelConfiguration": {"name": "low"}, "matchingPrecedence": 500,
        "distinguisherMethod": {"type": "ByUser"}});
    let object = json!({"spec": spec, "status": {"conditions": [{"type": "Dangling", "status": "False"}]}});
    check(kind, object, json!(["x", "low", 500, "ByUser", "2d5h", "False"]));
    check(kind, json!({}), json!(["x", "", 1000, "<none>", "2d5h", "?"]));

    let kind = (group, "v1", "PriorityLevelConfiguration");
    let queuing = json!({"queues": 10, "handSize": 2, "queueLengthLimit": 5});
    let limited = json!({"nominalConcurrencyShares": 0, "limitResponse": {"queuing": queuing}});
    let object = json!({"spec": {"type": "Limited", "limited": limited}});
    check(kind, object, json!(["x", "Limited", 0, 10, 2, 5, "2d5h"]));
    let defaults = json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"queuing": {}}}}});
    check(kind, defaults, json!(["x", "Limited", 30, 64, 8, 50, "2d5h"]));
    let exempt = json!({"spec": {"type": "Exempt"}});
    check(kind, exempt, json!(["x", "Exempt", "<none>", "<none>", "<none>", "<none>", "2d5h"]));
}

#[test]
fn flow_schemas_are_shown_in_the_order_they_are_tried() {
    let schema = |name: &str, precedence: i64| {
        let object = json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
        object.as_object().expect("an object").clone()
    };
    let schemas = [schema("b", 500), schema("z", 1), schema("default", 0), schema("a", 500)];
    let printer = printer("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema");
    let tables = Tables { printer, options: TableOptions::default(), now: now() };
    let table = tables.list(&ListMeta::default(), schemas);
    let names = [0, 1, 2, 3].map(|at: usize| table["rows"][at]["cells"][0].clone());
    assert_eq!(names, ["z", "a", "b", "default"]);
}

#[test]
fn api_servers_about_themselves() {
    let kind = ("apiregistration.k8s.io", "v1", "APIService");
    check(kind, json!({}), json!(["x", "Local", "Unknown", "2d5h"]));
    let available = |status: &str, reason: &str| {
        let condition = json!({"type": "Available", "status": status, "reason": reason});
        json!({"spec": {"service": {"namespace": "n", "name": "s"}}, "status": {"conditions": [condition]}})
    };
    check(kind, available("True", "Passed"), json!(["x", "n/s", "True", "2d5h"]));
    check(
        kind,
        available("False", "MissingEndpoints"),
        json!(["x", "n/s", "False (MissingEndpoints)", "2d5h"]),
    );
    check(kind, available("False", ""), json!(["x", "n/s", "False", "2d5h"]));

    let kind = ("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion");
    let server = |id: &str| json!({"apiServerID": id, "encodingVersion": "apps/v1"});
    let servers = ["a", "b", "c", "d"].map(server);
    let object = json!({"status": {"commonEncodingVersion": "apps/v1", "storageVersions": servers}});
    check(kind, object, json!(["x", "apps/v1", "a=apps/v1,b=apps/v1,c=apps/v1 + 1 more...", "2d5h"]));
    check(kind, json!({}), json!(["x", "<unset>", "<unset>", "2d5h"]));

    let kind = ("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration");
    let conditions = json!([{"type": "Running", "status": "False"}, {"type": "Succeeded", "status": "True"},
        {"type": "Other", "status": "True"}]);
    let object = json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}},
        "status": {"conditions": conditions}});
    check(kind, object, json!(["x", "deployments.apps", "Succeeded"]));
    check(kind, json!({}), json!(["x", "", "Unknown"]));
}
