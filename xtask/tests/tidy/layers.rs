//! Dependencies point only downward.

use serde_json::{Value, json};

use crate::{assert_clean, packages};

/// The layers, lowest first. A crate may depend on crates of its own layer and of those below.
const LAYERS: [(&str, &[&str]); 6] = [
    (
        "pure",
        &[
            "concord-cel",
            "concord-codec",
            "concord-conversion",
            "concord-defaults",
            "concord-encryption",
            "concord-merge",
            "concord-meta",
            "concord-printers",
            "concord-protobuf",
            "concord-re2",
            "concord-rules",
            "concord-schema",
            "concord-store",
            "concord-storageversion",
            "concord-structural",
            "concord-validation",
        ],
    ),
    (
        "log",
        &[
            "concord-replica",
            "concord-store-embedded",
            "concord-store-etcd",
            "concord-store-sealed",
            "concord-store-translated",
        ],
    ),
    (
        "server",
        &[
            "concord-audit",
            "concord-endpoints",
            "concord-forward",
            "concord-openapi",
            "concord-pki",
            "concord-registry",
            "concord-server",
            "concord-webhook",
        ],
    ),
    (
        "parts",
        &[
            "concord-admission",
            "concord-aggregator",
            "concord-apiextensions",
            "concord-apis",
            "concord-builtins",
            "concord-controllers",
            "concord-election",
            "concord-fleet",
            "concord-flowcontrol",
            "concord-garbagecollector",
            "concord-migrator",
            "concord-peerproxy",
            "concord-plugins",
            "concord-rbac",
            "concord-serviceaccounts",
        ],
    ),
    ("program", &["concord", "concord-bench"]),
    // Tools and test support see everything and are seen by tests only.
    (
        "tools",
        &[
            "concord-bookshelf",
            "concord-codegen",
            "concord-differential",
            "concord-faultfs",
            "concord-fleetmodel",
            "concord-logbench",
            "concord-robustness",
            "concord-testing",
            "xtask",
        ],
    ),
];

const ENGINES: [&str; 2] = ["concord-store-embedded", "concord-store-etcd"];

const RUNTIMES: [&str; 4] = ["tokio", "tokio-util", "async-std", "smol"];

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("packages have names")
}

/// The names a package depends on when it is built for use, not for its own tests.
fn uses(package: &Value) -> impl Iterator<Item = &str> {
    let dependencies = package["dependencies"].as_array().expect("a list");
    let for_use = dependencies.iter().filter(|d| d["kind"] != "dev" && d["optional"] != true);
    for_use.map(|dependency| dependency["name"].as_str().expect("a name"))
}

fn layer(package: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, members)| members.contains(&package))
}

fn every_crate_has_a_layer(packages: &[Value]) -> Vec<String> {
    let homeless = packages.iter().map(name).filter(|package| layer(package).is_none());
    homeless.map(|package| format!("{package} is in no layer: add it to LAYERS")).collect()
}

fn dependencies_point_downward(packages: &[Value]) -> Vec<String> {
    let pairs = packages.iter().flat_map(|package| uses(package).map(|used| (name(package), used)));
    let upward = pairs.filter(|(package, used)| layer(used).is_some_and(|used| Some(used) > layer(package)));
    upward.map(|(package, used)| format!("{package} depends on {used}, which is in a layer above")).collect()
}

fn forbidden(packages: &[Value], package: &str, names: &[&str], why: &str) -> Vec<String> {
    let package = packages.iter().find(|candidate| name(candidate) == package);
    let used = package.into_iter().flat_map(uses).filter(|used| names.contains(used));
    used.map(|used| format!("{} depends on {used}: {why}", name(package.expect("found above")))).collect()
}

#[test]
fn the_layers_hold() {
    let packages = packages();
    assert_clean(&every_crate_has_a_layer(&packages));
    assert_clean(&dependencies_point_downward(&packages));
    for package in ["concord-replica", "concord-server"] {
        assert_clean(&forbidden(&packages, package, &ENGINES, "it must not name an engine"));
    }
    for (_, members) in &LAYERS[..1] {
        for package in *members {
            assert_clean(&forbidden(&packages, package, &RUNTIMES, "pure crates know no runtime"));
        }
    }
}

fn package(name: &str, dependency: &str, kind: Option<&str>) -> Value {
    json!({"name": name, "dependencies": [{"name": dependency, "kind": kind, "optional": false}]})
}

#[test]
fn a_crate_without_a_layer_is_found() {
    assert_eq!(every_crate_has_a_layer(&[package("concord-new", "bytes", None)]).len(), 1);
    assert!(every_crate_has_a_layer(&[package("concord-store", "bytes", None)]).is_empty());
}

#[test]
fn an_upward_dependency_is_found() {
    assert_eq!(dependencies_point_downward(&[package("concord-store", "concord-server", None)]).len(), 1);
    assert_eq!(dependencies_point_downward(&[package("concord-server", "concord", None)]).len(), 1);
    assert!(
        dependencies_point_downward(&[package("concord-store", "concord-server", Some("dev"))]).is_empty()
    );
    assert!(dependencies_point_downward(&[package("concord", "concord-server", None)]).is_empty());
}

#[test]
fn an_engine_or_a_runtime_where_it_must_not_be_is_found() {
    let replica = [package("concord-replica", "concord-store-etcd", None)];
    assert_eq!(forbidden(&replica, "concord-replica", &ENGINES, "").len(), 1);
    let tested = [package("concord-replica", "concord-store-etcd", Some("dev"))];
    assert!(forbidden(&tested, "concord-replica", &ENGINES, "").is_empty());
    assert_eq!(
        forbidden(&[package("concord-store", "tokio", None)], "concord-store", &RUNTIMES, "").len(),
        1
    );
}
