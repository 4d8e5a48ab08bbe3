//! `concord controllers`, and a network that is as bad as can be between it and the servers.

use std::{net::SocketAddr, path::Path, time::Duration};

use concord_store::Store;
use concord_testing::{
    etcd::Cluster,
    proxy::{Fault, Proxy},
};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use super::{
    ANNOTATIONS, condition, create_foo, define, kept, kind, migration, migrations, stored_versions, succeeds,
};
use crate::{
    encryption::etcd_store,
    support::{Program, client, run_until},
};

const OBJECTS: usize = 120;
const RATE: &str = "max-requests-per-second";

async fn serve(etcd: &Cluster, data: &Path, id: &str) -> Program {
    let flags = [
        format!("--etcd-servers={}", etcd.endpoints()[0]),
        format!("--server-id={id}"),
        "--storage-migration-delay=0s".to_owned(),
        "--leader-elect-lease-duration=3s".to_owned(),
        "--leader-elect-renew-deadline=2s".to_owned(),
        "--leader-elect-retry-period=500ms".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Program::start_with(data, &flags).await;
    server.ready(200).await;
    server
}

/// The servers think that somebody else leads them, for an hour: none of them migrates anything.
async fn nobody_leads(client: &Client) {
    let kind = kind("coordination.k8s.io", "v1", "Lease");
    let leases: Api<DynamicObject> = Api::namespaced_with(client.clone(), "kube-system", &kind);
    let other = json!({"spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 3600}});
    while leases.patch("concord-controllers", &PatchParams::default(), &Patch::Merge(&other)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Longer than whoever led may go on without being asked again.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let lease = leases.get("concord-controllers").await.expect("there");
    assert_eq!(lease.data["spec"]["holderIdentity"], "somebody-else");
}

/// A second server with the certificates of the first: whoever trusts one trusts both.
fn copy_of(data: &Path) -> TempDir {
    let copy = tempdir().expect("a directory");
    let copied = std::process::Command::new("cp").arg("-r").arg(data.join("pki")).arg(copy.path()).status();
    assert!(copied.expect("cp runs").success());
    copy
}

async fn renewed(store: &dyn Store) -> usize {
    let all = kept(store, "/registry/example.com/foos/").await;
    let new = br#"{"kind":"Foo","apiVersion":"example.com/v2""#;
    all.iter().filter(|(_, value)| value.starts_with(new)).count()
}

struct World {
    etcd: Cluster,
    data: [TempDir; 2],
    servers: Vec<Program>,
    /// Whom nobody trusts here.
    stranger: (TempDir, Program),
    proxy: Proxy,
}

impl World {
    async fn new() -> Self {
        let etcd = Cluster::single().await.expect("an etcd");
        let first = tempdir().expect("a directory");
        let one = serve(&etcd, first.path(), "s1").await;
        let second = copy_of(first.path());
        let two = serve(&etcd, second.path(), "s2").await;
        let place = tempdir().expect("a directory");
        let stranger = Program::start(place.path()).await;
        stranger.ready(200).await;
        let proxy = Proxy::start(one.address, 0).await.expect("a proxy");
        Self { etcd, data: [first, second], servers: vec![one, two], stranger: (place, stranger), proxy }
    }

    /// What reaches the servers only through the proxy.
    fn kubeconfig(&self) -> String {
        let text = std::fs::read_to_string(self.data[0].path().join("admin.kubeconfig")).expect("a file");
        let text = text.replace(&self.servers[0].address.to_string(), &self.proxy.address().to_string());
        let path = self.data[0].path().join("through-proxy.kubeconfig");
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("test paths are text").to_owned()
    }

    /// From now on whoever asks is sent there.
    fn send_to(&self, address: SocketAddr) {
        self.proxy.retarget(address);
        self.proxy.cut();
    }

    async fn fails(&self, fault: Fault) {
        self.proxy.set(fault);
        if fault == Fault::Refuse {
            self.proxy.cut();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.proxy.set(Fault::None);
        // What was open on one side only is not any more.
        self.proxy.cut();
    }

    async fn restart(&mut self, signal: &str) {
        let old = self.servers.remove(0);
        old.signal(signal);
        old.ended().await;
        let new = serve(&self.etcd, self.data[0].path(), "s1").await;
        self.send_to(new.address);
        self.servers.insert(0, new);
    }

    /// Everything that can be between a client and its servers, while something is migrated in each pause.
    async fn suffer(&mut self, store: &dyn Store) {
        let mut before = 0;
        for trouble in 0..6 {
            while renewed(store).await <= before {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            match trouble {
                0 => self.fails(Fault::Refuse).await,
                1 => self.fails(Fault::BlackHole).await,
                2 => {
                    self.send_to(self.stranger.1.address);
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    self.send_to(self.servers[0].address);
                }
                3 => self.restart("TERM").await,
                4 => self.restart("KILL").await,
                // Another server for every request, or nearly so.
                _ => {
                    for round in 0..40 {
                        self.send_to(self.servers[round % 2].address);
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
            before = renewed(store).await;
            assert!(before < OBJECTS, "it was not in the middle");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_between_it_and_the_servers_it_ends_well() {
    let mut world = World::new().await;
    let (store, direct) = (etcd_store(&world.etcd).await, client(world.data[1].path()).await);
    nobody_leads(&direct).await;
    define(&direct, &["v1", "v2"], "v1").await;
    for number in 0..OBJECTS {
        create_foo(&direct, "v1", &format!("foo-{number:03}")).await;
    }
    define(&direct, &["v1", "v2"], "v2").await;
    let slow = migration("outside", "example.com", "foos", &[(RATE, "3")]);
    migrations(&direct).create(&PostParams::default(), &slow).await.expect("created");
    let path = world.kubeconfig();
    let has_ended = async || {
        let now = migrations(&direct).get("outside").await;
        now.is_ok_and(|now| {
            ["Succeeded", "Failed"].iter().any(|kind| condition(&now, kind, "True").is_some())
        })
    };
    let arguments = ["controllers", "--kubeconfig", &path];
    let suffer = async {
        world.suffer(&store).await;
        let faster = json!({"metadata": {"annotations": {format!("{ANNOTATIONS}/{RATE}"): "1000"}}});
        let faster = Patch::Merge(faster);
        migrations(&direct).patch("outside", &PatchParams::default(), &faster).await.expect("patched");
    };
    let (ended, ()) = tokio::join!(run_until(&arguments, has_ended, "INT"), suffer);
    assert!(ended.status.success(), "{}", ended.stderr);
    let ended = succeeds(&direct, "outside").await;
    assert!(condition(&ended, "AgreementUnknown", "True").is_some(), "{:?}", ended.data);
    let (_, message) = condition(&ended, "Succeeded", "True").expect("it has");
    assert!(message.contains("What is stored was not counted"), "{message}");
    assert_eq!(renewed(&store).await, OBJECTS);
    assert_eq!(stored_versions(&direct).await, json!(["v1", "v2"]), "nothing was proved");
    store.shutdown().await;
}
