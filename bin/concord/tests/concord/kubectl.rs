//! kubectl, unmodified, where it is installed, on both engines.

mod edits;
mod subresources;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use concord_testing::etcd::Cluster;
use tempfile::{TempDir, tempdir};

use crate::support::Program;

/// A deployment, and what it needs.
const MANIFEST: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {a: "1"}
"#;

/// Where a server keeps its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Engine {
    Embedded,
    Etcd,
}

const BOTH: [Engine; 2] = [Engine::Embedded, Engine::Etcd];

/// A server, and kubectl set up for it.
pub(crate) struct Kubectl {
    data: TempDir,
    server: Program,
    _etcd: Option<Cluster>,
}

impl Kubectl {
    /// `None`, said aloud, if there is no kubectl on this machine.
    pub(crate) async fn start(engine: Engine) -> Option<Self> {
        Self::start_in(tempdir().expect("a directory"), engine, &[]).await
    }

    /// The same with a server that has flags of its own, and files in its directory.
    pub(crate) async fn start_in(data: TempDir, engine: Engine, flags: &[String]) -> Option<Self> {
        let mut version = Command::new("kubectl");
        version.args(["version", "--client"]).stdout(Stdio::null()).stderr(Stdio::null());
        if !version.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no kubectl on PATH");
            return None;
        }
        let mut flags = flags.to_vec();
        let mut etcd = None;
        if engine == Engine::Etcd {
            let cluster = etcd.insert(Cluster::single().await.expect("an etcd"));
            flags.push(format!("--etcd-servers={}", cluster.endpoints().join(",")));
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = Program::start_with(data.path(), &flags).await;
        server.ready(200).await;
        Some(Self { data, server, _etcd: etcd })
    }

    /// Stops the server, and leaves its directory.
    pub(crate) async fn stop(self) -> TempDir {
        self.server.signal("TERM");
        self.server.ended().await;
        self.data
    }

    fn path(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("written");
        self.path(name).to_str().expect("text").to_owned()
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let mut kubectl = Command::new("kubectl");
        kubectl.env("KUBECONFIG", self.path("admin.kubeconfig")).env("HOME", self.data.path());
        kubectl.args(["--request-timeout=30s"]).args(arguments).stdin(Stdio::null());
        kubectl.output().expect("kubectl runs")
    }

    /// What it prints, where it succeeds.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What it complains of, where it fails.
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "kubectl {arguments:?} should have failed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_applied_changed_and_deleted() {
    for engine in BOTH {
        let Some(kubectl) = Kubectl::start(engine).await else { return };
        apply_change_and_delete(&kubectl);
    }
}

fn apply_change_and_delete(kubectl: &Kubectl) {
    let manifest = kubectl.file("web.yaml", MANIFEST);
    let file = manifest.as_str();
    assert_has(
        &kubectl.ok(&["apply", "-f", file]),
        &["deployment.apps/web created", "configmap/conf created"],
    );
    assert_has(
        &kubectl.ok(&["apply", "-f", file]),
        &["deployment.apps/web unchanged", "service/web unchanged"],
    );
    assert_has(
        &kubectl.ok(&["apply", "--server-side", "-f", file]),
        &["deployment.apps/web serverside-applied"],
    );
    assert_eq!(kubectl.ok(&["diff", "-f", file]), "", "nothing differs");

    let table = kubectl.ok(&["get", "deployments,services,configmaps", "-o", "wide"]);
    assert_has(&table, &["READY", "UP-TO-DATE", "0/2", "nginx", "CLUSTER-IP", "DATA"]);
    assert_has(&kubectl.ok(&["describe", "deployment", "web"]), &["Name:", "app=web", "2 desired"]);
    let columns = kubectl.ok(&["get", "cm", "conf", "-o", "custom-columns=N:.metadata.name,D:.data.a"]);
    assert_has(&columns, &["conf", "1"]);
    assert_has(
        &kubectl.ok(&["get", "cm", "conf", "-o", "yaml"]),
        &["apiVersion: v1", "a: \"1\"", "kind: ConfigMap"],
    );

    kubectl.ok(&["label", "cm", "conf", "tier=web"]);
    kubectl.ok(&["annotate", "cm", "conf", "note=one"]);
    assert_has(&kubectl.ok(&["get", "cm", "-l", "tier=web", "-o", "name"]), &["configmap/conf"]);
    kubectl.ok(&[
        "patch",
        "cm",
        "conf",
        "--type=json",
        "-p",
        r#"[{"op":"add","path":"/data/b","value":"2"}]"#,
    ]);
    kubectl.ok(&[
        "patch",
        "deploy",
        "web",
        "-p",
        r#"{"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}"#,
    ]);
    kubectl.ok(&["scale", "deploy", "web", "--replicas=3"]);
    kubectl.ok(&["wait", "--for=jsonpath={.spec.replicas}=3", "deploy/web", "--timeout=30s"]);
    let status = r#"{"status":{"observedGeneration":99,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3}}"#;
    kubectl.ok(&["patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", status]);
    assert_has(
        &kubectl.ok(&["rollout", "status", "deploy", "web", "--timeout=30s"]),
        &["successfully rolled out"],
    );

    for cascade in ["background", "foreground", "orphan"] {
        kubectl.ok(&["delete", "cm", "conf", &format!("--cascade={cascade}")]);
        assert_has(&kubectl.fails(&["get", "cm", "conf"]), &[r#"configmaps "conf" not found"#]);
        kubectl.ok(&["apply", "-f", file]);
    }
    assert_has(&kubectl.ok(&["delete", "-f", file]), &["deployment.apps \"web\" deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn imperative_commands_work() {
    for engine in BOTH {
        let Some(kubectl) = Kubectl::start(engine).await else { return };
        command(&kubectl);
    }
}

fn command(kubectl: &Kubectl) {
    kubectl.ok(&["create", "namespace", "team"]);
    kubectl.ok(&["create", "configmap", "c", "-n", "team", "--from-literal=k=v"]);
    kubectl.ok(&["create", "secret", "generic", "s", "-n", "team", "--from-literal=p=w"]);
    kubectl.ok(&["create", "deployment", "d", "-n", "team", "--image=nginx"]);
    kubectl.ok(&["create", "serviceaccount", "robot", "-n", "team"]);
    let all = kubectl.ok(&["get", "all,cm,secret,sa", "-n", "team", "-o", "name"]);
    assert_has(&all, &["configmap/c", "secret/s", "deployment.apps/d", "serviceaccount/robot"]);
    assert_eq!(kubectl.ok(&["get", "secret", "s", "-n", "team", "-o", "jsonpath={.data.p}"]), "dw==");
    assert_has(&kubectl.ok(&["auth", "whoami"]), &["kubernetes-admin", "system:masters"]);
    let resources = kubectl.ok(&["api-resources"]);
    assert_has(&resources, &["configmaps", "deployments", "customresourcedefinitions", "apiservices"]);
    kubectl.ok(&["delete", "namespace", "team", "--timeout=60s"]);
    assert_has(&kubectl.fails(&["get", "namespace", "team"]), &["not found"]);
    assert_has(
        &kubectl.fails(&["delete", "namespace", "kube-system"]),
        &["this namespace may not be deleted"],
    );
}

/// Ten kinds, as a chart has them; `@` is a number.
const CHART: &str = r#"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m@, labels: {n: "@"}}
data: {k: "@"}
---
apiVersion: v1
kind: Secret
metadata: {name: m@}
data: {p: "cA=="}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: m@}
---
apiVersion: v1
kind: Service
metadata: {name: m@}
spec: {selector: {app: m@}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: m@}
spec:
  replicas: @
  selector: {matchLabels: {app: m@}}
  template:
    metadata: {labels: {app: m@}}
    spec:
      serviceAccountName: m@
      containers:
      - {name: c, image: "nginx:1", ports: [{containerPort: 8080}], env: [{name: NUMBER, value: "@"}], resources: {limits: {cpu: 500m, memory: 64Mi}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: m@}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: m@}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: m@}
subjects: [{kind: ServiceAccount, name: m@, namespace: default}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: m@}
spec: {podSelector: {matchLabels: {app: m@}}, policyTypes: [Ingress], ingress: [{ports: [{port: 8080, protocol: TCP}]}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: m@}
spec: {hard: {pods: "10"}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: m@}
spec: {rules: [{host: m@.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: m@, port: {number: 80}}}}]}}]}
"#;
const KINDS: &str = "cm,secret,sa,svc,deploy,role,rolebinding,netpol,quota,ingress";

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_applied_twice_change_nothing_the_second_time() {
    for engine in BOTH {
        let Some(kubectl) = Kubectl::start(engine).await else { return };
        let text: String = (1..=5).map(|n: usize| CHART.replace('@', &n.to_string())).collect();
        let chart = kubectl.file("chart.yaml", &text);
        assert_eq!(count(&kubectl.ok(&["apply", "-f", &chart]), "created"), 50, "{engine:?}");
        // What is used of the quotas is counted once, a moment later.
        let counted = "--for=jsonpath={.status.hard.pods}=10";
        kubectl.ok(&["wait", counted, "quota", "--all", "--timeout=60s"]);
        let versions = || {
            kubectl.ok(&[
                "get",
                KINDS,
                "-o",
                "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}\n{end}",
            ])
        };
        let before = versions();
        assert_eq!(count(&kubectl.ok(&["apply", "-f", &chart]), "unchanged"), 50, "{engine:?}");
        assert_eq!(versions(), before, "{engine:?}");
        // The third way: what is live differs from what was applied and from what is wanted.
        kubectl.ok(&["label", "deploy", "m1", "by=hand"]);
        let changed = kubectl.file("chart.yaml", &text.replace("image: \"nginx:1\"", "image: \"nginx:2\""));
        let differs = kubectl.output(&["diff", "-f", &changed]);
        assert_eq!(differs.status.code(), Some(1), "{}", String::from_utf8_lossy(&differs.stderr));
        assert_has(
            &String::from_utf8_lossy(&differs.stdout),
            &["-        image: nginx:1", "+        image: nginx:2"],
        );
        assert_eq!(count(&kubectl.ok(&["apply", "-f", &changed]), "configured"), 5, "{engine:?}");
        assert_has(
            &kubectl.ok(&["get", "deploy", "m1", "--show-labels", "-o", "wide"]),
            &["by=hand", "nginx:2"],
        );
        kubectl.ok(&["delete", "-f", &changed, "--wait=false"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_explained_and_conditions_awaited() {
    for engine in BOTH {
        explained_and_awaited_on(engine).await;
    }
}

async fn explained_and_awaited_on(engine: Engine) {
    let Some(kubectl) = Kubectl::start(engine).await else { return };
    assert_has(
        &kubectl.ok(&["explain", "deployment.spec.replicas"]),
        &["GROUP:      apps", "VERSION:    v1", "<integer>"],
    );
    assert_has(
        &kubectl.ok(&["explain", "pod", "--recursive"]),
        &["terminationGracePeriodSeconds", "<PodSpec>"],
    );
    assert_has(&kubectl.fails(&["explain", "deployment.nope"]), &["field \"nope\" does not exist"]);
    let manifest = kubectl.file("web.yaml", MANIFEST);
    kubectl.ok(&["apply", "-f", &manifest]);
    let condition = r#"{"status":{"conditions":[{"type":"Available","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","lastUpdateTime":"2026-01-01T00:00:00Z"}]}}"#;
    kubectl.ok(&["patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", condition]);
    assert_has(
        &kubectl.ok(&["wait", "--for=condition=Available", "deploy/web", "--timeout=30s"]),
        &["condition met"],
    );
    assert_has(
        &kubectl.fails(&["wait", "--for=condition=Nope", "deploy/web", "--timeout=1s"]),
        &["timed out"],
    );
    kubectl.ok(&["delete", "cm", "conf", "--wait=false"]);
    assert_has(&kubectl.ok(&["wait", "--for=delete", "cm/conf", "--timeout=30s"]), &[]);
}

fn count(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.ends_with(word)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_what_changes() {
    for engine in BOTH {
        watched_on(engine).await;
    }
}

async fn watched_on(engine: Engine) {
    let Some(kubectl) = Kubectl::start(engine).await else { return };
    let output = kubectl.path("watch.out");
    let mut watch = spawn_watch(&kubectl, &output);
    let seen = |line: &str| fs::read_to_string(&output).is_ok_and(|text| text.contains(line));
    let manifest = kubectl.file("web.yaml", MANIFEST);
    for _ in 0..600 {
        kubectl.ok(&["apply", "-f", &manifest]);
        if seen("configmap/conf") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(seen("configmap/conf"));
    watch.kill().expect("it runs");
    watch.wait().expect("it ends");
}

fn spawn_watch(kubectl: &Kubectl, output: &Path) -> std::process::Child {
    let mut command = Command::new("kubectl");
    command.env("KUBECONFIG", kubectl.path("admin.kubeconfig")).env("HOME", kubectl.data.path());
    command.args(["get", "cm", "--watch", "-o", "name"]).stdin(Stdio::null());
    command.stdout(fs::File::create(output).expect("a file")).spawn().expect("kubectl runs")
}
