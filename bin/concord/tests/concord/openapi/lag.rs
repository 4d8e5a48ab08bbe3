//! Servers whose clocks are wrong, and who learn of changes late, tell the same of the same state.

use std::{process::Command, time::Duration};

use concord_faultfs::{FaultFs, Faults};
use concord_testing::{
    etcd::Cluster,
    proxy::{Fault, Proxy},
};
use http::Method;
use serde_json::json;
use tempfile::{TempDir, tempdir};

use super::servers::{DEFINITIONS, GROUP, LEAF, agreed, definition, read, told, version, write};
use crate::support::Program;

/// How late the news are, at most, and how far the clocks are off in seconds: further than anything here is valid or
/// waited for, but not beyond the certificates.
const LATE: Duration = Duration::from_millis(400);
const AHEAD: i64 = 6 * 3600;
const BEHIND: i64 = -240;

/// A server with a way to the store and a clock of its own.
struct Member {
    data: TempDir,
    proxy: Proxy,
    /// `None` where no clock can be made to jump.
    clock: Option<(FaultFs, TempDir)>,
    id: &'static str,
}

impl Member {
    async fn new(etcd: &Cluster, id: &'static str) -> Self {
        let target = etcd.endpoints()[0].trim_start_matches("http://").parse().expect("an address");
        let proxy = Proxy::start(target, 0).await.expect("a proxy");
        let clock = concord_faultfs::library().map(|_| {
            let directory = tempdir().expect("a directory");
            let watched = directory.path().join("watched");
            std::fs::create_dir(&watched).expect("a directory");
            let clock = FaultFs::new(&watched, &directory.path().join("control"));
            (clock.expect("a control file"), directory)
        });
        Self { data: tempdir().expect("a directory"), proxy, clock, id }
    }

    async fn start(&self) -> Program {
        let flags = [format!("--etcd-servers={}", self.proxy.url()), format!("--server-id={}", self.id)];
        let attach = |command: &mut Command| {
            if let Some((clock, _)) = &self.clock {
                clock.attach(command).expect("there is a library");
            }
        };
        let program =
            Program::start_as(self.data.path(), &[flags[0].as_str(), flags[1].as_str()], attach).await;
        program.ready(200).await;
        program
    }

    fn set_clock(&self, ahead: i64) {
        if let Some((clock, _)) = &self.clock {
            let faults = Faults { clock_offset_seconds: ahead, ..Faults::default() };
            clock.set(&faults).expect("the clock is set");
        }
    }
}

/// Everything that both say, now that they agree.
async fn same(servers: [&Program; 2]) {
    for path in ["/openapi/v3", &format!("/openapi/v3/{LEAF}"), "/openapi/v3/api/v1", "/openapi/v2"] {
        told(servers, path).await;
    }
}

/// Where our document is, as a server says now.
async fn address(server: &Program) -> String {
    let index: serde_json::Value = serde_json::from_str(&read(server, "/openapi/v3").await.2).expect("JSON");
    index["paths"][LEAF]["serverRelativeURL"].as_str().expect("an address").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_clocks_nor_late_news_change_what_is_told() {
    let etcd = Cluster::single().await.expect("an etcd");
    let members = [Member::new(&etcd, "early").await, Member::new(&etcd, "late").await];
    let (early, mut late) = (members[0].start().await, members[1].start().await);
    members[0].set_clock(AHEAD);
    members[1].set_clock(BEHIND);
    write(&early, Method::POST, DEFINITIONS, &definition("cups", "Cup")).await;
    let first = agreed([&early, &late], |url| url.is_some()).await.expect("an address");
    same([&early, &late]).await;

    // No news at all: what was true is still told, and nobody who heard of the new state is led astray.
    let path = format!("{DEFINITIONS}/cups.{GROUP}");
    let change = |text: &str| json!({"spec": {"versions": [version(text, true)]}});
    members[1].proxy.set(Fault::BlackHole);
    write(&early, Method::PATCH, &path, &change("Second.")).await;
    let second =
        agreed([&early, &early], |url| url.is_some_and(|url| url != first)).await.expect("an address");
    assert_eq!(address(&late).await, first);
    assert_eq!(read(&late, &first).await.0, 200);
    let (status, location, _) = read(&late, &second).await;
    assert_eq!((status, &location), (301, &first), "what it has is another document");
    assert_eq!(read(&late, &location).await.0, 200, "it is sent on once");
    assert_eq!(read(&early, &location).await.0, 200, "whoever answers");
    members[1].proxy.set(Fault::None);
    assert_eq!(agreed([&early, &late], |url| url != Some(&first)).await, Some(second.clone()));
    same([&early, &late]).await;

    // News that are late, while much changes: an index is that of a state there was, and in the end it is the last one's.
    members[1].proxy.set(Fault::Delay(LATE));
    let mut known = vec![second];
    for text in ["Third.", "Fourth.", "Fifth."] {
        write(&early, Method::PATCH, &path, &change(text)).await;
        let last = known[known.len() - 1].clone();
        let next = agreed([&early, &early], |url| url.is_some_and(|url| url != last)).await;
        known.push(next.expect("an address"));
        assert!(known.contains(&address(&late).await), "the index of a state that never was");
    }
    members[0].set_clock(BEHIND);
    members[1].set_clock(AHEAD);
    assert_eq!(agreed([&early, &late], |url| url == known.last().map(String::as_str)).await, known.pop());
    same([&early, &late]).await;
    members[1].proxy.set(Fault::None);
    drop(late);
    late = members[1].start().await;
    same([&early, &late]).await;
}
