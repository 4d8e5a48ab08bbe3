//! Versions in one place, lints everywhere, one TLS provider.

use std::{collections::BTreeSet, path::Path};

use crate::{assert_clean, cargo, packages, read, root};

/// The lines of one table of a manifest.
fn table<'a>(manifest: &'a str, header: &str) -> Vec<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter(|line| line.contains(" = ")).collect()
}

fn workspace_dependencies(manifest: &str) -> Vec<String> {
    let lines = table(manifest, "[workspace.dependencies]");
    let (ours, others): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.contains("path = "));
    let mut complaints = Vec::new();
    for line in &others {
        if !line.contains("default-features = false") {
            complaints.push(format!("default features are not turned off: {line}"));
        }
        for feature in ["preserve_order", "arbitrary_precision"] {
            if line.starts_with("serde_json") && line.contains(feature) {
                complaints.push(format!("serde_json/{feature} changes what every crate encodes: {line}"));
            }
        }
    }
    if !ours.is_sorted() || !others.is_sorted() {
        complaints.push("workspace dependencies are not sorted".to_owned());
    }
    complaints
}

fn member(path: &Path, manifest: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if !manifest.contains("[lints]\nworkspace = true") {
        complaints.push(format!("{} does not inherit the lints", path.display()));
    }
    for header in ["[dependencies]", "[dev-dependencies]", "[build-dependencies]"] {
        for line in table(manifest, header) {
            if !line.contains("workspace = true") {
                complaints.push(format!("{}: versions belong in the root manifest: {line}", path.display()));
            }
            if line.contains("preserve_order") || line.contains("arbitrary_precision") {
                complaints.push(format!("{}: must never be enabled: {line}", path.display()));
            }
        }
    }
    complaints
}

/// `tree` is what is really built: Cargo.lock also lists what a dependency could ask for and does not.
fn banned(tree: &str) -> Vec<String> {
    let names = ["ring", "openssl", "openssl-sys", "native-tls"];
    let found = names.iter().filter(|name| tree.lines().any(|line| line.split(' ').next() == Some(**name)));
    found.map(|name| format!("{name} is built: the one TLS provider is aws-lc-rs")).collect()
}

/// What a lock file says that a package needs, without versions; `None` if the package is not in it.
fn locked(lock: &str, package: &str) -> Option<BTreeSet<String>> {
    let header = format!("name = \"{package}\"");
    let block = lock.split("[[package]]").find(|block| block.lines().any(|line| line == header))?;
    let names = block.lines().filter_map(|line| line.trim().strip_prefix('"')?.split(['"', ' ']).next());
    Some(names.map(str::to_owned).collect())
}

/// Whether these can be what a package is built with along with others: all that it needs, and nothing else but what it could
/// be asked to use.
fn fits(package: &serde_json::Value, locked: &BTreeSet<String>) -> bool {
    let dependencies = package["dependencies"].as_array().expect("a list");
    let name = |dependency: &serde_json::Value| dependency["name"].as_str().expect("a name").to_owned();
    let built = || dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
    let possible: BTreeSet<String> = built().map(name).collect();
    let mut needed = built().filter(|dependency| dependency["optional"] != true).map(name);
    locked.is_subset(&possible) && needed.all(|name| locked.contains(&name))
}

#[test]
fn the_fuzzer_can_be_built_from_its_lock_file() {
    let lock = read("fuzz/Cargo.lock");
    let mut complaints = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        if locked(&lock, name).is_some_and(|locked| !fits(&package, &locked)) {
            complaints.push(format!(
                "fuzz/Cargo.lock is older than the manifest of {name}: run cargo metadata in fuzz/"
            ));
        }
    }
    assert_clean(&complaints);
    assert!(locked(&lock, "concord-server").is_some_and(|names| names.contains("hyper")), "it is read");
    assert_eq!(locked(&lock, "concord"), None);
}

#[test]
fn the_manifests_are_in_order() {
    assert_clean(&workspace_dependencies(&read("Cargo.toml")));
    assert_clean(&banned(&cargo(&["tree", "--offline", "--workspace", "--prefix", "none"])));
    for package in packages() {
        let path = Path::new(package["manifest_path"].as_str().expect("a path"));
        let path = path.strip_prefix(root()).expect("members are in the workspace");
        assert_clean(&member(path, &read(path)));
    }
}

#[test]
fn a_careless_dependency_is_found() {
    let check = |line: &str| workspace_dependencies(&format!("[workspace.dependencies]\n{line}\n"));
    assert_eq!(check(r#"a = { version = "1" }"#).len(), 1);
    assert_eq!(
        check(r#"serde_json = { version = "1", default-features = false, features = ["preserve_order"] }"#)
            .len(),
        1
    );
    assert_eq!(check("b = { default-features = false }\na = { default-features = false }").len(), 1);
    assert!(check("a = { default-features = false }\nb = { default-features = false }").is_empty());
}

#[test]
fn a_careless_member_is_found() {
    let path = Path::new("x/Cargo.toml");
    assert_eq!(member(path, "[dependencies]\na = \"1\"\n[lints]\nworkspace = true\n").len(), 1);
    assert_eq!(member(path, "[dependencies]\n").len(), 1);
    let enabled = "[dependencies]\nserde_json = { workspace = true, features = [\"arbitrary_precision\"] }\n";
    assert_eq!(member(path, &format!("{enabled}[lints]\nworkspace = true\n")).len(), 1);
    assert!(member(path, "[dependencies]\na.workspace = true\n\n[lints]\nworkspace = true\n").is_empty());
}

#[test]
fn a_second_tls_provider_is_found() {
    assert_eq!(banned("rustls v0.23.0\nring v0.17.14 (*)\n").len(), 1);
    assert!(banned("string v1.0.0\nring-buffer v1.0.0\n").is_empty());
}
