//! Servers of different releases on one etcd, as one: what any of them serves, each of them serves (KEP-4020).

mod controllers;
mod hostile;
mod lists;
mod outages;
mod rotation;
mod serving;
mod streams;
mod traffic;
mod tunnel;
mod upgrade;
mod users;

use std::{
    collections::BTreeSet,
    fs,
    future::Future,
    path::PathBuf,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_server::test_client::{Answer, Protocol, TestClient};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::etcd::Cluster;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::{Program, SOON};

/// What clients send that want everything at once.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// One store and one PKI for all servers.
struct Fleet {
    etcd: Cluster,
    pki: TempDir,
    /// Whom servers believe that they are servers.
    peer_ca: PathBuf,
    /// For how long a server may be silent that others may still take for alive.
    lease: &'static str,
}

/// A server, with a directory of its own.
struct Member {
    data: TempDir,
    program: Program,
}

impl Fleet {
    async fn new() -> Self {
        let (etcd, pki) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
        let peer_ca = pki.path().join("ca.crt");
        Self { etcd, pki, peer_ca, lease: "10s" }
    }

    /// The store itself, as only servers see it.
    async fn store(&self) -> EtcdStore {
        let config =
            Config { prefix: "/registry/".into(), ..Config::new(self.etcd.endpoints().iter().cloned()) };
        EtcdStore::open(config).await.expect("a store")
    }

    /// Starts a server. The first one makes the PKI, so it has to be alone.
    async fn start(&self, id: &str, flags: &[&str]) -> Member {
        let data = tempdir().expect("a directory");
        std::os::unix::fs::symlink(self.pki.path(), data.path().join("pki")).expect("a link");
        self.start_in(data, id, flags).await
    }

    async fn start_in(&self, data: TempDir, id: &str, flags: &[&str]) -> Member {
        let own = [
            format!("--etcd-servers={}", self.etcd.endpoints()[0]),
            format!("--server-id={id}"),
            format!("--peer-ca-file={}", self.peer_ca.display()),
            "--identity-lease-renew-interval=1s".to_owned(),
            format!("--identity-lease-duration={}", self.lease),
        ];
        let all: Vec<&str> = own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        // The authority of the peers is that of the PKI, which is there when the first server has started.
        if !self.peer_ca.exists() {
            let first = Program::start_with(data.path(), &own_without_peers(&all)).await;
            first.signal("TERM");
            first.ended().await;
        }
        let program = Program::start_with(data.path(), &all).await;
        program.ready(200).await;
        Member { data, program }
    }
}

/// The flags of a server that only makes the PKI.
fn own_without_peers<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    flags.iter().copied().filter(|flag| !flag.starts_with("--peer-")).collect()
}

impl Member {
    async fn admin(&self) -> TestClient {
        self.program.admin(Protocol::Http2).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.admin().await.get(path).await.expect("an answer")
    }

    /// The aggregated document of all groups but core, with its tag.
    async fn discovery(&self, profile: &str) -> (Value, String) {
        let accept = format!("{AGGREGATED}{profile}");
        let mut admin = self.admin().await;
        let headers = [("accept", accept.as_str())];
        let answer = admin.exchange(Method::GET, "/apis", &headers, Bytes::new()).await.expect("an answer");
        assert_eq!((answer.status, answer.headers["content-type"].to_str().ok()), (200, Some(AGGREGATED)));
        let tag = answer.headers["etag"].to_str().expect("text").to_owned();
        (serde_json::from_str(&answer.body).expect("JSON"), tag)
    }

    /// The aggregated document of a path in a media type, as it is sent, with its tag.
    async fn aggregated(&self, path: &str, media_type: &str) -> (Bytes, String) {
        let accept = AGGREGATED.replacen("application/json", media_type, 1);
        let answer = self.admin().await.send(Method::GET, path, &[("accept", &accept)], Bytes::new()).await;
        let answer = answer.expect("an answer");
        let content_type = answer.headers()["content-type"].to_str().expect("text");
        assert_eq!((answer.status().as_u16(), content_type), (200, accept.as_str()));
        let tag = answer.headers()["etag"].to_str().expect("text").to_owned();
        (answer.into_body().collect().await.expect("a body").to_bytes(), tag)
    }

    async fn stop(self, signal: &str) -> TempDir {
        self.program.signal(signal);
        self.program.ended().await;
        self.data
    }

    async fn metrics(&self) -> String {
        self.get("/metrics").await.body
    }
}

/// `group/version/resource` of everything in a document.
fn resources(document: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for group in document["items"].as_array().expect("groups") {
        let name = group["metadata"]["name"].as_str().expect("a name");
        for version in group["versions"].as_array().into_iter().flatten() {
            for resource in version["resources"].as_array().into_iter().flatten() {
                let (version, resource) = (&version["version"], &resource["resource"]);
                all.insert(format!(
                    "{name}/{}/{}",
                    version.as_str().unwrap_or("?"),
                    resource.as_str().unwrap_or("?")
                ));
            }
        }
    }
    all
}

/// How fresh a group-version is said to be; `None` if it is not listed.
fn freshness(document: &Value, group: &str, version: &str) -> Option<String> {
    let groups = document["items"].as_array().expect("groups");
    let group = groups.iter().find(|candidate| candidate["metadata"]["name"] == group)?;
    let versions = group["versions"].as_array().expect("versions");
    let version = versions.iter().find(|candidate| candidate["version"] == version)?;
    version["freshness"].as_str().map(ToOwned::to_owned)
}

/// Looks again and again until there is something to see.
async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begin.elapsed() < SOON, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until all servers say the same, and that it is everything that any of them serves.
async fn agreed(members: &[&Member]) -> Value {
    eventually("all servers show the same", || async {
        let mut expected = BTreeSet::new();
        for member in members {
            expected.extend(resources(&member.discovery(";profile=nopeer").await.0));
        }
        let mut seen = Vec::new();
        for member in members {
            seen.push(member.discovery("").await);
        }
        let same = seen.iter().all(|(document, tag)| *tag == seen[0].1 && resources(document) == expected);
        same.then(|| seen.swap_remove(0).0)
    })
    .await
}

/// A file with the certificates of several.
fn bundle(fleet: &Fleet, others: &[&str]) -> PathBuf {
    let path = fleet.pki.path().join("peers.crt");
    let own = fs::read_to_string(fleet.pki.path().join("ca.crt")).expect("a PKI");
    fs::write(&path, [&[own.as_str()][..], others].concat().join("\n")).expect("written");
    path
}
