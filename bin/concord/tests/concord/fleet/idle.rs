//! Three servers that start at the same moment, and then have nothing to do.

use std::time::{Duration, Instant};

use concord_store::{Commit, Store as _, Txn};
use futures_util::StreamExt as _;
use kube::api::ListParams;
use tokio::{join, time::timeout};

use super::world::{World, storage_versions, until, until_said};
use crate::support::SOON;

/// How long nothing has to be written. Whatever is done every second or two would be seen.
const QUIET: Duration = Duration::from_secs(4);

/// What is written for ever: leases, of identities, of who leads, and of the addresses of the service `kubernetes`.
const RENEWALS: [&str; 2] = ["/registry/leases/", "/registry/masterleases/"];

fn is_renewal(commit: &Commit) -> bool {
    commit.changes.iter().all(|change| {
        let key = String::from_utf8_lossy(change.key());
        RENEWALS.iter().any(|prefix| key.starts_with(prefix))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_is_started_at_once_is_ready_and_then_writes_nothing() {
    let mut world = World::new().await;
    let begin = Instant::now();
    let programs = join!(world.launch(0, &[]), world.launch(1, &[]), world.launch(2, &[]));
    join!(programs.0.ready(200), programs.1.ready(200), programs.2.ready(200));
    eprintln!("three servers were ready after {:?}", begin.elapsed());
    for (member, program) in world.members.iter_mut().zip([programs.0, programs.1, programs.2]) {
        member.program = Some(program);
    }
    let client = world.client(0).await;
    until_said(&client, "core.pods", "s1=v1,s2=v1,s3=v1 -> v1").await;
    let store = world.store().await;
    let (begin, mut last) = (Instant::now(), Instant::now());
    let mut commits = store.follow(1);
    while last.elapsed() < QUIET {
        let Ok(more) = timeout(QUIET / 10, commits.next()).await else { continue };
        for commit in more.expect("more").expect("readable").iter().filter(|commit| !is_renewal(commit)) {
            let keys = commit.changes.iter().map(|change| String::from_utf8_lossy(change.key()));
            let what: Vec<_> = keys.collect();
            assert!(begin.elapsed() < SOON, "the fleet never rests: {what:?} at {}", commit.revision);
            last = Instant::now();
        }
    }
    drop(commits);
    // A server is gone, and with its lease everything that it said.
    world.stop(2, "KILL").await;
    let begin = Instant::now();
    store.transact(Txn::new().delete("/registry/leases/kube-system/s3")).await.expect("deleted");
    until_said(&client, "core.pods", "s1=v1,s2=v1 -> v1").await;
    until("the end of all its entries", || async {
        let page = storage_versions(&client).list(&ListParams::default()).await.expect("a list");
        let is_left = page.items.iter().any(|object| object.data.to_string().contains("s3"));
        (!is_left).then_some(())
    })
    .await;
    eprintln!("what a server had said was gone {:?} after its lease", begin.elapsed());
    store.shutdown().await;
}
