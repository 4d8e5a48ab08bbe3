//! Pods, as schedulers, debuggers and those who drain nodes meet them, on both engines. Texts and codes are what
//! kube-apiserver answers.

use concord_server::test_client::{Protocol, TestClient};
use concord_testing::etcd::Cluster;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, send};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_embedded_store() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NO_ACCOUNTS]).await;
    Box::pin(all(&server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_etcd() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[NO_ACCOUNTS, &servers]).await;
    Box::pin(all(&server)).await;
}

/// Pods do not wait for the account of their namespace.
const NO_ACCOUNTS: &str = "--disable-admission-plugins=ServiceAccount";

async fn all(server: &Program) {
    server.ready(200).await;
    let mut world = World { admin: server.admin(Protocol::Http2).await };
    world.pods_are_bound().await;
    world.bindings_need_no_pod_in_their_path().await;
    world.doors_let_nothing_else_through().await;
    world.pods_are_evicted_within_their_budget().await;
    world.what_is_not_ready_goes_freely().await;
    world.services_change_their_type().await;
    disruptions_are_spent_once(server, &mut world).await;
}

struct World {
    admin: TestClient,
}

impl World {
    async fn send(&mut self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let (status, answer, _) = send(&mut self.admin, method, path, body).await;
        (status, answer)
    }

    async fn ask(&mut self, method: Method, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send(method, path, body).await;
        assert!((200..300).contains(&status), "{path}: {answer}");
        answer
    }

    async fn refused(&mut self, path: &str, body: &Value) -> (u16, String) {
        let (status, answer) = self.send(Method::POST, path, body).await;
        (status, answer["message"].as_str().unwrap_or_default().to_owned())
    }

    async fn pod(&mut self, name: &str) -> Value {
        let resources = json!({"requests": {"cpu": "1"}});
        let container = json!({"name": "c", "image": "i", "resources": resources});
        let pod =
            json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container]}});
        self.ask(Method::POST, PODS, &pod).await
    }

    async fn get(&mut self, name: &str) -> Value {
        self.ask(Method::GET, &format!("{PODS}/{name}"), &Value::Null).await
    }

    /// A pod that runs on a node, ready or not, and a budget for it.
    async fn running(&mut self, name: &str, ready: &str, budget: &Value) {
        self.pod(name).await;
        let status =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
        self.ask(Method::PATCH, &format!("{PODS}/{name}/status"), &status).await;
        let selector = json!({"matchLabels": {"app": name}});
        let object = json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector}});
        self.ask(Method::POST, BUDGETS, &object).await;
        self.ask(Method::PATCH, &format!("{BUDGETS}/{name}/status"), &json!({"status": budget})).await;
    }

    async fn pods_are_bound(&mut self) {
        let created = self.pod("bound").await;
        let path = format!("{PODS}/bound/binding");
        let binding = |name: &str, uid: &str, target: Value| json!({"metadata": {"name": name, "uid": uid, "annotations": {"by": "s"}}, "target": target});
        let node = || json!({"kind": "Node", "name": "n"});
        assert_eq!(
            self.refused(&path, &binding("other", "", node())).await,
            (400, "name in URL does not match name in Binding object".to_owned())
        );
        assert_eq!(
            self.refused(&path, &binding("bound", "", json!({"kind": "Node"}))).await,
            (500, "target.name: Required value".to_owned())
        );
        let (status, message) = self.refused(&path, &binding("bound", "wrong", node())).await;
        assert!(status == 409 && message.contains("UID in precondition: wrong"), "{message}");
        self.ask(Method::POST, &format!("{path}?dryRun=All"), &binding("bound", "", node())).await;
        assert_eq!(self.get("bound").await, created);

        let uid = created["metadata"]["uid"].as_str().expect("a uid");
        let answer = self.ask(Method::POST, &path, &binding("bound", uid, node())).await;
        assert_eq!(
            answer,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
        );
        let pod = self.get("bound").await;
        assert_eq!(
            (&pod["spec"]["nodeName"], &pod["metadata"]["annotations"]["by"]),
            (&json!("n"), &json!("s"))
        );
        let condition = &pod["status"]["conditions"][0];
        assert_eq!((&condition["type"], &condition["status"]), (&json!("PodScheduled"), &json!("True")));
        for field in ["generation", "managedFields"] {
            assert_eq!(pod["metadata"][field], created["metadata"][field], "{field}");
        }
        let again = "Operation cannot be fulfilled on pods/binding \"bound\": pod bound is already assigned to node \"n\"";
        assert_eq!(self.refused(&path, &binding("bound", "", node())).await, (409, again.to_owned()));
        let none = self.refused(&format!("{PODS}/none/binding"), &binding("none", "", node())).await;
        assert_eq!(none, (404, "pods \"none\" not found".to_owned()));
    }

    async fn bindings_need_no_pod_in_their_path(&mut self) {
        self.pod("legacy").await;
        let binding = json!({"metadata": {"name": "legacy"}, "target": {"name": "n"}});
        self.ask(Method::POST, "/api/v1/namespaces/default/bindings", &binding).await;
        assert_eq!(self.get("legacy").await["spec"]["nodeName"], "n");
    }

    async fn doors_let_nothing_else_through(&mut self) {
        let created = self.pod("debugged").await;
        let evil = json!({
            "metadata": {"labels": {"evil": "true"}, "annotations": {"evil": "true"}, "finalizers": ["evil.io/x"]},
            "spec": {
                "hostNetwork": true, "nodeName": "n", "serviceAccountName": "admin",
                "containers": [{"name": "c", "image": "evil", "resources": {"requests": {"cpu": "2"}}}],
                "ephemeralContainers": [{"name": "e", "image": "i"}],
            },
        });
        self.ask(Method::PATCH, &format!("{PODS}/debugged/ephemeralcontainers"), &evil).await;
        let mut pod = self.get("debugged").await;
        assert_eq!(pod["spec"]["ephemeralContainers"][0]["name"], "e");
        assert_eq!(pod["metadata"]["generation"], 2);
        pod["spec"].as_object_mut().map(|spec| spec.remove("ephemeralContainers"));
        assert_eq!(pod["spec"], created["spec"]);
        for field in ["labels", "annotations", "finalizers"] {
            assert_eq!(pod["metadata"][field], created["metadata"][field], "{field}");
        }
        self.ask(Method::PATCH, &format!("{PODS}/debugged/resize"), &evil).await;
        let mut pod = self.get("debugged").await;
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], "2");
        pod["spec"]["containers"][0]["resources"] = created["spec"]["containers"][0]["resources"].clone();
        pod["spec"]["containers"][0].as_object_mut().map(|container| container.remove("resizePolicy"));
        pod["spec"].as_object_mut().map(|spec| spec.remove("ephemeralContainers"));
        let mut before = created["spec"].clone();
        before["containers"][0].as_object_mut().map(|container| container.remove("resizePolicy"));
        assert_eq!(pod["spec"], before);
        assert_eq!(pod["metadata"]["labels"], created["metadata"]["labels"]);
    }

    async fn pods_are_evicted_within_their_budget(&mut self) {
        let none = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1});
        self.running("kept", "True", &none).await;
        let path = format!("{PODS}/kept/eviction");
        let eviction =
            |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        assert_eq!(
            self.refused(&path, &eviction("other")).await,
            (400, "name in URL does not match name in Eviction object".to_owned())
        );
        let (status, answer) = self.send(Method::POST, &path, &eviction("kept")).await;
        assert_eq!(status, 429);
        assert_eq!(answer["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
        assert_eq!(
            answer["details"]["causes"],
            json!([{"reason": "DisruptionBudget", "message": "The disruption budget kept needs 1 healthy pods and has 1 currently"}])
        );
        let behind = json!({"status": {"observedGeneration": 0}});
        self.ask(Method::PATCH, &format!("{BUDGETS}/kept/status"), &behind).await;
        let (status, answer) = self.send(Method::POST, &path, &eviction("kept")).await;
        assert_eq!((status, &answer["details"]["retryAfterSeconds"]), (429, &json!(10)));

        let one = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 1}});
        self.ask(Method::PATCH, &format!("{BUDGETS}/kept/status"), &one).await;
        let mut dry = eviction("kept");
        dry["deleteOptions"] = json!({"dryRun": ["All"]});
        self.ask(Method::POST, &path, &dry).await;
        let budget = self.ask(Method::GET, &format!("{BUDGETS}/kept"), &Value::Null).await;
        assert_eq!(budget["status"]["disruptionsAllowed"], 1);
        // On a node it takes its time, and says why it goes.
        let binding = json!({"metadata": {"name": "kept"}, "target": {"name": "n"}});
        self.ask(Method::POST, &format!("{PODS}/kept/binding"), &binding).await;
        self.ask(Method::POST, &path, &eviction("kept")).await;
        let pod = self.get("kept").await;
        assert!(pod["metadata"]["deletionTimestamp"].is_string());
        let conditions = pod["status"]["conditions"].as_array().expect("conditions");
        let target =
            conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").expect("one");
        assert_eq!(
            (&target["status"], &target["reason"], &target["message"]),
            (&json!("True"), &json!("EvictionByEvictionAPI"), &json!("Eviction API: evicting"))
        );
        let budget = self.ask(Method::GET, &format!("{BUDGETS}/kept"), &Value::Null).await;
        assert_eq!(budget["status"]["disruptionsAllowed"], 0);
        assert!(budget["status"]["disruptedPods"]["kept"].is_string());
        assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
        let owners = budget["metadata"]["managedFields"].as_array().expect("owners");
        assert!(owners.iter().any(|owner| owner["manager"] == "kube-apiserver"), "{owners:?}");
    }

    async fn what_is_not_ready_goes_freely(&mut self) {
        let healthy = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2, "disruptionsAllowed": 0});
        self.running("sick", "False", &healthy).await;
        let eviction =
            json!({"metadata": {"name": "sick"}, "deleteOptions": {"preconditions": {"uid": "wrong"}}});
        let path = format!("{PODS}/sick/eviction");
        let (status, message) = self.refused(&path, &eviction).await;
        // Upstream takes every conflict for one that may pass.
        assert_eq!(
            (status, message.as_str()),
            (429, "Cannot evict pod as it would violate the pod's disruption budget.")
        );
        self.ask(Method::POST, &path, &json!({"metadata": {"name": "sick"}})).await;
        let (status, _) = self.send(Method::GET, &format!("{PODS}/sick"), &Value::Null).await;
        assert_eq!(status, 404, "it ran nowhere");
    }

    async fn services_change_their_type(&mut self) {
        let services = "/api/v1/namespaces/default/services";
        let types = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"];
        for (from, to) in
            types.iter().flat_map(|from| types.map(|to| (*from, to))).filter(|(from, to)| from != to)
        {
            let name = format!("{from}-{to}").to_lowercase();
            let ports = json!([{"port": 80}]);
            let spec = json!({"type": from, "externalName": "a.example.com", "ports": ports});
            self.ask(Method::POST, services, &json!({"metadata": {"name": name}, "spec": spec})).await;
            let patch = json!({"spec": {"type": to}});
            let changed = self.ask(Method::PATCH, &format!("{services}/{name}"), &patch).await;
            let spec = &changed["spec"];
            assert_eq!(spec["clusterIP"].is_string(), to != "ExternalName", "{name}: {spec}");
            let outside = ["NodePort", "LoadBalancer"].contains(&to);
            assert_eq!(spec["ports"][0]["nodePort"].is_i64(), outside, "{name}: {spec}");
            assert_eq!(spec["externalTrafficPolicy"].is_string(), outside, "{name}: {spec}");
            assert_eq!(
                spec["allocateLoadBalancerNodePorts"].is_boolean(),
                to == "LoadBalancer",
                "{name}: {spec}"
            );
        }
    }
}

/// However many want it at once, a disruption is for one pod.
async fn disruptions_are_spent_once(server: &Program, world: &mut World) {
    let three = json!({"observedGeneration": 1, "currentHealthy": 9, "desiredHealthy": 6, "disruptionsAllowed": 3, "expectedPods": 9});
    world.running("many", "True", &three).await;
    let mut names = vec!["many".to_owned()];
    for number in 0..5 {
        let name = format!("many-{number}");
        world.pod(&name).await;
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let patch = json!({"metadata": {"labels": {"app": "many"}}});
        world.ask(Method::PATCH, &format!("{PODS}/{name}"), &patch).await;
        let status = json!({"status": {"phase": "Running", "conditions": ready}});
        world.ask(Method::PATCH, &format!("{PODS}/{name}/status"), &status).await;
        names.push(name);
    }
    let evictions = names.iter().map(async |name| {
        let mut admin = server.admin(Protocol::Http2).await;
        let path = format!("{PODS}/{name}/eviction");
        send(&mut admin, Method::POST, &path, &json!({"metadata": {"name": name}})).await.0
    });
    let mut answers = join_all(evictions).await;
    answers.sort_unstable();
    assert_eq!(answers, [201, 201, 201, 429, 429, 429]);
}
