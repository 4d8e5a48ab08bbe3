//! Volumes and devices.

use super::*;

#[test]
fn volumes() {
    let kind = ("", "v1", "PersistentVolume");
    let object = json!({
        "spec": {
            "capacity": {"storage": "1.5Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce", "Other"],
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {"namespace": "ns", "name": "c"},
            "storageClassName": "fast",
            "volumeAttributesClassName": "gold",
            "volumeMode": "Block",
        },
        "status": {"phase": "Bound", "reason": "why"},
    });
    let cells =
        json!(["x", "1536Mi", "RWO,RWX", "Delete", "Bound", "ns/c", "fast", "gold", "why", "2d5h", "Block"]);
    check(kind, object, cells);
    let cells = json!(["x", "0", "", "Retain", "Pending", "", "", "<unset>", "", "2d5h", "Filesystem"]);
    check(kind, json!({}), cells);
    let deleted =
        json!({"metadata": {"deletionTimestamp": "2026-01-02T00:00:00Z"}, "status": {"phase": "Bound"}});
    assert_eq!(cell(kind, 4, deleted), "Terminating");
    let older = json!({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "slow"}},
        "spec": {"storageClassName": "fast"}});
    assert_eq!(cell(kind, 6, older), "slow");
}

#[test]
fn claims() {
    let kind = ("", "v1", "PersistentVolumeClaim");
    let modes = json!(["ReadOnlyMany", "ReadWriteOncePod"]);
    let status = json!({"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": modes});
    let object = json!({"spec": {"volumeName": "pv", "storageClassName": "fast"}, "status": status});
    check(
        kind,
        object,
        json!(["x", "Bound", "pv", "5Gi", "ROX,RWOP", "fast", "<unset>", "2d5h", "Filesystem"]),
    );
    let unbound = json!({"spec": {"volumeMode": "Block"}, "status": status});
    check(kind, unbound, json!(["x", "Bound", "", "", "", "", "<unset>", "2d5h", "Block"]));
}

#[test]
fn classes() {
    let kind = ("storage.k8s.io", "v1", "StorageClass");
    for annotation in
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
    {
        let object = json!({
            "metadata": {"annotations": {annotation: "true"}},
            "provisioner": "example.com/p", "reclaimPolicy": "Retain",
            "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true,
        });
        let cells = json!(["x (default)", "example.com/p", "Retain", "WaitForFirstConsumer", true, "2d5h"]);
        check(kind, object, cells);
    }
    check(kind, json!({}), json!(["x", "", "Delete", "Immediate", false, "2d5h"]));
    let kind = ("storage.k8s.io", "v1", "VolumeAttributesClass");
    check(kind, json!({"driverName": "d"}), json!(["x", "d", "2d5h"]));
}

#[test]
fn attachments_and_drivers() {
    let kind = ("storage.k8s.io", "v1", "VolumeAttachment");
    let spec = json!({"attacher": "a", "source": {"persistentVolumeName": "pv"}, "nodeName": "n"});
    let object = json!({"spec": spec, "status": {"attached": true}});
    check(kind, object, json!(["x", "a", "pv", "n", true, "2d5h"]));
    let kind = ("storage.k8s.io", "v1", "CSINode");
    check(kind, json!({"spec": {"drivers": [{}, {}]}}), json!(["x", 2, "2d5h"]));

    let kind = ("storage.k8s.io", "v1", "CSIDriver");
    let object = json!({"spec": {
        "attachRequired": false, "podInfoOnMount": true, "storageCapacity": true, "requiresRepublish": true,
        "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
        "volumeLifecycleModes": ["Persistent", "Ephemeral"],
    }});
    check(kind, object, json!(["x", false, true, true, "a,b", true, "Persistent,Ephemeral", "2d5h"]));
    check(kind, json!({}), json!(["x", true, false, false, "<unset>", false, "Persistent", "2d5h"]));
}

#[test]
fn claims_for_devices() {
    let kind = ("resource.k8s.io", "v1", "ResourceClaim");
    let state = |deleted: bool, status: Value| {
        let time = deleted.then_some("2026-01-02T00:00:00Z");
        cell(kind, 1, json!({"metadata": {"deletionTimestamp": time}, "status": status}))
    };
    let (none, some) = (json!({}), json!({"allocation": {}}));
    let used = json!({"allocation": {}, "reservedFor": [{}]});
    assert_eq!(state(false, none.clone()), "pending");
    assert_eq!(state(false, some.clone()), "allocated");
    assert_eq!(state(false, used.clone()), "allocated,reserved");
    assert_eq!(state(false, json!({"reservedFor": [{}]})), "pending");
    assert_eq!(state(true, none), "deleted");
    assert_eq!(state(true, some), "deleted,allocated");
    assert_eq!(state(true, used), "deleted,allocated,reserved");
}

#[test]
fn devices() {
    let spec = json!({"nodeName": "n", "driver": "d", "pool": {"name": "p"}});
    check(
        ("resource.k8s.io", "v1", "ResourceSlice"),
        json!({"spec": spec}),
        json!(["x", "n", "d", "p", "2d5h"]),
    );
    check(("resource.k8s.io", "v1", "DeviceClass"), json!({}), json!(["x", "2d5h"]));
    check(("resource.k8s.io", "v1", "ResourceClaimTemplate"), json!({}), json!(["x", "2d5h"]));

    let kind = ("resource.k8s.io", "v1beta2", "DeviceTaintRule");
    let taint = json!({"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-03T04:00:00Z"});
    check(kind, json!({"spec": {"taint": taint}}), json!(["x", "k", "v", "NoExecute", "60m", "2d5h"]));
    check(kind, json!({}), json!(["x", "", "", "", "0s", "2d5h"]));
}

#[test]
fn pool_status_requests() {
    let kind = ("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest");
    check(
        kind,
        json!({"spec": {"driver": "d"}}),
        json!(["x", "d", "-", "-", "-", "-", "-", 0, "Pending", "<none>"]),
    );
    let pools = json!([
        {"totalDevices": 4, "availableDevices": 1, "allocatedDevices": 2, "unavailableDevices": 1},
        {"totalDevices": 3, "validationError": "bad"},
    ]);
    let status = |condition: &str, count: i32| {
        let condition =
            json!({"type": condition, "status": "True", "lastTransitionTime": "2026-01-03T04:59:00Z"});
        json!({"status": {"conditions": [condition], "poolCount": count, "pools": pools}})
    };
    check(kind, status("Complete", 2), json!(["x", "", "7", "1", "2", "1", "1", 2, "Complete", "60s"]));
    let cells = json!(["x", "", "7", "1", "2", "1", "1", 5, "Complete (2/5 pools)", "60s"]);
    check(kind, status("Complete", 5), cells);
    check(kind, status("Failed", 5), json!(["x", "", "-", "-", "-", "-", "-", 5, "Failed", "<none>"]));
    check(kind, status("Other", 5), json!(["x", "", "7", "1", "2", "1", "1", 5, "Pending", "<none>"]));
}
