//! What other servers say, among what this one says.

mod support;

use std::sync::Arc;

use concord_apis::{Settings, api_set};
use concord_meta::GroupVersion;
use concord_openapi::{ExtensionDocument, ExtensionDocuments, InvalidDocument, OpenApi, SwaggerPart};
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::{ask, get, keys, openapi, structure::check};

fn version(group: &str) -> GroupVersion {
    GroupVersion::new(group, "v1")
}

fn swagger(group: &str) -> SwaggerPart {
    let document = json!({
        "swagger": "2.0", "info": {"title": "t", "version": "1"},
        "paths": {
            format!("/apis/{group}/v1/things"): {"get": {
                "operationId": "listThings",
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}},
            }},
            "/apis/apps/v1/deployments": {"get": {}},
        },
        "definitions": {"Thing": {"type": "object"}},
    });
    SwaggerPart::read(document.to_string().as_bytes(), &version(group)).expect("a document")
}

fn document(group: &str, title: &str) -> Arc<ExtensionDocument> {
    let document = json!({
        "openapi": "3.0.0", "info": {"title": title, "version": "1"},
        "paths": {format!("/apis/{group}/v1/things"): {}, "/apis/apps/v1/deployments": {}},
    });
    let text = document.to_string();
    let read = ExtensionDocument::read(text.as_bytes(), &version(group));
    Arc::new(read.expect("a document").with_swagger(Some(&swagger(group))))
}

/// Documents about the built-in APIs and about what can be replaced.
fn serving() -> (OpenApi, Arc<Mutex<Arc<ExtensionDocuments>>>) {
    let set = Arc::new(api_set(&Settings::default()));
    let current = Arc::new(Mutex::new(Arc::<ExtensionDocuments>::default()));
    let source = current.clone();
    (openapi(move || set.clone()).with_extensions(move || source.lock().clone()), current)
}

fn all(documents: Vec<(&str, Arc<ExtensionDocument>)>) -> Arc<ExtensionDocuments> {
    Arc::new(documents.into_iter().map(|(group, document)| (version(group), document)).collect())
}

#[tokio::test]
async fn they_are_published_under_their_own_versions_only() {
    let (openapi, current) = serving();
    let before = keys(&openapi).await;
    let apps = get(&openapi, "/openapi/v3/apis/apps/v1").await;
    *current.lock() = all(vec![("a.io", document("a.io", "theirs")), ("apps", document("apps", "theirs"))]);

    let now = keys(&openapi).await;
    let added: Vec<&String> = now.iter().filter(|key| !before.contains(key)).collect();
    assert_eq!(added, ["apis/a.io/v1"]);
    assert_eq!(get(&openapi, "/openapi/v3/apis/apps/v1").await, apps);
    let theirs = get(&openapi, "/openapi/v3/apis/a.io/v1").await;
    assert_eq!(theirs["info"]["title"], "theirs");
    assert_eq!(theirs["paths"], json!({"/apis/a.io/v1/things": {}}));
    assert_eq!(theirs["components"], json!({}));

    *current.lock() = Arc::default();
    assert_eq!(keys(&openapi).await, before);
    assert_eq!(ask(&openapi, "/openapi/v3/apis/a.io/v1", &[]).await.0, 404);
}

#[tokio::test]
async fn they_have_hashes_tags_and_other_forms_like_all_others() {
    let (openapi, current) = serving();
    *current.lock() = all(vec![("a.io", document("a.io", "first"))]);
    let index = get(&openapi, "/openapi/v3").await;
    let first = index["paths"]["apis/a.io/v1"]["serverRelativeURL"].as_str().expect("a URL").to_owned();
    let (status, headers, _) = ask(&openapi, &first, &[]).await;
    assert_eq!((status, &headers["cache-control"]), (200, &"public, immutable".parse().expect("a value")));
    let tag = headers["etag"].to_str().expect("text");
    assert_eq!(ask(&openapi, &first, &[("if-none-match", tag)]).await.0, 304);
    let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let (status, _, body) = ask(&openapi, &first, &[("accept", protobuf)]).await;
    assert!(status == 200 && body.starts_with(b"\x0a\x053.0.0"), "{body:?}");

    *current.lock() = all(vec![("a.io", document("a.io", "second"))]);
    // Clients that read the index before still get what they ask for.
    assert_eq!(get(&openapi, &first).await["info"]["title"], "first");
    assert_eq!(get(&openapi, "/openapi/v3/apis/a.io/v1").await["info"]["title"], "second");
}

#[tokio::test]
async fn version_2_has_their_paths_and_types() {
    let (openapi, current) = serving();
    let converted = Arc::new(ExtensionDocument::converted(&swagger("b.io")));
    *current.lock() = all(vec![("a.io", document("a.io", "theirs")), ("b.io", converted)]);
    let everything = get(&openapi, "/openapi/v2").await;
    for group in ["a.io", "b.io"] {
        let path = &everything["paths"][format!("/apis/{group}/v1/things")];
        assert_eq!(path["get"]["responses"]["200"]["schema"], json!({"$ref": "#/definitions/Thing"}));
    }
    assert_eq!(everything["definitions"]["Thing"], json!({"type": "object"}));
    let own: &Value = &everything["paths"]["/apis/apps/v1/deployments"];
    assert_ne!(own["get"], json!({}), "nobody replaces what is this server's");

    let leaf = get(&openapi, "/openapi/v3/apis/b.io/v1").await;
    assert_eq!(leaf["components"]["schemas"]["Thing"], json!({"type": "object"}));
    assert_eq!(leaf["openapi"], "3.0.0");
}

#[tokio::test]
async fn names_of_types_go_to_the_first() {
    let (openapi, current) = serving();
    let of = |group: &str, of: &str| {
        let path = format!("/apis/{group}/v1/things");
        let operation = json!({"responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}}});
        let swagger = json!({
            "swagger": "2.0", "paths": {path: {"get": operation}}, "definitions": {"Thing": {"type": of}},
        });
        let part = SwaggerPart::read(swagger.to_string().as_bytes(), &version(group)).expect("a document");
        Arc::new(ExtensionDocument::converted(&part))
    };
    *current.lock() = all(vec![("z.io", of("z.io", "object")), ("a.io", of("a.io", "string"))]);
    let everything = get(&openapi, "/openapi/v2").await;
    assert_eq!(everything["definitions"]["Thing"], json!({"type": "object"}));
    assert_eq!(everything["definitions"]["Thing_v2"], json!({"type": "string"}));
}

#[test]
fn what_is_no_document_is_refused() {
    let read = |text: &str| ExtensionDocument::read(text.as_bytes(), &version("a.io")).map(drop);
    for text in ["", "[]", "{", "\u{0}\u{1}", "<html>"] {
        assert!(matches!(read(text), Err(InvalidDocument::NotJson(_))), "{text}");
    }
    for text in ["{}", r#"{"openapi":"2.0"}"#, r#"{"openapi":3}"#] {
        assert_eq!(read(text), Err(InvalidDocument::NotVersion("3")), "{text}");
    }
    let swagger = SwaggerPart::read(br#"{"openapi":"3.0.0"}"#, &version("a.io")).map(drop);
    assert_eq!(swagger, Err(InvalidDocument::NotVersion("2.0")));
}

#[tokio::test]
async fn whatever_they_say_is_whole_when_it_is_published() {
    let (openapi, current) = serving();
    let operation = |id: &str| {
        json!({"operationId": id, "responses": {"200": {"description": "", "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Gone", "description": "beside"},
        }}}}})
    };
    let broken = json!({
        "openapi": "3.0.0",
        "paths": {"/apis/a.io/v1/things": {"get": operation("same"), "put": operation("same")}},
        "components": {"schemas": {"Unused": {"$ref": "#/components/schemas/Gone"}}},
    });
    let broken =
        ExtensionDocument::read(broken.to_string().as_bytes(), &version("a.io")).expect("a document");
    let old = json!({
        "swagger": "2.0",
        "paths": {"/apis/b.io/v1/things": {
            "get": {"operationId": "same", "responses": {"200": {"schema": {"$ref": "#/definitions/Gone"}}}},
            "put": {"operationId": "same", "responses": {"200": {"$ref": "#/responses/Gone"}}},
        }},
    });
    let old = SwaggerPart::read(old.to_string().as_bytes(), &version("b.io")).expect("a document");
    *current.lock() = all(vec![
        ("a.io", Arc::new(broken)),
        ("b.io", Arc::new(ExtensionDocument::converted(&old))),
        ("c.io", document("c.io", "theirs")),
    ]);
    for key in ["apis/a.io/v1", "apis/b.io/v1", "apis/c.io/v1"] {
        check(key, &get(&openapi, &format!("/openapi/v3/{key}")).await);
    }
}

#[tokio::test]
async fn upstreams_document_of_version_2_becomes_documents_of_version_3() {
    let Some(specifications) = support::specifications() else { return };
    let swagger = std::fs::read(specifications.join("swagger.json")).expect("a file");
    for (group, name) in [("apps", "v1"), ("autoscaling", "v2"), ("networking.k8s.io", "v1")] {
        let version = GroupVersion::new(group, name);
        let part = SwaggerPart::read(&swagger, &version).expect("a document");
        let documents: ExtensionDocuments =
            [(version.clone(), Arc::new(ExtensionDocument::converted(&part)))].into_iter().collect();
        let documents = Arc::new(documents);
        let openapi = openapi(Arc::default).with_extensions(move || documents.clone());
        let converted = get(&openapi, &format!("/openapi/v3/apis/{group}/{name}")).await;

        check(&version.to_string(), &converted);
        assert!(!converted["paths"].as_object().is_none_or(serde_json::Map::is_empty));

        let file = format!("v3/apis__{group}__{name}_openapi.json");
        let published: Value =
            serde_json::from_slice(&std::fs::read(specifications.join(file)).expect("a file")).expect("JSON");
        let keys = |value: &Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        assert_eq!(keys(&converted["paths"]), keys(&published["paths"]));
        assert_eq!(keys(&converted["components"]["schemas"]), keys(&published["components"]["schemas"]));
    }
}
