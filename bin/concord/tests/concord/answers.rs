//! What kube-apiserver answers to odd requests, written down in tables, and whether this server answers the same.
//!
//! The tables are those of `testing/differential`, which also compares two running servers by them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use concord_differential::{Case, Session, Table, load};
use concord_testing::etcd::Cluster;
use tempfile::tempdir;

use crate::support::Program;

/// The answers are those of a kube-apiserver without a controller manager: what is to wait for its dependents stays.
const ALONE: &str = "--enable-garbage-collector=false";

fn tables() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/differential/tables")
}

/// What is wrong with an answer: it is neither upstream's nor the one that is known to differ.
fn complaint(case: &Case, short: &str) -> Option<String> {
    let upstream = case.upstream.as_deref()?;
    let expected = [Some(upstream), case.known.as_ref().and(case.ours.as_deref())];
    let fits = expected.into_iter().flatten().any(|expected| expected == short);
    (!fits).then(|| format!("{}\n  {}\n- {upstream}\n+ {short}\n", case.title, case.request))
}

/// Sends a table and returns how many cases it has, and what is wrong.
fn check(kubeconfig: &Path, name: &str) -> (usize, Vec<String>) {
    let text = fs::read_to_string(tables().join(format!("{name}.txt"))).expect("a table");
    let table = Table::parse(&text).expect("a table");
    let server = load(kubeconfig).expect("a kubeconfig");
    let mut session = Session::begin(server, &format!("answers-{name}")).expect("a namespace");
    let mut complaints = Vec::new();
    for case in &table.cases {
        let outcome = session.run(case).unwrap_or_else(|error| panic!("{}: {error:#}", case.title));
        complaints.extend(complaint(case, &outcome.short));
    }
    session.end().expect("the server is there");
    (table.cases.len(), complaints)
}

async fn all_are_answered(data: &Path, names: &[&'static str]) {
    for &name in names {
        let kubeconfig = data.join("admin.kubeconfig");
        let checked = tokio::task::spawn_blocking(move || check(&kubeconfig, name));
        let (cases, complaints) = checked.await.expect("no panic");
        assert!(cases > 30, "{name} has lost its cases");
        assert!(
            complaints.is_empty(),
            "{} of {cases} in {name}:\n\n{}",
            complaints.len(),
            complaints.join("\n")
        );
    }
}

/// What is asked of the APIs that are on by default, and of all of them.
const ODD: &[&str] = &[
    "access",
    "bad-bodies",
    "bad-patches",
    "bad-requests",
    "core",
    "lists",
    "pods",
    "storage-versions",
    "strategies",
    "verbs",
    "workloads",
];
const KINDS: &[&str] = &["devices", "kinds", "admission"];
/// What is asked of definitions, and of the objects that they define.
const CUSTOM: &[&str] = &["definitions", "customs"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_get_upstreams_answers() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[ALONE]).await;
    server.ready(200).await;
    all_are_answered(data.path(), ODD).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_is_answered_as_upstream_does() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--runtime-config=api/all=true", ALONE]).await;
    server.ready(200).await;
    all_are_answered(data.path(), KINDS).await;
}

/// The answers are those of a kube-apiserver whose features are on that belong to kinds which are off by default.
const FEATURES: &str = "--feature-gates=ClusterTrustBundle=true,DRADeviceTaintRules=true,DRAResourcePoolStatus=true,\
    DRAWorkloadResourceClaims=true,GangScheduling=true,GenericWorkload=true,PodCertificateRequest=true,\
    TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_is_answered_as_upstream_does() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--runtime-config=api/all=true", FEATURES, ALONE]).await;
    server.ready(200).await;
    all_are_answered(data.path(), &["fields", "rules"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_and_their_objects_are_answered_as_upstream_does() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[ALONE]).await;
    server.ready(200).await;
    all_are_answered(data.path(), CUSTOM).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_the_same_on_etcd() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers, ALONE]).await;
    server.ready(200).await;
    all_are_answered(data.path(), ODD).await;
    all_are_answered(data.path(), CUSTOM).await;
    drop(server);
    // Beside what the others left, of which namespaces and addresses may still be going.
    let flags = [servers.as_str(), "--etcd-prefix=/kinds", "--runtime-config=api/all=true", ALONE];
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    all_are_answered(data.path(), KINDS).await;
}
