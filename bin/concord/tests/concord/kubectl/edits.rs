//! Changing objects in an editor, and deleting those that others depend on.

use std::process::{Command, Stdio};

use super::{BOTH, Engine, Kubectl, assert_has};

/// A map that another one owns.
fn owned(kubectl: &Kubectl, owner: &str) -> String {
    let uid = kubectl.ok(&["get", "cm", owner, "-o", "jsonpath={.metadata.uid}"]);
    format!(
        r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{owner}-part", "ownerReferences": [
            {{"apiVersion": "v1", "kind": "ConfigMap", "name": "{owner}", "uid": "{uid}", "blockOwnerDeletion": true}}]}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cascade_does_with_dependents_what_it_says() {
    for engine in BOTH {
        let Some(kubectl) = Kubectl::start(engine).await else { return };
        cascades(&kubectl);
    }
}

fn cascades(kubectl: &Kubectl) {
    for cascade in ["background", "foreground", "orphan"] {
        kubectl.ok(&["create", "cm", cascade]);
        let file = kubectl.file("part.json", &owned(kubectl, cascade));
        kubectl.ok(&["create", "-f", &file]);
        kubectl.ok(&["delete", "cm", cascade, &format!("--cascade={cascade}"), "--timeout=60s"]);
        assert_has(&kubectl.fails(&["get", "cm", cascade]), &["not found"]);
        let part = format!("cm/{cascade}-part");
        match cascade {
            // The owner goes last, so that there is nothing left to wait for.
            "foreground" => assert_has(&kubectl.fails(&["get", &part]), &["not found"]),
            "background" => drop(kubectl.ok(&["wait", "--for=delete", &part, "--timeout=60s"])),
            _ => {
                let owners = kubectl.ok(&["get", &part, "-o", "jsonpath={.metadata.ownerReferences}"]);
                assert_eq!(owners, "", "it has no owner any more");
            }
        }
    }
}

/// kubectl with an editor that is a script.
fn edit(kubectl: &Kubectl, script: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new("kubectl");
    command.env("KUBECONFIG", kubectl.path("admin.kubeconfig")).env("HOME", kubectl.data.path());
    // What is refused is kept in a file.
    command.env("KUBE_EDITOR", script).env("TMPDIR", kubectl.data.path());
    let out = command.arg("edit").args(arguments).stdin(Stdio::null()).output().expect("kubectl runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout) + &text(&out.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_changed_in_an_editor() {
    let Some(kubectl) = Kubectl::start(Engine::Embedded).await else { return };
    kubectl.ok(&["create", "cm", "conf", "--from-literal=a=one"]);
    let (done, said) = edit(&kubectl, "sed -i s/one/two/", &["cm", "conf"]);
    assert!(done && said.contains("configmap/conf edited"), "{said}");
    assert_eq!(kubectl.ok(&["get", "cm", "conf", "-o", "jsonpath={.data.a}"]), "two");
    let (done, said) = edit(&kubectl, "true", &["cm", "conf"]);
    assert!(done && said.contains("no changes made"), "{said}");
    kubectl.ok(&["create", "deployment", "web", "--image=nginx"]);
    let (done, said) = edit(&kubectl, "sed -i s/image:.nginx/image:\\ nginx:2/", &["deployment", "web"]);
    assert!(done && said.contains("deployment.apps/web edited"), "{said}");
    assert_has(&kubectl.ok(&["get", "deployment", "web", "-o", "wide"]), &["nginx:2"]);
    // What is refused is told, with the reason in the editor, and not stored.
    let (done, said) = edit(&kubectl, "sed -i s/replicas:.1/replicas:\\ -1/", &["deployment", "web"]);
    assert!(!done && said.contains("deployments.apps \"web\" is invalid"), "{said}");
    assert_eq!(kubectl.ok(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]), "1");
}
