//! What every namespace has for the sake of its pods, and the tokens in Secrets, with the built-in kinds.

mod support;

use std::sync::Arc;

use concord_apis::{Settings, api_set};
use concord_controllers::{Config, Controllers, ServiceAccountsConfig};
use concord_registry::Part;
use concord_schema::{decode_base64, encode_base64};
use concord_serviceaccounts::{SigningKey, TokenGenerator};
use serde_json::{Value, json};

use crate::support::{Cluster, Server, config};

const ROOT_CA: &str = "the authority";
const KEY: &[u8] = include_bytes!("../../serviceaccounts/testdata/p256.pem");

async fn start() -> (Cluster, Server, Controllers) {
    let cluster = Cluster::new();
    let server = cluster.server_of(Arc::new(api_set(&Settings::default()))).await;
    let key = SigningKey::from_pem(KEY).expect("a key");
    let generator = Arc::new(TokenGenerator::new(key, "https://issuer"));
    let accounts = ServiceAccountsConfig { generator, root_ca: ROOT_CA.to_owned() };
    let controllers = server.start_as(Config { service_accounts: Some(accounts), ..config() });
    (cluster, server, controllers)
}

fn is_there(object: Option<&Value>) -> bool {
    object.is_some()
}

fn is_gone(object: Option<&Value>) -> bool {
    object.is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_namespace_gets_and_keeps_what_pods_need() {
    let (_cluster, server, controllers) = start().await;
    server.create("/namespaces//ns", json!({})).await.expect("created");
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease", "ns"] {
        server.until(&format!("/serviceaccounts/{namespace}/default"), is_there).await;
        server.until(&format!("/configmaps/{namespace}/kube-root-ca.crt"), is_there).await;
    }
    let (account, map) = ("/serviceaccounts/ns/default", "/configmaps/ns/kube-root-ca.crt");
    let before = server.get(account).await.expect("there");
    server.delete(account).await.expect("deleted");
    let other = |object: Option<&Value>| {
        object.is_some_and(|object| object["metadata"]["uid"] != before["metadata"]["uid"])
    };
    server.until(account, other).await;
    server
        .merge(map, Part::Main, json!({"data": {"ca.crt": "somebody else's", "more": "x"}}))
        .await
        .expect("changed");
    let right =
        |object: Option<&Value>| object.is_some_and(|object| object["data"] == json!({"ca.crt": ROOT_CA}));
    server.until(map, right).await;
    server.delete(map).await.expect("deleted");
    let again = server.until(map, right).await.expect("there");
    let description = again["metadata"]["annotations"]["kubernetes.io/description"].as_str();
    assert!(description.is_some_and(|text| text.starts_with("Contains a CA bundle")), "{description:?}");
    // Nothing comes back in a namespace that is going.
    server.delete("/namespaces//ns").await.expect("begins");
    server.until("/namespaces//ns", is_gone).await;
    controllers.shutdown().await;
}

fn token_secret(account: &str) -> Value {
    json!({
        "metadata": {"annotations": {"kubernetes.io/service-account.name": account}},
        "type": "kubernetes.io/service-account-token",
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_filled_and_go_with_their_account() {
    let (_cluster, server, controllers) = start().await;
    controllers.essentials().await;
    server
        .create("/serviceaccounts/default/robot", json!({"secrets": [{"name": "token"}, {"name": "own"}]}))
        .await
        .expect("created");
    server.create("/secrets/default/token", token_secret("robot")).await.expect("created");
    server.create("/secrets/default/own", json!({})).await.expect("created");
    let is_filled = |object: Option<&Value>| object.is_some_and(|object| object["data"]["token"].is_string());
    let filled = server.until("/secrets/default/token", is_filled).await.expect("there");
    let uid = server.get("/serviceaccounts/default/robot").await.expect("there")["metadata"]["uid"].clone();
    assert_eq!(filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"], uid);
    let data = |name: &str| {
        decode_base64(filled["data"][name].as_str().unwrap_or_default().as_bytes()).expect("base64")
    };
    assert_eq!((data("ca.crt"), data("namespace")), (ROOT_CA.into(), b"default".to_vec()));
    // What is taken out is put in again.
    server
        .merge("/secrets/default/token", Part::Main, json!({"data": {"namespace": null}}))
        .await
        .expect("changed");
    let namespace = encode_base64(b"default");
    server
        .until("/secrets/default/token", |object| {
            object.is_some_and(|object| object["data"]["namespace"] == namespace)
        })
        .await;
    // One that nobody can ever fill goes away.
    server.create("/secrets/default/orphan", token_secret("nobody")).await.expect("created");
    server.until("/secrets/default/orphan", is_gone).await;
    // An account forgets a Secret that is gone.
    server.delete("/secrets/default/token").await.expect("deleted");
    let left =
        |object: Option<&Value>| object.is_some_and(|object| object["secrets"] == json!([{"name": "own"}]));
    server.until("/serviceaccounts/default/robot", left).await;
    server.create("/secrets/default/second", token_secret("robot")).await.expect("created");
    server.until("/secrets/default/second", is_filled).await;
    server.delete("/serviceaccounts/default/robot").await.expect("deleted");
    server.until("/secrets/default/second", is_gone).await;
    assert!(server.get("/secrets/default/own").await.is_some(), "what holds no token stays");
    controllers.shutdown().await;
}
