//! Tokens of service accounts, as the kube client and kubectl meet them.

use std::{path::Path, process::Command, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview, TokenReviewSpec, UserInfo},
    core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount},
};
use kube::{
    Api, Client, Config, Resource,
    api::{DeleteParams, PostParams},
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, SOON};

async fn client_of(data: &Path, change: impl FnOnce(&mut Kubeconfig)) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(data.join("admin.kubeconfig")).expect("a kubeconfig");
    change(&mut kubeconfig);
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn admin(data: &Path) -> Client {
    client_of(data, |_| {}).await
}

/// A client that has a token and nothing else.
async fn bearer(data: &Path, token: &str) -> Client {
    let info = serde_json::from_value::<AuthInfo>(json!({"token": token})).expect("credentials");
    client_of(data, |kubeconfig| kubeconfig.auth_infos[0].auth_info = Some(info)).await
}

/// Who the server takes the bearer of a token for; `None` for somebody it does not let in.
async fn who(data: &Path, token: &str) -> Option<UserInfo> {
    let reviews: Api<SelfSubjectReview> = Api::all(bearer(data, token).await);
    match reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await {
        Ok(review) => review.status.and_then(|status| status.user_info),
        Err(kube::Error::Api(status)) if status.code == 401 => None,
        Err(error) => panic!("{error}"),
    }
}

async fn request(accounts: &Api<ServiceAccount>, name: &str, spec: Value) -> TokenRequest {
    let request = serde_json::from_value(json!({"spec": spec})).expect("a request");
    accounts.create_token_request(name, &PostParams::default(), &request).await.expect("a token")
}

fn token_of(request: TokenRequest) -> String {
    request.status.and_then(|status| status.token).expect("a token")
}

fn of<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object")
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    api.create(&PostParams::default(), &of(object)).await.expect("created")
}

/// Waits until what is looked for is there.
async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, found).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_asked_for_used_and_ends_with_its_pod() {
    let data = tempdir().expect("a directory");
    let data = data.path();
    let server = Program::start(data).await;
    server.ready(200).await;
    let admin = admin(data).await;
    create(&Api::<Namespace>::all(admin.clone()), json!({"metadata": {"name": "tokens"}})).await;
    // The pod waits for the account that every namespace is given.
    let pods: Api<Pod> = Api::namespaced(admin.clone(), "tokens");
    let pod = create(
        &pods,
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    )
    .await;
    let spec = pod.spec.expect("a spec");
    assert_eq!(spec.service_account_name.as_deref(), Some("default"));
    assert!(spec.volumes.is_some_and(|volumes| volumes[0].name.starts_with("kube-api-access-")));

    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "tokens");
    let free = token_of(request(&accounts, "default", json!({"audiences": []})).await);
    let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p"});
    let bound = json!({"audiences": [], "expirationSeconds": 3607, "boundObjectRef": reference});
    let bound = token_of(request(&accounts, "default", bound).await);
    let user = who(data, &free).await.expect("let in");
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:tokens:default"));
    let extra = who(data, &bound).await.expect("let in").extra.unwrap_or_default();
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], ["p"]);

    let reviews: Api<TokenReview> = Api::all(admin.clone());
    let spec = TokenReviewSpec { token: bound.clone(), audiences: None };
    let review = TokenReview { spec, ..TokenReview::default() };
    let answer = reviews.create(&PostParams::default(), &review).await.expect("a review");
    assert_eq!(answer.status.and_then(|status| status.authenticated), Some(true));

    pods.delete("p", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    until("the token ends with the pod", || async { who(data, &bound).await.is_none().then_some(()) }).await;
    let answer = reviews.create(&PostParams::default(), &review).await.expect("a review").status;
    let answer = answer.expect("a status");
    assert_eq!(
        (answer.authenticated.unwrap_or_default(), answer.user.unwrap_or_default()),
        (false, UserInfo::default())
    );
    assert!(who(data, &free).await.is_some(), "the other one did not");
    assert_eq!(who(data, &format!("{free}A")).await, None);

    // A server with the same keys goes on accepting them.
    drop(server);
    let server = Program::start(data).await;
    server.ready(200).await;
    assert!(who(data, &free).await.is_some(), "tokens survive a restart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_accounts_are_filled_and_namespaces_know_whom_to_trust() {
    let data = tempdir().expect("a directory");
    let data = data.path();
    let (policy, log) = (data.join("policy.yaml"), data.join("audit.log"));
    let rules = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
    std::fs::write(&policy, rules).expect("written");
    let audit =
        [format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
    let server = Program::start_with(data, &audit.each_ref().map(String::as_str)).await;
    server.ready(200).await;
    let admin = admin(data).await;
    let ca = std::fs::read_to_string(data.join("pki/ca.crt")).expect("an authority");
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), "default");
    let trusted = || async {
        let map = maps.get_opt("kube-root-ca.crt").await.expect("an answer")?;
        map.data.filter(|data| data["ca.crt"] == ca)
    };
    until("the authority is published", trusted).await;

    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "default");
    let secrets: Api<Secret> = Api::namespaced(admin.clone(), "default");
    create(&accounts, json!({"metadata": {"name": "robot"}})).await;
    let annotations = json!({"kubernetes.io/service-account.name": "robot"});
    let secret = json!({
        "metadata": {"name": "robot-token", "annotations": annotations}, "type": "kubernetes.io/service-account-token",
    });
    create(&secrets, secret).await;
    let filled = until("the secret is filled", || async {
        let secret = secrets.get("robot-token").await.expect("there");
        secret.data.filter(|data| data.contains_key("token"))
    });
    let filled = filled.await;
    assert_eq!(
        (filled["ca.crt"].0.as_slice(), filled["namespace"].0.as_slice()),
        (ca.as_bytes(), &b"default"[..])
    );
    let token = String::from_utf8(filled["token"].0.clone()).expect("text");
    let user = who(data, &token).await.expect("let in");
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:robot"));
    accounts.delete("robot", &DeleteParams::default()).await.expect("deleted");
    until("the secret goes with the account", || async {
        secrets.get_opt("robot-token").await.expect("an answer").is_none().then_some(())
    })
    .await;
    until("the token ends with the account", || async { who(data, &token).await.is_none().then_some(()) })
        .await;
    server.signal("TERM");
    server.ended().await;
    let audited = std::fs::read_to_string(log).expect("an audit log");
    for told in [
        r#""authentication.k8s.io/legacy-token":"system:serviceaccount:default:robot""#,
        r#""authentication.k8s.io/legacy-token-manual-secret":"robot-token""#,
    ] {
        assert!(audited.contains(told), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_creates_a_token_that_works() {
    let data = tempdir().expect("a directory");
    let data = data.path();
    let kubectl = |arguments: &[&str]| {
        let mut kubectl = Command::new("kubectl");
        kubectl.env("KUBECONFIG", data.join("admin.kubeconfig")).env("HOME", data).args(arguments).output()
    };
    if kubectl(&["version", "--client"]).is_err() {
        eprintln!("skipped: there is no kubectl on PATH");
        return;
    }
    let server = Program::start(data).await;
    server.ready(200).await;
    let admin = admin(data).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin, "default");
    until("the account is there", || async { accounts.get_opt("default").await.expect("an answer") }).await;
    let output = kubectl(&["create", "token", "default", "--duration=20m"]).expect("kubectl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let token = String::from_utf8(output.stdout).expect("text");
    let user = who(data, token.trim()).await.expect("let in");
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:default"));
}
