//! Admission plugins of built-in kinds, as users meet them. Texts and codes are what kube-apiserver answers.

use std::{fs, time::Duration};

use concord_server::test_client::{Protocol, TestClient};
use futures_util::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{Program, client, refused, send};

struct World {
    admin: TestClient,
    program: Program,
    data: TempDir,
}

impl World {
    async fn start(more: &[&str]) -> Self {
        let data = tempdir().expect("a directory");
        let program = Program::start_with(data.path(), more).await;
        program.ready(200).await;
        let admin = program.admin(Protocol::Http2).await;
        Self { admin, program, data }
    }

    async fn send(&mut self, method: Method, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
        send(&mut self.admin, method, path, body).await
    }

    async fn made(&mut self, path: &str, body: &Value) -> Value {
        let (status, answer, _) = self.send(Method::POST, path, body).await;
        assert_eq!(status, 201, "{answer}");
        answer
    }

    /// The message of a refusal.
    async fn refused(&mut self, path: &str, body: &Value) -> String {
        let (status, answer, _) = self.send(Method::POST, path, body).await;
        assert_eq!(status, 403, "{answer}");
        answer["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until what is at a path is as it should be.
    async fn until(&mut self, path: &str, is_right: impl Fn(u16, &Value) -> bool) -> Value {
        for _ in 0..600 {
            let (status, answer, _) = self.send(Method::GET, path, &Value::Null).await;
            if is_right(status, &answer) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{path} never became right");
    }

    async fn namespace(&mut self, name: &str, labels: &Value) {
        self.made("/api/v1/namespaces", &json!({"metadata": {"name": name, "labels": labels}})).await;
        // Pods need the account.
        self.until(&format!("/api/v1/namespaces/{name}/serviceaccounts/default"), |status, _| status == 200)
            .await;
    }
}

const CONFIGURATION: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
    exemptions: {namespaces: [free]}
";

fn pod(name: &str, cpu: &str) -> Value {
    let requests = if cpu.is_empty() { json!({}) } else { json!({"cpu": cpu}) };
    let container = json!({"name": "c", "image": "i", "resources": {"requests": requests}});
    json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_uses_no_more_than_its_quota() {
    let mut world = World::start(&[]).await;
    world.namespace("q", &json!({})).await;
    let (quotas, pods) = ("/api/v1/namespaces/q/resourcequotas", "/api/v1/namespaces/q/pods");
    let hard = json!({"pods": "2", "requests.cpu": "1", "secrets": "5"});
    world.made(quotas, &json!({"metadata": {"name": "all"}, "spec": {"hard": hard}})).await;
    // It holds from then on, whether or not somebody has counted.
    assert_eq!(
        world.refused(pods, &pod("vague", "")).await,
        "pods \"vague\" is forbidden: failed quota: all: must specify requests.cpu for: c"
    );
    assert_eq!(
        world.refused(pods, &pod("greedy", "1500m")).await,
        "pods \"greedy\" is forbidden: exceeded quota: all, requested: requests.cpu=1500m, used: requests.cpu=0, limited: \
         requests.cpu=1"
    );
    world.made(pods, &pod("one", "400m")).await;
    world.made(pods, &pod("two", "400m")).await;
    let used =
        |quota: &Value, name: &str| quota["status"]["used"][name].as_str().unwrap_or_default().to_owned();
    let quota = world.send(Method::GET, &format!("{quotas}/all"), &Value::Null).await.1;
    assert_eq!((used(&quota, "pods"), used(&quota, "requests.cpu")), ("2".to_owned(), "800m".to_owned()));
    assert_eq!(quota["status"]["hard"], hard);
    assert_eq!(
        world.refused(pods, &pod("three", "300m")).await,
        "pods \"three\" is forbidden: exceeded quota: all, requested: pods=1,requests.cpu=300m, used: pods=2,requests.cpu=800m, \
         limited: pods=2,requests.cpu=1"
    );
    // What goes is given back.
    assert_eq!(world.send(Method::DELETE, &format!("{pods}/one"), &Value::Null).await.0, 200);
    world.until(&format!("{quotas}/all"), |_, quota| used(quota, "pods") == "1").await;
    world.made(pods, &pod("three", "300m")).await;
    // A pod that has ended uses nothing, although it is still there.
    let ended = json!({"status": {"phase": "Succeeded"}});
    let patched = merge(&mut world.admin, &format!("{pods}/two/status"), &ended).await;
    assert_eq!(patched, 200);
    world.until(&format!("{quotas}/all"), |_, quota| used(quota, "requests.cpu") == "300m").await;
    // However many come at once, no more than allowed are made.
    let secrets: Api<Secret> = Api::namespaced(client(world.data.path()).await, "q");
    let made = join_all((0..12).map(|at| {
        let secret: Secret =
            serde_json::from_value(json!({"metadata": {"name": format!("s{at}")}})).expect("a secret");
        let secrets = secrets.clone();
        async move { secrets.create(&PostParams::default(), &secret).await }
    }));
    let made: Vec<bool> = made.await.iter().map(Result::is_ok).collect();
    assert_eq!(made.iter().filter(|made| **made).count(), 5, "{made:?}");
}

async fn merge(admin: &mut TestClient, path: &str, patch: &Value) -> u16 {
    let headers = [("content-type", "application/merge-patch+json")];
    admin.exchange(Method::PATCH, path, &headers, patch.to_string().into()).await.expect("an answer").status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_keep_to_the_level_of_their_namespace() {
    let place = tempdir().expect("a directory");
    let file = place.path().join("admission.yaml");
    fs::write(&file, CONFIGURATION).expect("written");
    let mut world = World::start(&[&format!("--admission-control-config-file={}", file.display())]).await;
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted",
    });
    world.namespace("p", &labels).await;
    let mut bad = pod("bad", "");
    bad["spec"]["hostNetwork"] = true.into();
    assert_eq!(
        world.refused("/api/v1/namespaces/p/pods", &bad).await,
        "pods \"bad\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
    let (status, _, warnings) = world.send(Method::POST, "/api/v1/namespaces/p/pods", &pod("fine", "")).await;
    assert_eq!(status, 201);
    assert!(
        warnings[0].contains(
            "would violate PodSecurity \\\"restricted:latest\\\": allowPrivilegeEscalation != false"
        )
    );
    let workload = json!({"metadata": {"name": "w"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": bad["spec"]},
    }});
    let (status, _, warnings) =
        world.send(Method::POST, "/apis/apps/v1/namespaces/p/deployments", &workload).await;
    assert_eq!((status, warnings.len()), (201, 1), "{warnings:?}");
    let (status, answer, _) = world
        .send(
            Method::POST,
            "/api/v1/namespaces",
            &json!({"metadata": {"name": "x", "labels": {"pod-security.kubernetes.io/enforce": "strict"}}}),
        )
        .await;
    assert_eq!(status, 422, "{answer}");
    // Where labels say nothing the configuration counts, and in what it exempts nothing does.
    world.namespace("plain", &json!({})).await;
    assert_eq!(
        world.refused("/api/v1/namespaces/plain/pods", &bad).await,
        "pods \"bad\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
    let free =
        json!({"metadata": {"name": "free", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let (status, _, warnings) = world.send(Method::POST, "/api/v1/namespaces", &free).await;
    assert_eq!(status, 201);
    let ignored = "299 - \"namespace \\\"free\\\" is exempt from Pod Security, and the policy (enforce=restricted:latest) \
                   will be ignored\"";
    assert_eq!(warnings, [ignored]);
    world.until("/api/v1/namespaces/free/serviceaccounts/default", |status, _| status == 200).await;
    world.made("/api/v1/namespaces/free/pods", &bad).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_in_use_stay_until_they_are_not() {
    // The older one serves no VolumeAttributesClasses, which are protected as well.
    for release in ["--emulated-version=1.36", "--emulated-version=1.33"] {
        claim_in_use_stays_until_it_is_not(World::start(&[release]).await).await;
    }
}

async fn claim_in_use_stays_until_it_is_not(mut world: World) {
    world.namespace("c", &json!({})).await;
    let claims = "/api/v1/namespaces/c/persistentvolumeclaims";
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    let made = world.made(claims, &claim).await;
    assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    let mut user = pod("user", "");
    user["spec"]["nodeName"] = "n".into();
    user["spec"]["volumes"] = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    world.made("/api/v1/namespaces/c/pods", &user).await;
    let data = format!("{claims}/data");
    let (status, deleted, _) = world.send(Method::DELETE, &data, &Value::Null).await;
    assert_eq!(status, 200);
    assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{deleted}");
    let gone = "/api/v1/namespaces/c/pods/user?gracePeriodSeconds=0";
    // It was there all the time that the pod was.
    assert_eq!(world.send(Method::GET, &data, &Value::Null).await.0, 200);
    assert_eq!(world.send(Method::DELETE, gone, &Value::Null).await.0, 200);
    world.until(&data, |status, _| status == 404).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_pods_stay_until_their_pods_have_ended() {
    let flags = ["--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true"];
    let mut world = World::start(&flags).await;
    world.namespace("g", &json!({})).await;
    let groups = "/apis/scheduling.k8s.io/v1alpha2/namespaces/g/podgroups";
    let group =
        json!({"metadata": {"name": "gang"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}});
    let made = world.made(groups, &group).await;
    assert_eq!(made["metadata"]["finalizers"], json!(["scheduling.k8s.io/podgroup-protection"]));
    let mut member = pod("member", "");
    member["spec"]["schedulingGroup"] = json!({"podGroupName": "gang"});
    world.until("/api/v1/namespaces/g/serviceaccounts/default", |status, _| status == 200).await;
    world.made("/api/v1/namespaces/g/pods", &member).await;
    let gang = format!("{groups}/gang");
    let (status, deleted, _) = world.send(Method::DELETE, &gang, &Value::Null).await;
    assert_eq!(status, 200);
    assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{deleted}");
    assert_eq!(world.send(Method::GET, &gang, &Value::Null).await.0, 200);
    let status = "/api/v1/namespaces/g/pods/member/status";
    let (_, mut ended, _) = world.send(Method::GET, status, &Value::Null).await;
    ended["status"]["phase"] = "Succeeded".into();
    assert_eq!(world.send(Method::PUT, status, &ended).await.0, 200);
    world.until(&gang, |status, _| status == 404).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_are_turned_on_and_off() {
    let data = tempdir().expect("a directory");
    let ended = refused(data.path(), &["--disable-admission-plugins=NoSuchPlugin"]).await;
    assert!(ended.stderr.contains("disable-admission-plugins plugin \"NoSuchPlugin\" is unknown"));
    let flags = [
        "--enable-admission-plugins=NodeRestriction,AlwaysPullImages",
        "--disable-admission-plugins=PodSecurity,StorageObjectInUseProtection",
    ];
    let mut world = World::start(&flags).await;
    world.namespace("n", &json!({"pod-security.kubernetes.io/enforce": "restricted"})).await;
    let made = world.made("/api/v1/namespaces/n/pods", &pod("loose", "")).await;
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
    let volume = json!({"metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}, "accessModes": ["ReadWriteOnce"],
    }});
    assert_eq!(world.made("/api/v1/persistentvolumes", &volume).await["metadata"]["finalizers"], Value::Null);
    let binding = json!({"metadata": {"name": "nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}]});
    world.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let headers = [
        ("content-type", "application/json"),
        ("impersonate-user", "system:node:a"),
        ("impersonate-group", "system:nodes"),
    ];
    let mut admin = world.program.admin(Protocol::Http2).await;
    let mut as_node = async |path: &str, body: Value| {
        let answer = admin.exchange(Method::POST, path, &headers, body.to_string().into()).await;
        let answer = answer.expect("an answer");
        let body: Value = serde_json::from_str(&answer.body).expect("JSON");
        (answer.status, body["message"].as_str().unwrap_or_default().to_owned())
    };
    let node = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    let other = as_node("/api/v1/nodes", node("b", json!({}))).await;
    let text = "nodes \"b\" is forbidden: node \"a\" is not allowed to modify node \"b\"";
    assert_eq!(other, (403, text.to_owned()));
    let labelled = as_node("/api/v1/nodes", node("a", json!({"node-role.kubernetes.io/master": ""}))).await;
    let text = "nodes \"a\" is forbidden: node \"a\" is not allowed to set the following labels: \
                node-role.kubernetes.io/master";
    assert_eq!(labelled, (403, text.to_owned()));
    assert_eq!(as_node("/api/v1/nodes", node("a", json!({"kubernetes.io/os": "linux"}))).await.0, 201);
    let text = "pods \"p\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" annotation, node \"a\" can only \
                create mirror pods";
    assert_eq!(as_node("/api/v1/namespaces/n/pods", pod("p", "")).await, (403, text.to_owned()));
}
