//! ComponentStatuses: kinds that are read and stored nowhere. Texts and forms are what kube-apiserver answered to the same.

use concord_server::test_client::Protocol;
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, send};

const PATH: &str = "/api/v1/componentstatuses";
const DEPRECATED: &str = "299 - \"v1 ComponentStatus is deprecated in v1.19+\"";

#[tokio::test]
async fn components_are_asked_how_they_are() {
    let data = tempdir().expect("a directory");
    let policy = data.path().join("policy.yaml");
    std::fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
        .expect("written");
    let log = data.path().join("audit.log");
    let flags =
        [format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
    let program = Program::start_with(data.path(), &flags.each_ref().map(String::as_str)).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let (status, list, warnings) = send(&mut admin, Method::GET, PATH, &Value::Null).await;
    assert_eq!((status, warnings), (200, vec![DEPRECATED.to_owned()]));
    assert_eq!((&list["kind"], &list["metadata"]), (&json!("ComponentStatusList"), &json!({})));
    let items = list["items"].as_array().expect("items");
    let names: Vec<&str> = items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["controller-manager", "scheduler", "etcd-0"]);
    let well = json!([{"type": "Healthy", "status": "True", "message": "ok"}]);
    assert_eq!(items[2], json!({"metadata": {"name": "etcd-0"}, "conditions": well}));
    let (_, store, _) = send(&mut admin, Method::GET, &format!("{PATH}/etcd-0"), &Value::Null).await;
    let whole = json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": "etcd-0"}, "conditions": well});
    assert_eq!(store, whole);

    for (query, found) in [
        ("fieldSelector=metadata.name%3Dscheduler", 1),
        ("fieldSelector=metadata.name%3Dnobody", 0),
        ("labelSelector=a%3Db", 0),
    ] {
        let (status, list, _) = send(&mut admin, Method::GET, &format!("{PATH}?{query}"), &Value::Null).await;
        assert_eq!((status, list["items"].as_array().map(Vec::len)), (200, Some(found)), "{query}");
    }
    for (path, code, message) in [
        ("/nobody", 404, "componentstatus \"nobody\" not found"),
        (
            "?fieldSelector=a%3Db",
            400,
            "\"a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("?watch=1", 405, "watch is not supported on resources of kind \"componentstatuses\""),
    ] {
        let (status, answer, _) = send(&mut admin, Method::GET, &format!("{PATH}{path}"), &Value::Null).await;
        assert_eq!((status, &answer["message"]), (code, &json!(message)), "{path}");
    }
    let headers = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = admin.exchange(Method::GET, PATH, &headers, "".into()).await.expect("an answer");
    let table: Value = serde_json::from_str(&table.body).expect("JSON");
    assert_eq!(table["rows"][2]["cells"], json!(["etcd-0", "Healthy", "ok", ""]));

    let metrics = admin.get("/metrics").await.expect("metrics").body;
    let line = r#"apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
    program.signal("TERM");
    program.ended().await;
    let audited = std::fs::read_to_string(&log).expect("an audit log");
    let deprecated = audited.lines().filter(|line| line.contains(r#""k8s.io/deprecated":"true""#)).count();
    assert!(deprecated >= 6, "{audited}");
}
