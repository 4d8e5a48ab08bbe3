//! Discovery.

use std::sync::Arc;

use concord_endpoints::Settings;
use concord_server::Metrics;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn the_legacy_documents_are_upstreams() {
    let server = Server::new().await;
    let table = [
        (
            "/api",
            r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.1:6443"}]}"#,
        ),
        (
            "/apis/",
            r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}},{"name":"custom.io","versions":[{"groupVersion":"custom.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"custom.io/v1","version":"v1"}}]}"#,
        ),
        (
            "/apis/example.com",
            r#"{"kind":"APIGroup","apiVersion":"v1","name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}"#,
        ),
        (
            "/api/v1",
            r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["create","delete","get","list","patch","update","watch"]},{"name":"namespaces/finalize","singularName":"","namespaced":false,"kind":"Namespace","verbs":["update"]},{"name":"olds","singularName":"old","namespaced":false,"kind":"Old","verbs":["get","list"]}]}"#,
        ),
    ];
    for (path, expected) in table {
        for _ in 0..2 {
            let answer = server.get(path).await;
            assert_eq!((answer.code, answer.text().trim_end()), (200, expected), "{path}");
        }
    }
    let resources = server.get("/apis/example.com/v1").await.json();
    assert_eq!((&resources["kind"], &resources["apiVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let named = |name: &str| -> Value {
        let resources = resources["resources"].as_array().expect("resources");
        resources.iter().find(|resource| resource["name"] == name).expect(name).clone()
    };
    assert_eq!(
        named("widgets"),
        json!({
            "name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["wd"], "categories": ["all"], "storageVersionHash": "hash=",
        })
    );
    assert_eq!(
        named("widgets/scale"),
        json!({
            "name": "widgets/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
            "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
        })
    );
    let gadgets = server.get("/apis/custom.io/v1").await.json();
    assert_eq!(
        gadgets["resources"][0]["verbs"],
        json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"])
    );
}

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

#[tokio::test]
async fn the_aggregated_document_has_everything() {
    let server = Server::with(Settings { beta_discovery: true, ..Settings::default() }).await;
    for (accept, version, content_type) in [
        (V2.to_owned(), "apidiscovery.k8s.io/v2", V2),
        (V2BETA1.to_owned(), "apidiscovery.k8s.io/v2beta1", V2BETA1),
        (format!("{V2},{V2BETA1},application/json"), "apidiscovery.k8s.io/v2", V2),
        (format!("{V2};profile=nopeer"), "apidiscovery.k8s.io/v2", V2),
    ] {
        let answer = server.accept("/apis", &accept).await;
        assert_eq!((answer.code, answer.header("content-type")), (200, content_type));
        assert_eq!((answer.header("vary"), answer.header("cache-control")), ("Accept", "public"));
        let document = answer.json();
        assert_eq!(
            (&document["kind"], &document["apiVersion"]),
            (&json!("APIGroupDiscoveryList"), &json!(version))
        );
        let names: Vec<_> = document["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| &item["metadata"]["name"])
            .collect();
        assert_eq!(names, ["example.com", "custom.io"]);
    }
    let core = server.accept("/api", V2).await.json();
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(core["items"][0]["versions"][0]["freshness"], "Current");
    assert_eq!(
        core["items"][0]["versions"][0]["resources"][1],
        json!({
            "resource": "olds", "responseKind": {"group": "", "version": "", "kind": "Old"}, "scope": "Cluster",
            "singularResource": "old", "verbs": ["get", "list"],
        })
    );
    let groups = server.accept("/apis", V2).await.json();
    let widgets = groups["items"][0]["versions"][0]["resources"].as_array().expect("resources")[2].clone();
    assert_eq!(widgets["resource"], "widgets");
    assert_eq!(
        widgets["subresources"][3],
        json!({
            "subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "verbs": ["get", "patch", "update"],
        })
    );
}

#[tokio::test]
async fn the_aggregated_document_is_served_in_every_form() {
    let metrics = Arc::new(Metrics::new());
    let server = Server::with(Settings { metrics: metrics.clone(), ..Settings::default() }).await;
    let json = server.accept("/apis", V2).await;
    let document: Value = json.json();
    for path in ["/apis", "/api"] {
        for media_type in ["application/yaml", "application/vnd.kubernetes.protobuf"] {
            let accept = V2.replace("application/json", media_type);
            let answer = server.accept(path, &accept).await;
            assert_eq!((answer.code, answer.header("content-type")), (200, accept.as_str()), "{path}");
            let headers = [("accept", accept.as_str()), ("if-none-match", answer.header("etag"))];
            assert_eq!(server.ask("GET", path, &headers, b"").await.code, 304);
        }
    }
    let accept = V2.replace("application/json", "application/vnd.kubernetes.protobuf");
    let answer = server.accept("/apis", &accept).await;
    assert_eq!(answer.header("etag"), json.header("etag"), "the tag is that of the content");
    assert_eq!(answer.body, concord_protobuf::group_discovery_list("apidiscovery.k8s.io/v2", &document));
    // Two documents were made, however often they were asked for.
    assert_eq!(metrics.peers().aggregations(), 2);
}

#[tokio::test]
async fn what_did_not_change_is_not_sent_again() {
    let server = Server::new().await;
    let first = server.accept("/apis", V2).await;
    let etag = first.header("etag").to_owned();
    assert_eq!(etag.len(), 130, "{etag}");
    let headers = [("accept", V2), ("if-none-match", etag.as_str())];
    let unchanged = server.ask("GET", "/apis", &headers, b"").await;
    assert_eq!((unchanged.code, unchanged.body.len(), unchanged.header("etag")), (304, 0, etag.as_str()));
    let apis = &server.apis;
    apis.replace(apis.set().without_group("custom.io"));
    let changed = server.ask("GET", "/apis", &headers, b"").await;
    assert_eq!(changed.code, 200);
    assert_ne!(changed.header("etag"), etag);
    assert_eq!(server.get("/apis/custom.io").await.code, 404);
}

#[tokio::test]
async fn discovery_is_negotiated() {
    let server = Server::new().await;
    let only = "only the following media types are accepted: application/json, application/yaml";
    for (method, path, accept, code, message) in [
        ("GET", "/api/v1", V2, 406, only),
        ("GET", "/apis/example.com", V2, 406, only),
        ("GET", "/apis", "text/html", 406, only),
        ("GET", "/apis", V2BETA1, 406, only),
        ("GET", "/api", V2BETA1, 406, only),
        ("POST", "/api/v1", "", 405, "the server does not allow this method on the requested resource"),
        ("POST", "/api", "", 405, "the server does not allow this method on the requested resource"),
        ("POST", "/apis", "", 200, ""),
        ("POST", "/apis/example.com", "", 200, ""),
        ("GET", "/apis/example.com/v2", "", 404, "the server could not find the requested resource"),
    ] {
        let answer = server.ask(method, path, &[("accept", accept)], b"").await;
        assert_eq!((answer.code, answer.message().as_str()), (code, message), "{method} {path} {accept}");
    }
    // Who asks for what is not served any more gets the next best of what it accepts.
    let older = server.accept("/apis", &format!("{V2BETA1},application/json")).await;
    assert_eq!((older.code, older.json()["kind"].as_str()), (200, Some("APIGroupList")));
    let newer = server.accept("/apis", &format!("{V2BETA1},{V2},application/json")).await;
    assert_eq!(newer.header("content-type"), V2);
    let yaml = server.accept("/apis/example.com", "application/yaml").await;
    assert!(
        yaml.text().starts_with("apiVersion: v1\nkind: APIGroup\nname: example.com\n"),
        "{}",
        yaml.text()
    );
    let pretty = server.get("/api?pretty=1").await;
    assert!(pretty.text().starts_with("{\n  \"kind\": \"APIVersions\",\n"), "{}", pretty.text());
    let paths = server.apis.set().paths();
    assert_eq!(paths[..4], ["/api", "/api/v1", "/apis", "/apis/"]);
}
