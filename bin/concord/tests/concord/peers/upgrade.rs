//! Servers come, go, crash and change their release, and nothing that exists anywhere is ever said not to exist.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use concord_server::test_client::{Protocol, Target};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    Fleet, Member, agreed,
    controllers::{delete, gone, make_of, stored},
    eventually, freshness, resources,
    traffic::Traffic,
};

const EVERYTHING: &str = "--runtime-config=api/all=true";
const JOBS: &str = "/apis/batch/v1/jobs";

/// Asks a server for something again and again, and fails at the first 404 while there must be none.
struct Sweep {
    tasks: JoinSet<usize>,
    /// Whether "not found" would be wrong by now, for each path.
    wrong: Vec<(&'static str, Arc<AtomicBool>)>,
}

impl Sweep {
    fn new(paths: &[&'static str]) -> Self {
        let wrong = paths.iter().map(|path| (*path, Arc::default())).collect();
        Self { tasks: JoinSet::new(), wrong }
    }

    fn exists(&self, path: &str, exists: bool) {
        let (_, wrong) =
            self.wrong.iter().find(|(candidate, _)| *candidate == path).expect("a path that is swept");
        wrong.store(exists, Ordering::SeqCst);
    }

    /// Sweeps through a server until that cannot be asked any more.
    fn through(&mut self, member: &Member, id: &'static str) {
        let pki = member.data.path().join("pki");
        let target = Target::new(member.program.address, &pki.join("ca.crt"), Protocol::Http2)
            .with_identity(&pki.join("admin.crt"), &pki.join("admin.key"));
        let wrong = self.wrong.clone();
        self.tasks.spawn(async move {
            let mut asked = 0;
            let Ok(mut client) = target.connect().await else { return asked };
            loop {
                for (path, wrong) in &wrong {
                    let was_wrong = wrong.load(Ordering::SeqCst);
                    let Ok(answer) = client.get(path).await else { return asked };
                    let is_wrong = was_wrong && wrong.load(Ordering::SeqCst);
                    asked += 1;
                    let fine = match answer.status {
                        200 | 429 | 503 => true,
                        404 => !is_wrong,
                        _ => false,
                    };
                    assert!(fine, "{path} through {id}: {} {}", answer.status, answer.body);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }

    async fn end(mut self) -> usize {
        let mut asked = 0;
        while let Some(done) = self.tasks.join_next().await {
            asked += done.expect("nothing was wrong");
        }
        asked
    }

    /// Fails if something was wrong already.
    fn check(&mut self) {
        while let Some(done) = self.tasks.try_join_next() {
            done.expect("nothing was wrong");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missing_while_servers_are_upgraded_and_rolled_back() {
    const NEW: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
    const OLD: &str = "/apis/admissionregistration.k8s.io/v1beta1/validatingadmissionpolicies";
    const PODS: &str = "/api/v1/pods";
    const IDS: [&str; 3] = ["apiserver-1", "apiserver-2", "apiserver-3"];
    let fleet = Fleet::new().await;
    let (mut sweep, mut traffic) = (Sweep::new(&[NEW, OLD, PODS]), Traffic::default());
    let mut members = Vec::new();
    for id in IDS {
        let member = fleet.start(id, &["--emulated-version=1.33", EVERYTHING]).await;
        members.push(Some(member));
    }
    agreed(&members.iter().flatten().collect::<Vec<_>>()).await;
    for (at, id) in IDS.iter().enumerate() {
        let member = members[at].as_ref().expect("it runs");
        sweep.through(member, id);
        traffic.through(member, id);
    }
    sweep.exists(OLD, true);
    sweep.exists(PODS, true);
    // Up, one after the other, through the releases; and all of them back.
    let rounds = [(0, "1.34"), (1, "1.35"), (2, "1.36"), (0, "1.33"), (1, "1.33"), (2, "1.33")];
    for (round, (at, release)) in rounds.into_iter().enumerate() {
        let other = members[(at + 1) % 3].as_ref().expect("it runs");
        match round {
            2 => {
                planted(other).await;
                // The last server that serves it goes, while controllers have something to do.
                sweep.exists(OLD, false);
                delete(other, &format!("{CLASSES}/leaving")).await;
                delete(other, "/api/v1/namespaces/leaving").await;
            }
            4 => delete(other, &format!("{CLASSES}/staying")).await,
            5 => sweep.exists(NEW, false),
            _ => {}
        }
        let signal = if round % 2 == 0 { "TERM" } else { "KILL" };
        let data = members[at].take().expect("it runs").stop(signal).await;
        let flag = format!("--emulated-version={release}");
        let member = fleet.start_in(data, IDS[at], &[&flag, EVERYTHING]).await;
        sweep.through(&member, IDS[at]);
        traffic.through(&member, IDS[at]);
        members[at] = Some(member);
        agreed(&members.iter().flatten().collect::<Vec<_>>()).await;
        // Now that everybody knows the new server, what it serves is not missing as long as it is there.
        sweep.exists(NEW, round != 5);
        sweep.exists(OLD, round != 2);
        for member in members.iter().flatten() {
            assert_eq!(member.get(NEW).await.status, if round == 5 { 404 } else { 200 });
            assert_eq!(member.get(OLD).await.status, if round == 2 { 404 } else { 200 });
        }
        let member = members[at].as_ref().expect("it runs");
        match round {
            2 | 3 => what_stays_stays_and_what_leaves_left(&fleet, member).await,
            4 => gone(member, &format!("{MAPS}/staying")).await,
            _ => {}
        }
        sweep.check();
        traffic.check();
    }
    sweep.exists(NEW, false);
    sweep.exists(OLD, false);
    for member in members.into_iter().flatten() {
        member.stop("KILL").await;
    }
    let (swept, (asked, made)) = (sweep.end().await, traffic.end().await);
    eprintln!("{swept} sweeps, {asked} requests, made {made:?}");
    assert!(swept > 100 && asked > 100 && made.len() == 4, "{swept} {asked} {made:?}");
}

const CLASSES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
const MAPS: &str = "/api/v1/namespaces/staying/configmaps";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/leaving/resourceclaims";

/// Owners of a version that the oldest server does not know, what they own, and a namespace with a kind in it of which
/// that server knows other versions only.
async fn planted(member: &Member) {
    let namespaces = "/api/v1/namespaces";
    for name in ["staying", "leaving"] {
        make_of(member, namespaces, name, json!({}), None).await;
    }
    for name in ["staying", "leaving"] {
        let class = json!({"driverName": "example.com", "parameters": {"a": "b"}});
        let owner = make_of(member, CLASSES, name, class, None).await;
        make_of(member, MAPS, name, json!({}), Some(&owner)).await;
    }
    make_of(member, CLAIMS, "claim", json!({"spec": {}}), None).await;
    make_of(member, "/api/v1/namespaces/leaving/configmaps", "map", json!({}), None).await;
}

async fn what_stays_stays_and_what_leaves_left(fleet: &Fleet, member: &Member) {
    gone(member, &format!("{MAPS}/leaving")).await;
    gone(member, "/api/v1/namespaces/leaving").await;
    for kind in ["resourceclaims", "configmaps"] {
        assert_eq!(stored(fleet, &format!("{kind}/leaving/")).await, 0, "{kind}");
    }
    for path in [format!("{MAPS}/staying"), format!("{CLASSES}/staying")] {
        let answer = member.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_server_that_has_something_leaves_crashes_and_comes_back() {
    let mut fleet = Fleet::new().await;
    // A server that crashed is to be back before it is taken for gone, however long it takes to start.
    fleet.lease = "60s";
    let without = fleet.start("apiserver-a", &["--runtime-config=batch/v1=false"]).await;
    let with = fleet.start("apiserver-b", &[]).await;
    agreed(&[&without, &with]).await;
    assert_eq!(without.get(JOBS).await.status, 200);
    // It leaves in order: first nobody can answer, then it is gone from requests and discovery alike.
    let (data, ()) = tokio::join!(with.stop("TERM"), async {
        eventually("jobs are gone", || async {
            let answer = without.get(JOBS).await;
            assert!(matches!(answer.status, 200 | 404 | 429 | 503), "{}: {}", answer.status, answer.body);
            (answer.status == 404).then_some(())
        })
        .await;
    });
    assert!(!resources(&without.discovery("").await.0).contains("batch/v1/jobs"));
    let with = fleet.start_in(data, "apiserver-b", &[]).await;
    agreed(&[&without, &with]).await;
    assert_eq!(without.get(JOBS).await.status, 200);
    // It crashes: nobody says that jobs do not exist, and discovery says soon that what it knows is old.
    let data = with.stop("KILL").await;
    let begin = Instant::now();
    let is_stale = || async {
        (freshness(&without.discovery("").await.0, "batch", "v1").as_deref() == Some("Stale")).then_some(())
    };
    // Also if nobody asks for jobs.
    eventually("jobs are stale", is_stale).await;
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    let answer = without.get(JOBS).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(without.get("/api/v1/pods").await.status, 200);
    // And comes back.
    let (with, ()) = tokio::join!(fleet.start_in(data, "apiserver-b", &[]), async {
        eventually("jobs are back", || async {
            let answer = without.get(JOBS).await;
            assert!(matches!(answer.status, 200 | 503), "{}: {}", answer.status, answer.body);
            (answer.status == 200).then_some(())
        })
        .await;
    });
    agreed(&[&without, &with]).await;
}
