//! Beside a kube-apiserver, whose objects are as v1.36.4 writes them when it stores JSON.

use concord_storageversion::Status;
use concord_store::{Store as _, Txn};
use serde_json::{Value, json};

use crate::support::{Kind, LEASES, Log, Server, wait_said};

const ID: &str = "apiserver-wlv32tlttr4jl3gtroqexyxapa";

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": ID, "namespace": "kube-system", "uid": "300dd77c-8664-468b-a35a-7d07be348ecf",
            "creationTimestamp": "2026-11-16T06:33:06Z",
            "annotations": {"kubernetes.io/peer-advertise-address": "192.0.2.1:6443"},
            "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "vm"},
        },
        "spec": {"holderIdentity": format!("{ID}_a4f91472-c8aa-4095-bb4c-900bf63c2163"), "leaseDurationSeconds": 3600,
            "renewTime": "2100-01-01T00:00:00.799965Z"},
    })
}

fn version(name: &str, encoding: &str, decodable: &[&str]) -> Value {
    json!({
        "apiVersion": "internal.apiserver.k8s.io/v1alpha1", "kind": "StorageVersion",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "creationTimestamp": "2026-11-16T06:33:07Z"},
        "spec": {},
        "status": {
            "storageVersions": [{"apiServerID": ID, "encodingVersion": encoding, "decodableVersions": decodable,
                "servedVersions": [decodable[0]]}],
            "commonEncodingVersion": encoding,
            "conditions": [{"type": "AllEncodingVersionsEqual", "status": "True",
                "lastTransitionTime": "2026-11-16T06:33:07Z", "reason": "CommonEncodingVersionSet",
                "message": "Common encoding version set"}],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kube_apiservers_objects_are_understood_and_left_as_they_are() {
    let log = Log::new();
    let definitions = "apiextensions.k8s.io.customresourcedefinitions";
    let objects = [
        (format!("leases/kube-system/{ID}"), lease()),
        ("storageversions/core.pods".to_owned(), version("core.pods", "v1", &["v1"])),
        (
            format!("storageversions/{definitions}"),
            version(
                definitions,
                "apiextensions.k8s.io/v1beta1",
                &["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"],
            ),
        ),
        (
            "storageversions/example.com.others".to_owned(),
            version("example.com.others", "example.com/v1", &["example.com/v1"]),
        ),
    ];
    let put =
        |txn: Txn, (key, value): &(String, Value)| txn.put(format!("/registry/{key}"), value.to_string());
    let before = objects.iter().fold(Txn::new(), put);
    log.store.transact(before).await.expect("stored");
    let server = Server::ready(&log, &Kind::new("z")).await;

    wait_said(&server, "core.pods", &format!("{ID}=v1,z=v1 -> v1")).await;
    let both = format!("{ID}=apiextensions.k8s.io/v1beta1,z=apiextensions.k8s.io/v1");
    wait_said(&server, definitions, &both).await;
    let pods = server.storage_version("core.pods").await.expect("it exists");
    let (recorded, now) = (objects[1].1.as_object().expect("an object"), Status::of(&pods));
    assert_eq!(now.storage_versions[0], Status::of(recorded).storage_versions[0]);
    assert_eq!(now.conditions, Status::of(recorded).conditions, "it was agreed on all the time");
    assert_eq!(pods["metadata"]["uid"], "uid-of-core.pods");
    assert_eq!(server.said("example.com.others").await, format!("{ID}=example.com/v1 -> example.com/v1"));
    // It is alive and says nothing about most of what is stored here: nobody may rely on its silence.
    assert!(server.fleet.agreement("", "pods").is_ok());
    assert!(server.fleet.agreement("", "configmaps").is_err());
    let lease = server.get(LEASES, "kube-system", ID).await.expect("it exists");
    assert_eq!(lease["spec"]["holderIdentity"], self::lease()["spec"]["holderIdentity"]);
    server.stop().await;
}
