//! The Python client, unmodified, where it is installed.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use concord_testing::etcd::Cluster;
use tempfile::tempdir;

use crate::support::Program;

/// A Python that has the client: the one `CONCORD_PYTHON` names, or `python3`. `None`, said aloud, if there is none.
fn python() -> Option<PathBuf> {
    let python = PathBuf::from(env::var_os("CONCORD_PYTHON").unwrap_or_else(|| "python3".into()));
    let mut probe = Command::new(&python);
    probe.args(["-c", "import kubernetes"]).stdout(Stdio::null()).stderr(Stdio::null());
    if probe.status().is_ok_and(|status| status.success()) {
        return Some(python);
    }
    eprintln!("skipped: there is no python3 with the kubernetes package; CONCORD_PYTHON can name one");
    None
}

fn script_succeeds(python: &Path, data: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/concord/python_client.py");
    let output =
        Command::new(python).arg(script).arg(data.join("admin.kubeconfig")).output().expect("python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&output.stdout), "ok\n", "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_works_on_the_embedded_store() {
    let Some(python) = python() else { return };
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    script_succeeds(&python, data.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_works_on_etcd() {
    let Some(python) = python() else { return };
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers]).await;
    server.ready(200).await;
    script_succeeds(&python, data.path());
}
