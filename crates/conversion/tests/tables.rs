//! Objects in one version and the same in another.

use concord_conversion::{Difference, convert, difference};
use serde_json::{Value, json};

fn converted(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    let from = object["apiVersion"].as_str().expect("a version").to_owned();
    convert(object.as_object_mut().expect("an object"), &from, to).expect("both are known");
    object
}

/// Each becomes the other.
#[track_caller]
fn same(one: &Value, other: &Value) {
    let version = |object: &Value| object["apiVersion"].as_str().expect("a version").to_owned();
    assert_eq!(converted(one, &version(other)), *other);
    assert_eq!(converted(other, &version(one)), *one);
}

#[test]
fn an_event_is_the_same_in_both_groups() {
    let core = json!({"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}, "reason": "Started",
        "involvedObject": {"kind": "Pod", "name": "p"}, "message": "it runs", "type": "Normal", "count": 3,
        "source": {"component": "kubelet", "host": "n"}, "firstTimestamp": "2024-01-01T00:00:00Z",
        "lastTimestamp": "2024-01-02T00:00:00Z", "eventTime": "2024-01-01T00:00:00.000000Z", "action": "Start",
        "series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"},
        "related": {"kind": "Node", "name": "n"}, "reportingComponent": "k8s.io/kubelet",
        "reportingInstance": "kubelet-1"});
    let events = json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "e"},
        "reason": "Started", "regarding": {"kind": "Pod", "name": "p"}, "note": "it runs", "type": "Normal",
        "deprecatedCount": 3, "deprecatedSource": {"component": "kubelet", "host": "n"},
        "deprecatedFirstTimestamp": "2024-01-01T00:00:00Z", "deprecatedLastTimestamp": "2024-01-02T00:00:00Z",
        "eventTime": "2024-01-01T00:00:00.000000Z", "action": "Start",
        "series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"},
        "related": {"kind": "Node", "name": "n"}, "reportingController": "k8s.io/kubelet",
        "reportingInstance": "kubelet-1"});
    same(&core, &events);
}

fn claim(version: &str, requests: &Value) -> Value {
    json!({"kind": "ResourceClaim", "apiVersion": format!("resource.k8s.io/{version}"),
        "spec": {"devices": {"requests": requests}}, "status": {"reservedFor": []}})
}

fn template(version: &str, requests: &Value) -> Value {
    json!({"kind": "ResourceClaimTemplate", "apiVersion": format!("resource.k8s.io/{version}"),
        "spec": {"metadata": {}, "spec": {"devices": {"requests": requests}}}})
}

#[test]
fn requests_for_devices_are_nested_from_v1beta2_on() {
    let alternatives =
        json!({"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": "big", "count": 1}]});
    let flat = json!([
        {"name": "one", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "adminAccess": true,
            "selectors": [{"cel": {"expression": "true"}}], "tolerations": [{"operator": "Exists"}],
            "capacity": {"requests": {"memory": "1Gi"}}},
        alternatives.clone(),
    ]);
    let nested = json!([
        {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1,
            "adminAccess": true, "selectors": [{"cel": {"expression": "true"}}],
            "tolerations": [{"operator": "Exists"}], "capacity": {"requests": {"memory": "1Gi"}}}},
        alternatives,
    ]);
    for old in ["v1alpha3", "v1beta1"] {
        for new in ["v1beta2", "v1"] {
            same(&claim(old, &flat), &claim(new, &nested));
            same(&template(old, &flat), &template(new, &nested));
        }
    }
    same(&claim("v1alpha3", &flat), &claim("v1beta1", &flat));
    same(&claim("v1beta2", &nested), &claim("v1", &nested));
    // A zero that v1beta1 always writes does not make a request an exact one.
    let written = json!([{"name": "any", "deviceClassName": "", "firstAvailable": []}]);
    let meant = json!([{"name": "any", "firstAvailable": []}]);
    assert_eq!(converted(&claim("v1beta1", &written), "resource.k8s.io/v1"), claim("v1", &meant));
}

fn slice(version: &str, device: &Value) -> Value {
    json!({"kind": "ResourceSlice", "apiVersion": format!("resource.k8s.io/{version}"),
        "spec": {"driver": "d", "nodeName": "n", "devices": [device]}})
}

#[test]
fn devices_are_basic_up_to_v1beta1() {
    let plain = json!({"name": "gpu", "basic": {"attributes": {"model": {"string": "x"}}, "capacity": {"memory": "1Gi"}}});
    let flat = json!({"name": "gpu",
        "basic": {"attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}}});
    let nested = json!({"name": "gpu", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}});
    same(&slice("v1alpha3", &plain), &slice("v1beta1", &flat));
    for new in ["v1beta2", "v1"] {
        same(&slice("v1beta1", &flat), &slice(new, &nested));
        same(&slice("v1alpha3", &plain), &slice(new, &nested));
    }
    let empty = slice("v1", &json!({"name": "gpu"}));
    same(&empty, &slice("v1beta1", &json!({"name": "gpu", "basic": {}})));
    let mut zero = empty.clone();
    zero["spec"]["nodeName"] = "".into();
    zero["spec"]["allNodes"] = false.into();
    let beta = converted(&zero, "resource.k8s.io/v1beta1");
    assert_eq!((beta["spec"].get("nodeName"), beta["spec"].get("allNodes")), (None, None));
}

#[test]
fn versions_that_differ_in_name_are_told_apart_from_others() {
    use Difference::{Fields, Name, None as Same};
    for (kind, from, to, expected) in [
        ("Pod", "v1", "v1", Some(Same)),
        ("IPAddress", "networking.k8s.io/v1beta1", "networking.k8s.io/v1", Some(Name)),
        ("VolumeAttributesClass", "storage.k8s.io/v1alpha1", "storage.k8s.io/v1", Some(Name)),
        ("DeviceClass", "resource.k8s.io/v1beta1", "resource.k8s.io/v1", Some(Name)),
        ("ResourceSlice", "resource.k8s.io/v1beta2", "resource.k8s.io/v1", Some(Name)),
        ("ResourceSlice", "resource.k8s.io/v1beta1", "resource.k8s.io/v1", Some(Fields)),
        ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2", Some(Fields)),
        ("Event", "v1", "events.k8s.io/v1", Some(Fields)),
        ("Event", "v1", "events.k8s.io/v1beta1", None),
        ("HorizontalPodAutoscaler", "autoscaling/v2beta2", "autoscaling/v2", None),
        ("Deployment", "extensions/v1beta1", "apps/v1", None),
        ("Workload", "scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1alpha2", None),
        ("IPAddress", "networking.k8s.io/v1", "storage.k8s.io/v1", None),
    ] {
        assert_eq!(difference(kind, from, to), expected, "{kind} {from} {to}");
    }
}

#[test]
fn renaming_changes_nothing_else() {
    let address =
        json!({"kind": "IPAddress", "apiVersion": "networking.k8s.io/v1beta1", "spec": {"parentRef": null}});
    let mut renamed = address.clone();
    renamed["apiVersion"] = "networking.k8s.io/v1".into();
    same(&address, &renamed);
}

#[test]
fn unknown_versions_are_refused() {
    let mut object = json!({"kind": "Workload", "apiVersion": "scheduling.k8s.io/v1alpha1", "spec": {}});
    let before = object.clone();
    let members = object.as_object_mut().expect("an object");
    let error =
        convert(members, "scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1alpha2").expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "a Workload of version scheduling.k8s.io/v1alpha1 cannot be converted to scheduling.k8s.io/v1alpha2"
    );
    assert_eq!(object, before);
}
