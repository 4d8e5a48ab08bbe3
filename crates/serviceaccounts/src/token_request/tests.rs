use concord_meta::options::ReadAt;

use super::*;
use crate::{
    jwt::Unverified,
    testing::{P256, World, signing_key},
};

fn payload(answer: &Object) -> Value {
    let token = answer["status"]["token"].as_str().expect("a token");
    let token = Unverified::parse(token).expect("a token");
    Value::Object(token.verify(signing_key(P256).public()).expect("signed").clone())
}

/// The world with an account `sa`, its pod `p` on the node `n`, and the pod `q` of another account.
async fn world() -> World {
    let world = World::new().await;
    world.account("sa").await;
    world.account("other").await;
    world.create("nodes", "", json!({"metadata": {"name": "n"}})).await;
    let spec =
        json!({"serviceAccountName": "sa", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    world.create("pods", "ns", json!({"metadata": {"name": "p"}, "spec": spec})).await;
    world.pod("q", "other").await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered_as_upstream_does() {
    let world = world().await;
    let answer = world.request("sa", json!({"metadata": {"labels": {"a": "b"}}})).await.expect("a token");
    let accounts = world.resource("serviceaccounts");
    let at = ObjectName { namespace: "ns", name: "sa" };
    let item = world.registry.get(accounts.storage().expect("stored"), at, ReadAt::MostRecent).await;
    let account = accounts.object(&item.expect("there")).expect("an object");
    let said = metadata(&answer);
    assert_eq!((said.name(), said.namespace(), said.uid()), ("sa", "ns", metadata(&account).uid()));
    assert_eq!(said.labels().map(|labels| &labels["a"]), Some(&json!("b")));
    let issuer = "https://kubernetes.default.svc.cluster.local";
    let spec = json!({"audiences": [issuer], "expirationSeconds": 3600, "boundObjectRef": null});
    assert_eq!(answer["spec"], spec);
    let claims = payload(&answer);
    let created = Time::parse(said.text("creationTimestamp")).expect("a time").unix;
    let expires = answer["status"]["expirationTimestamp"].as_str().and_then(Time::parse).expect("a time");
    assert_eq!(
        (expires.unix, &claims["exp"], &claims["nbf"]),
        (created + 3600, &json!(created + 3600), &json!(created))
    );
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!(issuer), &json!([issuer])));
    assert_eq!(claims["jti"].as_str().map(str::len), Some(36));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_pod_names_its_node() {
    let world = world().await;
    let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p"});
    let spec = json!({"expirationSeconds": 3607, "boundObjectRef": reference});
    let answer = world.request("sa", json!({"spec": spec})).await.expect("a token");
    let claims = payload(&answer);
    let private = &claims["kubernetes.io"];
    assert_eq!((&private["pod"]["name"], &private["node"]["name"]), (&json!("p"), &json!("n")));
    let issued = claims["iat"].as_i64().expect("a time");
    // Those that pods get without asking live longer, and say when they should have ended.
    assert_eq!((&claims["exp"], &private["warnafter"]), (&json!(issued + 31_536_000), &json!(issued + 3607)));
    let user = world.who(answer["status"]["token"].as_str().expect("text")).await;
    let extra = user.expect("good").expect("known").extra.clone();
    let keys: Vec<&str> =
        extra.keys().map(|key| key.trim_start_matches("authentication.kubernetes.io/")).collect();
    assert_eq!(keys, ["credential-id", "node-name", "node-uid", "pod-name", "pod-uid"]);
    for other in
        [json!({"expirationSeconds": 3608}), json!({"expirationSeconds": 3607, "audiences": ["vault"]})]
    {
        let mut spec = other;
        spec["boundObjectRef"] = json!({"kind": "Pod", "apiVersion": "v1", "name": "p"});
        let claims = payload(&world.request("sa", json!({"spec": spec})).await.expect("a token"));
        assert_eq!(claims["kubernetes.io"].get("warnafter"), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_upstreams() {
    let world = world().await;
    let bound = |kind: &str, version: &str, name: &str| json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": version, "name": name, "uid": "x"}}});
    let invalid =
        "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: ";
    for (account, body, code, message) in [
        ("nobody", json!({}), 404, "serviceaccounts \"nobody\" not found".to_owned()),
        (
            "sa",
            json!({"spec": {"expirationSeconds": 599}}),
            422,
            format!("{invalid}599: may not specify a duration less than 10 minutes"),
        ),
        (
            "sa",
            json!({"spec": {"expirationSeconds": 4_294_967_297_i64}}),
            422,
            format!("{invalid}4294967297: may not specify a duration larger than 2^32 seconds"),
        ),
        (
            "sa",
            json!({"metadata": {"name": "other"}}),
            422,
            "TokenRequest.authentication.k8s.io \"sa\" is invalid: metadata.name: Invalid value: \"other\": must match \
             the service account name if specified"
                .to_owned(),
        ),
        ("sa", bound("Pod", "v1", "none"), 404, "pods \"none\" not found".to_owned()),
        ("sa", bound("Secret", "v1", "none"), 404, "secrets \"none\" not found".to_owned()),
        ("sa", bound("Node", "v1", "none"), 404, "nodes \"none\" not found".to_owned()),
        (
            "sa",
            bound("Pod", "v1", "q"),
            400,
            "cannot bind token for serviceaccount \"sa\" to pod running with different serviceaccount name.".to_owned(),
        ),
        (
            "sa",
            bound("Pod", "v1", "p"),
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (x) does not match the \
             UID in record. The object might have been deleted and then recreated"
                .to_owned(),
        ),
        (
            "sa",
            bound("Deployment", "apps/v1", "d"),
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment".to_owned(),
        ),
        ("sa", bound("", "", ""), 400, "cannot bind token to object of type /, Kind=".to_owned()),
    ] {
        let refused = world.request(account, body).await.expect_err(&message);
        assert_eq!((refused.code, refused.message), (code, message));
    }
    let refused = world.request("sa", json!({"metadata": {"uid": "x"}})).await.expect_err("another account");
    assert!(
        refused.message.starts_with(
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"sa\": the UID in the token request \
             (x) does not match the UID of the service account ("
        ),
        "{}",
        refused.message
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_live_no_longer_than_the_operator_wants() {
    let max_expiration = Some(std::time::Duration::from_secs(7200));
    let world = World::with(Config { max_expiration, ..Config::default() }).await;
    world.account("sa").await;
    let answer = world.request("sa", json!({"spec": {"expirationSeconds": 7201}})).await.expect("a token");
    assert_eq!(answer["spec"]["expirationSeconds"], 7200);
    let claims = payload(&answer);
    assert_eq!(claims["exp"].as_i64(), claims["iat"].as_i64().map(|issued| issued + 7200));
}
