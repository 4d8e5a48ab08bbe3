//! Conversion by webhook: when it works, and in all the ways in which it does not.

mod selection;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use concord_testing::webhook::{Asked, Certificate, Reply, WebhookServer};
use futures_util::StreamExt as _;
use http::Request;
use k8s_openapi::{
    ByteString,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceConversion, CustomResourceDefinition, WebhookClientConfig, WebhookConversion,
    },
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{define, gadget, gadgets, kind, refusal};
use crate::support::SOON;

const GROUP: &str = "converted.example.com";

/// What the webhook does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Up,
    Slow,
    WrongUid,
    WrongCount,
    Renamed,
    OtherUid,
    Refusing,
    Failing,
    HangingUp,
    Silent,
}

/// The ways in which it does not work, and what the client reads of them.
const BROKEN: [(Mode, &str); 7] = [
    (Mode::WrongUid, "failed: expected response.uid="),
    (Mode::WrongCount, "returned 0 objects, expected 1"),
    (Mode::Renamed, "returned invalid object: must have the same name: "),
    (Mode::OtherUid, "returned invalid object: must have the same UID: "),
    (Mode::Refusing, "failed: cannot convert"),
    (Mode::Failing, "failed: "),
    (Mode::HangingUp, "failed: Post \"https://localhost:"),
];

struct Hook {
    server: WebhookServer,
    mode: Arc<Mutex<Mode>>,
}

impl Hook {
    async fn start() -> Self {
        let mode = Arc::new(Mutex::new(Mode::Up));
        let shared = mode.clone();
        let answer =
            move |asked: &Asked| answer(asked, *shared.lock().unwrap_or_else(PoisonError::into_inner));
        let server = WebhookServer::start(Certificate::For("localhost"), answer).await.expect("a webhook");
        Self { server, mode }
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// How many objects each call since the last time was about.
    fn calls(&self) -> Vec<usize> {
        let count = |asked: Asked| {
            let review: Value = serde_json::from_slice(&asked.body).expect("a review");
            review["request"]["objects"].as_array().map_or(0, Vec::len)
        };
        self.server.take_asked().into_iter().map(count).collect()
    }
}

/// In v1 there is a host, in v2 a hostname.
fn answer(asked: &Asked, mode: Mode) -> Reply {
    let review: Value = serde_json::from_slice(&asked.body).expect("a review");
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().expect("a version");
    let (old, new) = if to.ends_with("/v2") { ("host", "hostname") } else { ("hostname", "host") };
    let mut objects = request["objects"].as_array().expect("objects").clone();
    for object in &mut objects {
        object["apiVersion"] = json!(to);
        if let Some(host) = object["spec"].as_object_mut().and_then(|spec| spec.remove(old)) {
            object["spec"][new] = host;
        }
        match mode {
            Mode::Renamed => object["metadata"]["name"] = json!("other"),
            Mode::OtherUid => object["metadata"]["uid"] = json!("other"),
            _ => {}
        }
    }
    let mut response = json!({
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
    });
    match mode {
        Mode::Slow => std::thread::sleep(Duration::from_millis(200)),
        Mode::WrongUid => response["uid"] = json!("other"),
        Mode::WrongCount => response["convertedObjects"] = json!([]),
        Mode::Refusing => response["result"] = json!({"status": "Failure", "message": "cannot convert"}),
        Mode::Failing => return Reply::new("500 Internal Server Error", "no"),
        Mode::HangingUp => return Reply::hang_up(),
        Mode::Silent => return Reply::never(),
        _ => {}
    }
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response,
    });
    Reply::ok(&review.to_string())
}

fn version(name: &str, storage: bool, field: &str) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": format!(".spec.{field}")}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                field: {"type": "string", "maxLength": 9}, "size": {"type": "integer"},
            }},
        }}},
    })
}

fn definition(hook: &Hook) -> CustomResourceDefinition {
    let versions = json!([version("v1", true, "host"), version("v2", false, "hostname")]);
    let mut definition = gadgets(GROUP, &versions);
    definition.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig {
                ca_bundle: Some(ByteString(hook.server.authority.clone().into_bytes())),
                url: Some(format!("https://localhost:{}/convert", hook.server.port)),
                ..WebhookClientConfig::default()
            }),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    });
    definition
}

/// The kind in both versions.
struct Gadgets {
    client: Client,
    v1: Api<DynamicObject>,
    v2: Api<DynamicObject>,
}

impl Gadgets {
    fn new(client: &Client) -> Self {
        let api = |version| Api::namespaced_with(client.clone(), "default", &kind(GROUP, version, "Gadget"));
        Self { client: client.clone(), v1: api("v1"), v2: api("v2") }
    }

    async fn make(&self, version: &str, name: &str, spec: Value) -> Result<DynamicObject, kube::Error> {
        let api = if version == "v1" { &self.v1 } else { &self.v2 };
        api.create(&PostParams::default(), &gadget(&kind(GROUP, version, "Gadget"), name, &spec)).await
    }
}

pub(super) async fn objects_are_converted_by_a_webhook(client: &Client, once: &Client) {
    let hook = Hook::start().await;
    define(client, &definition(&hook)).await;
    let both = Gadgets::new(client);
    reads_and_writes(&hook, &both).await;
    owners_in_two_versions(&both).await;
    selection::fields_are_those_of_the_version(&hook, &both).await;
    selection::what_there_is_is_converted_at_once(&hook, &both).await;
    silent(&hook, &both, once).await;
    for (mode, text) in BROKEN {
        broken(&hook, &both, mode, text).await;
    }
    gone(hook, &both).await;
}

async fn reads_and_writes(hook: &Hook, both: &Gadgets) {
    let made = both.make("v2", "one", json!({"hostname": "a", "host": "b"})).await.expect("created");
    assert_eq!(made.data["spec"], json!({"hostname": "a"}));
    assert_eq!(both.v1.get("one").await.expect("there").data["spec"], json!({"host": "a"}));
    assert_eq!(hook.calls(), [1, 1], "there and back");
    assert_eq!(both.v2.get("one").await.expect("there").data["spec"], json!({"hostname": "a"}));
    both.make("v1", "two", json!({"host": "b"})).await.expect("created");
    both.make("v1", "three", json!({"host": "c"})).await.expect("created");
    assert_eq!(hook.calls(), [0; 0], "what was converted is remembered, and what is stored in v1 is v1");

    let list = both.v2.list(&ListParams::default()).await.expect("a list");
    let hosts: Vec<&Value> = list.items.iter().map(|object| &object.data["spec"]["hostname"]).collect();
    assert_eq!(hosts, ["a", "c", "b"]);
    assert_eq!(hook.calls(), [2], "all at once");

    hook.set(Mode::Slow);
    let since = list.metadata.resource_version.unwrap_or_default();
    let mut events = Box::pin(both.v2.watch(&WatchParams::default(), &since).await.expect("a watch"));
    let patch = Patch::Merge(json!({"spec": {"hostname": "d"}}));
    let changed = both.v2.patch("two", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!((&changed.data["spec"], changed.metadata.generation), (&json!({"hostname": "d"}), Some(2)));
    assert_eq!(both.v1.get("two").await.expect("there").data["spec"], json!({"host": "d"}));
    let event = timeout(SOON, events.next()).await.expect("in time").expect("an event").expect("a good one");
    assert!(matches!(event, WatchEvent::Modified(object) if object.data["spec"] == json!({"hostname": "d"})));
    hook.set(Mode::Up);

    let bad = both.make("v2", "bad", json!({"hostname": "much too long"})).await.expect_err("too long");
    assert_eq!(refusal(bad).code, 422, "each version has its own schema");
}

/// Owners of fields keep them, in whichever version others write.
async fn owners_in_two_versions(both: &Gadgets) {
    let apply = |version: &str, spec: Value| gadget(&kind(GROUP, version, "Gadget"), "owned", &spec);
    let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));
    let config = apply("v1", json!({"host": "a"}));
    both.v1.patch("owned", &first, &Patch::Apply(&config)).await.expect("applied");
    let config = apply("v2", json!({"hostname": "b"}));
    let conflict = both.v2.patch("owned", &second, &Patch::Apply(&config)).await.expect_err("a conflict");
    let status = refusal(conflict);
    assert_eq!(status.code, 409);
    assert!(status.message.contains("conflict with \"first\""), "{}", status.message);
    let config = apply("v2", json!({"size": 1}));
    let applied = both.v2.patch("owned", &second, &Patch::Apply(&config)).await.expect("applied");
    assert_eq!(applied.data["spec"], json!({"hostname": "a", "size": 1}));
    // Who applies less gives up the rest.
    let config = apply("v1", json!({}));
    let applied = both.v1.patch("owned", &first, &Patch::Apply(&config)).await.expect("applied");
    assert_eq!(applied.data["spec"], json!({"size": 1}));
}

/// A webhook that does not work breaks what needs it, and nothing is stored that way.
async fn broken(hook: &Hook, both: &Gadgets, mode: Mode, text: &str) {
    let name = format!("{mode:?}").to_lowercase();
    // All that is there is remembered from here on, so that one object has to be converted.
    both.v2.list(&ListParams::default()).await.expect("a list");
    hook.set(mode);
    both.make("v1", &name, json!({"host": "a"})).await.expect("v1 needs no webhook");
    let told = |error: kube::Error| {
        let status = refusal(error);
        assert_eq!(status.code, 500, "{mode:?}");
        let start = format!("conversion webhook for {GROUP}/");
        assert!(status.message.starts_with(&start) && status.message.contains(text), "{}", status.message);
    };
    told(both.v2.get(&name).await.expect_err("cannot be read"));
    told(both.v2.list(&ListParams::default()).await.expect_err("cannot be listed"));
    let patch = Patch::Merge(json!({"spec": {"hostname": "b"}}));
    told(both.v2.patch(&name, &PatchParams::default(), &patch).await.expect_err("cannot be patched"));
    told(both.make("v2", "new", json!({"hostname": "a"})).await.expect_err("cannot be stored"));
    assert_eq!(both.v1.get(&name).await.expect("there").data["spec"], json!({"host": "a"}));
    assert!(both.v1.get_opt("new").await.expect("an answer").is_none(), "nothing was stored");
    hook.set(Mode::Up);
    assert_eq!(both.v2.get(&name).await.expect("there").data["spec"], json!({"hostname": "a"}));
    let changed = both.v2.patch(&name, &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(changed.data["spec"], json!({"hostname": "b"}));
}

/// Who needs a webhook that never answers waits for as long as the request may take, and nobody else does.
async fn silent(hook: &Hook, both: &Gadgets, once: &Client) {
    let since = both.v2.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
    let since = since.unwrap_or_default();
    hook.set(Mode::Silent);
    both.make("v1", "silent", json!({"host": "a"})).await.expect("v1 needs no webhook");
    let path = format!("/apis/{GROUP}/v2/namespaces/default/gadgets/silent?timeout=1s");
    let reads = (0..4).map(|_| async {
        let request = Request::get(&path).body(Vec::new()).expect("a request");
        refusal(once.request_text(request).await.expect_err("it waits in vain")).code
    });
    let others = async {
        assert_eq!(both.v1.get("silent").await.expect("there").data["spec"], json!({"host": "a"}));
        let patch = Patch::Merge(json!({"spec": {"host": "b"}}));
        both.v1.patch("silent", &PatchParams::default(), &patch).await.expect("patched");
    };
    let params = WatchParams::default().timeout(1);
    let watch = async {
        let mut events = Box::pin(both.v2.watch(&params, &since).await.expect("a watch"));
        events.next().await.is_none()
    };
    let all = futures_util::future::join3(futures_util::future::join_all(reads), others, watch);
    let (codes, (), ended) = timeout(SOON, all).await.expect("nobody waits for ever");
    assert_eq!(codes, [504; 4]);
    assert!(ended, "a watch ends in its time");

    hook.set(Mode::Up);
    let mut events = Box::pin(both.v2.watch(&WatchParams::default(), &since).await.expect("a watch"));
    for hostname in ["a", "b"] {
        let event =
            timeout(SOON, events.next()).await.expect("in time").expect("an event").expect("a good one");
        let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else { panic!("{event:?}") };
        assert_eq!(object.data["spec"], json!({"hostname": hostname}), "nothing is lost");
    }
}

/// Without the webhook objects can still be deleted, and their definition too.
async fn gone(hook: Hook, both: &Gadgets) {
    both.make("v1", "last", json!({"host": "a"})).await.expect("created");
    drop(hook);
    assert_eq!(refusal(both.v2.get("last").await.expect_err("nobody converts it")).code, 500);
    both.v2.delete("last", &DeleteParams::default()).await.expect("deleted");
    assert!(both.v1.get_opt("last").await.expect("an answer").is_none());
    let api: Api<CustomResourceDefinition> = Api::all(both.client.clone());
    let name = format!("gadgets.{GROUP}");
    api.delete(&name, &DeleteParams::default()).await.expect("being deleted");
    let ended = async {
        while api.get_opt(&name).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, ended).await.expect("it goes with all its objects");
}
