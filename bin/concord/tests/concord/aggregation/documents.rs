//! The OpenAPI documents of other servers, as long as they are registered and whatever becomes of them.

#[path = "../../../../../crates/openapi/tests/support/structure.rs"]
mod structure;
#[path = "../../../../../crates/openapi/tests/support/validator.rs"]
mod validator;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use concord_server::test_client::{Protocol, TestClient};
use concord_testing::webhook::{Asked, Certificate, Reply, WebhookServer};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use self::{
    structure::{check, check_own},
    validator::validate,
};
use super::{API_SERVICES, bookshelf::World, parse, until};
use crate::support::{Program, SOON, send};

const NAME: &str = "v1.old.io";
const LEAF: &str = "/openapi/v3/apis/old.io/v1";
const THINGS: &str = "/apis/old.io/v1/things";
const BOOKS: &str = "apis/library.example.com/v1";
/// A bit more than the time after which other servers are asked for their documents again.
const ONE_POLL: Duration = Duration::from_secs(75);

/// A document of version 2 with everything that is said otherwise in version 3.
fn swagger(title: &str) -> Value {
    let operation = json!({
        "operationId": "createThing", "tags": ["old"], "consumes": ["application/json"],
        "parameters": [
            {"$ref": "#/parameters/pretty"},
            {"name": "thing", "in": "body", "required": true, "schema": {"$ref": "#/definitions/Thing"}},
            {"name": "many", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
        ],
        "responses": {
            "200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}, "headers": {"X-A": {"type": "integer"}}},
            "404": {"$ref": "#/responses/Gone"},
        },
    });
    let form = json!({
        "operationId": "sendThing", "tags": ["old"],
        "parameters": [{"name": "f", "in": "formData", "type": "file"}, {"name": "name", "in": "path", "type": "string", "required": true}],
        "responses": {"200": {"description": "OK", "schema": {"type": "file"}}},
    });
    json!({
        "swagger": "2.0", "info": {"title": title, "version": "1"}, "host": "example.com", "produces": ["application/json"],
        "securityDefinitions": {"basic": {"type": "basic"}, "app": {"type": "oauth2", "flow": "application", "tokenUrl": "https://t.example", "scopes": {}}},
        "security": [{"basic": []}],
        "parameters": {"pretty": {"name": "pretty", "in": "query", "type": "string", "uniqueItems": true}},
        "responses": {"Gone": {"description": "gone"}},
        "paths": {THINGS: {"post": operation}, format!("{THINGS}/{{name}}"): {"put": form}, "/apis/apps/v1/deployments": {}},
        "definitions": {
            "Thing": {
                "type": "object", "discriminator": "kind", "required": ["kind"],
                "properties": {
                    "kind": {"type": "string"}, "perhaps": {"type": "string", "x-nullable": true},
                    "port": {"type": "string", "format": "int-or-string"},
                    "size": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity", "description": "beside"},
                    "parts": {"type": "array", "items": {"$ref": "#/definitions/Thing"}},
                },
            },
            "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        },
    })
}

/// A server of things that publishes documents of version 2, and of version 3 if it is `new`.
fn answer(asked: &Asked, title: &str, new: bool) -> Reply {
    let path = asked.line.split(' ').nth(1).unwrap_or_default();
    let body = match path.split('?').next().unwrap_or_default() {
        "/openapi/v2" => swagger(title),
        "/openapi/v3" if new => json!({"paths": {"apis/old.io/v1": {"serverRelativeURL": LEAF}}}),
        LEAF if new => {
            json!({"openapi": "3.0.0", "info": {"title": title, "version": "2"}, "paths": {THINGS: {}}})
        }
        "/apis/old.io/v1" => {
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "old.io/v1", "resources": []})
        }
        _ => return Reply::new("404 Not Found", ""),
    };
    Reply::new("200 OK\r\ncontent-type: application/json", &body.to_string())
}

async fn remote(name: &'static str, new: Arc<AtomicBool>) -> WebhookServer {
    let host = format!("{name}.ns.svc");
    let answer = move |asked: &Asked| answer(asked, name, new.load(Ordering::Relaxed));
    WebhookServer::start(Certificate::For(&host), answer).await.expect("a server")
}

fn flag(name: &str, remote: &WebhookServer) -> String {
    format!("--service-address=ns/{name}=127.0.0.1:{}", remote.port)
}

fn api_service(name: &str, remote: &WebhookServer) -> Value {
    json!({
        "metadata": {"name": NAME},
        "spec": {
            "group": "old.io", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "service": {"namespace": "ns", "name": name}, "caBundle": STANDARD.encode(&remote.authority),
        },
    })
}

async fn write(admin: &mut TestClient, method: Method, path: &str, body: &Value) {
    let (status, answer, _) = send(admin, method, path, body).await;
    assert!(status < 300, "{path}: {answer}");
}

async fn is_told_by(admin: &mut TestClient, title: &str) -> Value {
    let is_so = |status, body: &str| status == 200 && parse(body)["info"]["title"] == title;
    parse(&until(admin, LEAF, &format!("the document is that of {title}"), is_so).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_document_is_valid_whoever_says_it() {
    let old = remote("old", Arc::default()).await;
    let world = World::start_with(&[&flag("old", &old)]).await;
    let mut admin = world.program.admin(Protocol::Http2).await;
    write(&mut admin, Method::POST, API_SERVICES, &api_service("old", &old)).await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    write(&mut admin, Method::POST, definitions, &parse(include_str!("everything.json"))).await;
    let customs = ["apis/docs.example.com/v1", "apis/docs.example.com/v1beta1"];
    let others = ["apis/old.io/v1", BOOKS];
    let wanted =
        |_: u16, body: &str| customs.iter().chain(&others).all(|key| body.contains(&format!("\"{key}\"")));
    let index = parse(&until(&mut admin, "/openapi/v3", "all are published", wanted).await);
    let mut documents = Vec::new();
    for key in customs.iter().chain(&others) {
        let url = index["paths"][key]["serverRelativeURL"].as_str().expect("a URL");
        let body = admin.get(url).await.expect("an answer").body;
        check(key, &parse(&body));
        if customs.contains(key) {
            check_own(key, &parse(&body));
        }
        documents.push(((*key).to_owned(), body));
    }
    assert!(documents[2].1.contains("x-converted-from"), "{}", documents[2].1);
    documents.push(("v2".to_owned(), admin.get("/openapi/v2").await.expect("an answer").body));
    tokio::task::spawn_blocking(move || validate(&documents)).await.expect("they are valid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_document_stays_when_this_server_starts_again() {
    let World { data, program, shelf } = World::start().await;
    let mut admin = program.admin(Protocol::Http2).await;
    let is_shown = |_, body: &str| body.contains(BOOKS);
    let index = until(&mut admin, "/openapi/v3", "it is published", is_shown).await;
    let url = parse(&index)["paths"][BOOKS]["serverRelativeURL"].as_str().expect("a URL").to_owned();
    let document = admin.get(&url).await.expect("an answer").body;
    let kept = data.path().join("openapi");
    let begin = Instant::now();
    while !std::fs::read_dir(&kept).is_ok_and(|mut files| files.any(|_| true)) {
        assert!(begin.elapsed() < SOON, "not in time: it is kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    program.signal("TERM");
    program.ended().await;
    let address = format!("--service-address=default/bookshelf={}", shelf.address);
    shelf.stop().await;

    let program = Program::start_with(data.path(), &[&address]).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    until(&mut admin, "/openapi/v3", "it is still published", is_shown).await;
    let answer = admin.get(&url).await.expect("an answer");
    assert_eq!((answer.status, answer.body), (200, document));
    let everything = parse(&admin.get("/openapi/v2").await.expect("an answer").body);
    assert!(everything["definitions"].get("com.example.library.v1.Book").is_some());
    // Nothing stays of a server that is no longer registered.
    let path = format!("{API_SERVICES}/{}", super::bookshelf::NAME);
    write(&mut admin, Method::DELETE, &path, &Value::Null).await;
    let begin = Instant::now();
    while std::fs::read_dir(&kept).expect("a directory").any(|_| true) {
        assert!(begin.elapsed() < SOON, "not in time: it is gone");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn documents_go_with_their_server_and_come_with_another() {
    let (one, other) = (remote("one", Arc::default()).await, remote("other", Arc::default()).await);
    let data = tempdir().expect("a directory");
    let program = Program::start_with(data.path(), &[&flag("one", &one), &flag("other", &other)]).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let path = format!("{API_SERVICES}/{NAME}");
    write(&mut admin, Method::POST, API_SERVICES, &api_service("one", &one)).await;
    is_told_by(&mut admin, "one").await;
    // Another server: what the first one said is nobody's any more.
    write(&mut admin, Method::PATCH, &path, &api_service("other", &other)).await;
    let answer = admin.get(LEAF).await.expect("an answer");
    assert!(answer.status == 404 || parse(&answer.body)["info"]["title"] == "other", "{}", answer.body);
    is_told_by(&mut admin, "other").await;
    // Gone, and back.
    write(&mut admin, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(admin.get(LEAF).await.expect("an answer").status, 404);
    write(&mut admin, Method::POST, API_SERVICES, &api_service("one", &one)).await;
    is_told_by(&mut admin, "one").await;
    // This server's own, which has nothing of the kind.
    let patch = json!({"spec": {"service": null, "caBundle": null}});
    write(&mut admin, Method::PATCH, &path, &patch).await;
    assert_eq!(admin.get(LEAF).await.expect("an answer").status, 404);
    let v2 = admin.get("/openapi/v2").await.expect("an answer").body;
    assert!(!v2.contains(THINGS));
}

/// Nothing but time makes this server ask again.
#[tokio::test]
async fn an_upgrade_and_a_downgrade_are_noticed_with_the_next_poll() {
    let new = Arc::new(AtomicBool::new(false));
    let old = remote("old", new.clone()).await;
    let data = tempdir().expect("a directory");
    let program = Program::start_with(data.path(), &[&flag("old", &old)]).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    write(&mut admin, Method::POST, API_SERVICES, &api_service("old", &old)).await;
    assert_eq!(is_told_by(&mut admin, "old").await["info"]["x-converted-from"], "2.0");
    for is_new in [true, false] {
        new.store(is_new, Ordering::Relaxed);
        let begin = Instant::now();
        loop {
            let document = parse(&admin.get(LEAF).await.expect("an answer").body);
            if document["info"]["x-converted-from"].is_null() == is_new {
                break;
            }
            assert!(begin.elapsed() < ONE_POLL, "not in time: is_new is {is_new}, but {document}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
