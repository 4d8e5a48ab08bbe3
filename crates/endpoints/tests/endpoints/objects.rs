//! Single objects.

use serde_json::json;

use crate::support::{Server, WIDGETS, widget};

#[tokio::test]
async fn an_object_is_created_changed_and_deleted() {
    let server = Server::new().await;
    let created = server.create("a", "one").await;
    assert_eq!(created["metadata"]["managedFields"][0]["manager"], "tester");
    let uri = format!("{WIDGETS}/a");
    let got = server.get(&uri).await;
    assert_eq!((got.code, got.header("content-type")), (200, "application/json"));
    assert_eq!(got.json(), created);
    assert!(
        got.text().starts_with(r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"#),
        "{}",
        got.text()
    );
    assert!(got.text().ends_with("}\n"));

    let mut changed = created.clone();
    changed["spec"]["text"] = "two".into();
    let updated = server.json("PUT", &uri, &changed).await;
    assert_eq!((updated.code, &updated.json()["spec"]["text"]), (200, &json!("two")));
    let conflict = server.json("PUT", &uri, &changed).await;
    assert_eq!((conflict.code, &conflict.json()["reason"]), (409, &json!("Conflict")));

    let merge = [("content-type", "application/merge-patch+json"), ("user-agent", "patcher")];
    let patched = server.ask("PATCH", &uri, &merge, br#"{"spec":{"text":"three"}}"#).await;
    assert_eq!((patched.code, &patched.json()["spec"]["text"]), (200, &json!("three")));

    let deleted = server.ask("DELETE", &uri, &[], b"").await;
    let uid = created["metadata"]["uid"].as_str().expect("a uid");
    let expected = format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Success\",\"details\":\
         {{\"name\":\"a\",\"group\":\"example.com\",\"kind\":\"widgets\",\"uid\":\"{uid}\"}}}}\n"
    );
    assert_eq!((deleted.code, deleted.text()), (200, expected.as_str()));
    assert_eq!(server.get(&uri).await.code, 404);
}

#[tokio::test]
async fn apply_creates_and_changes() {
    let server = Server::new().await;
    let uri = format!("{WIDGETS}/a?fieldManager=me");
    let apply = [("content-type", "application/apply-patch+yaml")];
    let body = b"kind: Widget\napiVersion: example.com/v1\nmetadata:\n  name: a\nspec:\n  text: one\n";
    assert_eq!(server.ask("PATCH", &uri, &apply, body).await.code, 201);
    let again = server.ask("PATCH", &uri, &apply, body).await;
    assert_eq!(again.code, 200, "{}", again.text());
    let anonymous = server.ask("PATCH", &format!("{WIDGETS}/a"), &apply, body).await;
    assert_eq!(anonymous.code, 422);
    assert!(anonymous.message().contains("fieldManager: Required value: is required for apply patch"));
}

#[tokio::test]
async fn parts_scale_and_what_is_never_stored_have_their_own_doors() {
    let server = Server::new().await;
    let mut object = server.create("a", "one").await;
    object["status"] = json!({"replicas": 3});
    object["spec"]["text"] = "ignored".into();
    let status = server.json("PUT", &format!("{WIDGETS}/a/status"), &object).await.json();
    assert_eq!((&status["status"]["replicas"], &status["spec"]["text"]), (&json!(3), &json!("one")));
    assert_eq!(server.get(&format!("{WIDGETS}/a/status")).await.json(), status);

    let scale = json!({"metadata": {"name": "a"}, "spec": {"replicas": 5}});
    let scaled = server.json("PUT", &format!("{WIDGETS}/a/scale"), &scale).await;
    assert_eq!((scaled.code, &scaled.json()["spec"]["replicas"]), (200, &json!(5)), "{}", scaled.text());
    let scale = server.get(&format!("{WIDGETS}/a/scale")).await.json();
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["status"]["replicas"], 3);

    let made = server.json("POST", &format!("{WIDGETS}/a/echo"), &widget("", "hello")).await;
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(made.json()["metadata"], json!({"name": "a", "namespace": "ns"}));
    let review = json!({"metadata": {}, "spec": {"text": "x"}});
    assert_eq!(server.json("POST", "/apis/example.com/v1/reviews", &review).await.code, 201);
    let local = server.json("POST", "/apis/example.com/v1/namespaces/ns/localreviews", &review).await;
    assert_eq!(local.json()["metadata"]["namespace"], "ns");
}

#[tokio::test]
async fn deletion_takes_its_options_from_the_body_or_the_parameters() {
    let server = Server::new().await;
    for name in ["a", "b"] {
        let mut object = widget(name, "x");
        object["metadata"]["finalizers"] = json!(["example.com/stay"]);
        assert_eq!(server.json("POST", WIDGETS, &object).await.code, 201);
    }
    let pending = server.ask("DELETE", &format!("{WIDGETS}/a?propagationPolicy=Orphan"), &[], b"").await;
    assert_eq!(pending.code, 200);
    assert_eq!(pending.json()["metadata"]["finalizers"], json!(["example.com/stay", "orphan"]));
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "orphanDependents": false});
    let cascading = server.json("DELETE", &format!("{WIDGETS}/b"), &body).await;
    assert_eq!(cascading.code, 202, "{}", cascading.text());
    let dry = server.create("c", "x").await;
    assert_eq!(server.json("DELETE", &format!("{WIDGETS}/c"), &json!({"dryRun": ["All"]})).await.code, 200);
    assert_eq!(server.get(&format!("{WIDGETS}/c")).await.json(), dry);
}

#[tokio::test]
async fn warnings_and_dry_runs() {
    let server = Server::new().await;
    let mut object = widget("a", "odd");
    object["spec"]["unknown"] = 1.into();
    let answer = server.json("POST", &format!("{WIDGETS}?dryRun=All"), &object).await;
    assert_eq!(answer.code, 201);
    let warnings: Vec<_> = answer.headers.get_all("warning").into_iter().collect();
    assert_eq!(warnings, ["299 - \"unknown field \\\"spec.unknown\\\"\"", "299 - \"an odd \\\"text\\\"\""]);
    assert_eq!(answer.json()["metadata"]["resourceVersion"], serde_json::Value::Null);
    assert_eq!(server.get(&format!("{WIDGETS}/a")).await.code, 404);
    let strict = server.json("POST", &format!("{WIDGETS}?fieldValidation=Strict"), &object).await;
    let message = "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.unknown\"";
    assert_eq!((strict.code, strict.message().as_str()), (400, message));
    let old = server.get("/api/v1/olds").await;
    assert_eq!((old.code, old.header("warning")), (200, "299 - \"v1 Old is deprecated in v1.19+\""));
}

#[tokio::test]
async fn objects_come_in_the_form_the_client_wants() {
    let server = Server::new().await;
    let created = server.create("a", "one").await;
    let uri = format!("{WIDGETS}/a");
    let yaml = server.accept(&uri, "application/yaml").await;
    assert_eq!(yaml.header("content-type"), "application/yaml");
    assert!(
        yaml.text().starts_with("apiVersion: example.com/v1\nkind: Widget\nmetadata:\n"),
        "{}",
        yaml.text()
    );
    let pretty = server.get(&format!("{uri}?pretty=true")).await;
    assert!(pretty.text().starts_with(
        "{\n  \"kind\": \"Widget\",\n  \"apiVersion\": \"example.com/v1\",\n  \"metadata\": {\n"
    ));
    assert_eq!(pretty.json(), created);

    let partial =
        server.accept(&uri, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").await.json();
    assert_eq!(
        (&partial["kind"], &partial["apiVersion"]),
        (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!((&partial["metadata"], &partial["spec"]), (&created["metadata"], &json!(null)));

    let table = server.accept(&uri, "application/json;as=Table;g=meta.k8s.io;v=v1,application/json").await;
    assert!(
        table
            .text()
            .starts_with(r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"#)
    );
    let table = table.json();
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let table = server
        .accept(&format!("{uri}?includeObject=None"), "application/json;as=Table;g=meta.k8s.io;v=v1")
        .await;
    assert_eq!(table.json()["rows"][0]["object"], json!(null));

    let headers =
        [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1"), ("content-type", "application/json")];
    let created = server.ask("POST", WIDGETS, &headers, widget("b", "x").to_string().as_bytes()).await;
    assert_eq!((created.code, &created.json()["kind"]), (201, &json!("Table")));
    let gone = server.ask("DELETE", &format!("{WIDGETS}/b"), &headers[..1], b"").await;
    assert_eq!(gone.json()["kind"], "Status", "a status is never a table");
}
