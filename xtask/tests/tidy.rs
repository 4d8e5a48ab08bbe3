//! The rules of the house that a machine can check. ARCHITECTURE.md says why each exists; every rule here
//! comes with a test that shows it can fail.

#[path = "tidy/gates.rs"]
mod gates;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/manifests.rs"]
mod manifests;
#[path = "tidy/sources.rs"]
mod sources;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace").to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(&path)).expect("a text file of the repository")
}

/// What cargo prints.
fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The packages of the workspace as cargo sees them.
fn packages() -> Vec<serde_json::Value> {
    let metadata = cargo(&["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    metadata["packages"].as_array().expect("a list of packages").clone()
}

/// Fails with all complaints at once.
fn assert_clean(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
