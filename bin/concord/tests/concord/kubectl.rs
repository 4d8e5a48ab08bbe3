//! kubectl, unmodified, where it is installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

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

/// A server, and kubectl set up for it.
struct Kubectl {
    data: TempDir,
    _server: Program,
}

impl Kubectl {
    /// `None`, said aloud, if there is no kubectl on this machine.
    async fn start() -> Option<Self> {
        let mut version = Command::new("kubectl");
        version.args(["version", "--client"]).stdout(Stdio::null()).stderr(Stdio::null());
        if !version.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no kubectl on PATH");
            return None;
        }
        let data = tempdir().expect("a directory");
        let server = Program::start(data.path()).await;
        server.ready(200).await;
        Some(Self { data, _server: server })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("written");
        self.path(name).to_str().expect("text").to_owned()
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut kubectl = Command::new("kubectl");
        kubectl.env("KUBECONFIG", self.path("admin.kubeconfig")).env("HOME", self.data.path());
        kubectl.args(["--request-timeout=30s"]).args(arguments).stdin(Stdio::null());
        kubectl.output().expect("kubectl runs")
    }

    /// What it prints, where it succeeds.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What it complains of, where it fails.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "kubectl {arguments:?} should have failed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_applied_changed_and_deleted() {
    let Some(kubectl) = Kubectl::start().await else { return };
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
        let arguments = ["delete", "cm", "conf", "--wait=false", &format!("--cascade={cascade}")];
        kubectl.ok(&arguments);
        if cascade != "background" {
            kubectl.ok(&["patch", "cm", "conf", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
        }
        assert_has(&kubectl.fails(&["get", "cm", "conf"]), &[r#"configmaps "conf" not found"#]);
        kubectl.ok(&["apply", "-f", file]);
    }
    assert_has(&kubectl.ok(&["delete", "-f", file]), &["deployment.apps \"web\" deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn imperative_commands_work() {
    let Some(kubectl) = Kubectl::start().await else { return };
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

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_applied_twice_change_nothing_the_second_time() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let object = |n: usize| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{n}, labels: {{n: \"{n}\"}}}}\ndata: {{k: \"{n}\"}}\n"
        )
    };
    let manifest = kubectl.file("many.yaml", &(0..50).map(object).collect::<String>());
    assert_eq!(count(&kubectl.ok(&["apply", "-f", &manifest]), "created"), 50);
    let versions =
        |kubectl: &Kubectl| kubectl.ok(&["get", "cm", "-o", "jsonpath={.items[*].metadata.resourceVersion}"]);
    let before = versions(&kubectl);
    assert_eq!(count(&kubectl.ok(&["apply", "-f", &manifest]), "unchanged"), 50);
    assert_eq!(versions(&kubectl), before);
}

fn count(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.ends_with(word)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_what_changes() {
    let Some(kubectl) = Kubectl::start().await else { return };
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
