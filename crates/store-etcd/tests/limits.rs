//! What etcd bounds: operations, bytes, space, leases; and what the prefix hides.

use std::{collections::BTreeSet, time::Duration};

use concord_store::{Change, Compare, Error, KeyRange, MAX_REQUEST_BYTES, Scan, Store, Txn};
use concord_store_etcd::EtcdStore;
use concord_testing::etcd::{Cluster, Options};
use futures_util::{StreamExt, future::join_all};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

mod common;
use common::{config, open, put, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_much_at_once_is_too_large() {
    let cluster = Cluster::single().await.expect("an etcd");
    let store = open(&cluster).await;
    let before = put(&store, "k", "v").await;
    let many = (0..129).fold(Txn::new(), |txn, n| txn.put(format!("k{n}"), "v"));
    let compares = (0..129).fold(Txn::new(), |txn, n| txn.compare(Compare::absent(format!("k{n}"))));
    // Within our own bound, but not with etcd's framing around it.
    let large = Txn::new().put("k", vec![0; MAX_REQUEST_BYTES - 1]);
    for txn in [many, compares, large] {
        let answer = within(store.transact(txn)).await;
        assert!(matches!(answer, Err(Error::TooLarge { .. })), "{answer:?}");
    }
    let most = (0..128).fold(Txn::new(), |txn, n| txn.put(format!("k{n}"), "v"));
    assert_eq!(within(store.transact(most)).await.expect("128 fit").revision, before + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_come_together_does_and_an_etcd_that_takes_less_gets_less() {
    for (takes_groups, args) in [(true, vec![]), (false, vec!["--max-txn-ops=1".to_owned()])] {
        let cluster = Cluster::start(Options { args, ..Options::default() }).await.expect("an etcd");
        let store = open(&cluster).await;
        let fence = put(&store, "fence", "v").await;
        let write = |n: usize| {
            // Every fifth one must not happen.
            let fence = Compare::mod_revision("fence", if n.is_multiple_of(5) { fence + 1 } else { fence });
            let txn = Txn::new().together().compare(fence).put(format!("k{n}"), "v").read_on_failure("fence");
            store.transact(txn)
        };
        let answers = within(join_all((0..100).map(write))).await;
        let mut revisions = BTreeSet::new();
        for (n, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(committed) if !n.is_multiple_of(5) => drop(revisions.insert(committed.revision)),
                Err(Error::CompareFailed(failed)) if n.is_multiple_of(5) => {
                    assert_eq!(failed.current[0].as_ref().expect("there").mod_revision, fence);
                }
                other => panic!("{n}: {other:?}"),
            }
        }
        assert_eq!(revisions.last(), Some(&within(store.current_revision()).await.expect("a revision")));
        let written = within(store.scan(Scan::new(KeyRange::prefix("k"), 200))).await.expect("read").entries;
        assert_eq!(written.len(), 80);
        assert!(written.iter().all(|entry| revisions.contains(&entry.mod_revision)));
        // One commit may have been under way alone before the others came.
        let is_as_expected = if takes_groups { revisions.len() < 20 } else { revisions.len() == 80 };
        assert!(is_as_expected, "{} revisions", revisions.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_size_is_told_and_grows() {
    let cluster = Cluster::single().await.expect("an etcd");
    let store = open(&cluster).await;
    let before = within(store.size()).await.expect("it says");
    assert!(before > 0);
    for n in 0..4 {
        let large = Txn::new().put(format!("k{n}"), vec![0; 1 << 20]);
        within(store.transact(large)).await.expect("stored");
    }
    // The file grows a moment after the commit.
    let grown = async {
        while store.size().await.expect("it says") < before + (4 << 20) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(grown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_database_may_have_taken_the_write() {
    let args = vec!["--quota-backend-bytes=16777216".to_owned()];
    let cluster = Cluster::start(Options { args, ..Options::default() }).await.expect("an etcd");
    let store = open(&cluster).await;
    let fill = async {
        for n in 0.. {
            if let Err(error) = store.transact(Txn::new().put(format!("k{n}"), vec![0; 1 << 20])).await {
                return error;
            }
        }
        unreachable!("the quota ends it")
    };
    let error = within(fill).await;
    let Error::OutcomeUnknown { reason } = &error else { panic!("{error}") };
    assert!(reason.contains("space"), "{reason}");
    within(store.scan(Scan::key("k0"))).await.expect("reads go on");
    let ttl = within(store.transact(Txn::new().put_with_ttl("k", "v", Duration::from_secs(60)))).await;
    assert!(matches!(ttl, Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. })), "{ttl:?}");
}

/// etcd up to 3.6 does not see what transactions in a transaction write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_database_takes_nothing_that_comes_together() {
    let cluster = Cluster::single().await.expect("an etcd");
    let store = open(&cluster).await;
    let before = put(&store, "k", "v").await;
    let write_all = || {
        let write = |n: usize| store.transact(Txn::new().together().put(format!("k{n}"), "v"));
        within(join_all((0..40).map(write)))
    };
    let alarm = |action: &str| format!(r#"{{"action":"{action}","memberID":"1","alarm":"NOSPACE"}}"#);
    gateway(&cluster, "/v3/maintenance/alarm", &alarm("ACTIVATE")).await;
    for answer in write_all().await {
        let Err(Error::OutcomeUnknown { reason }) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("space"), "{reason}");
    }
    assert_eq!(within(store.current_revision()).await.expect("a revision"), before, "nothing was written");
    gateway(&cluster, "/v3/maintenance/alarm", &alarm("DEACTIVATE")).await;
    assert!(write_all().await.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_similar_expiry_share_a_lease() {
    const KEYS: usize = 200;
    let cluster = Cluster::single().await.expect("an etcd");
    let store = open(&cluster).await;
    // Longer than all writes take on a busy machine: nothing is to expire before it is looked at.
    let ttl = Duration::from_secs(10);
    let put = |n: usize| store.transact(Txn::new().put_with_ttl(format!("k{n}"), "v", ttl));
    let puts = within(join_all((0..KEYS).map(put))).await;
    let last = puts.into_iter().map(|put| put.expect("a write").revision).max().expect("some");
    let leases = gateway(&cluster, "/v3/lease/leases", "{}").await.matches("\"ID\"").count();
    assert!((1..KEYS / 10).contains(&leases), "{leases} leases for {KEYS} keys");

    let (mut expired, mut stream) = (BTreeSet::new(), store.follow(last));
    while expired.len() < KEYS {
        let commits = within(stream.next()).await.expect("it goes on").expect("commits");
        for change in commits.into_iter().flat_map(|commit| commit.changes) {
            let Change::Delete { key } = change else { panic!("nobody writes") };
            assert!(expired.insert(key), "a key expires once");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_gone_is_replaced() {
    let cluster = Cluster::single().await.expect("an etcd");
    let store = open(&cluster).await;
    let put = |key: &'static str| store.transact(Txn::new().put_with_ttl(key, "v", Duration::from_secs(600)));
    within(put("a")).await.expect("a write");
    let leases = gateway(&cluster, "/v3/lease/leases", "{}").await;
    let id = leases.split("\"ID\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id");
    gateway(&cluster, "/v3/lease/revoke", &format!("{{\"ID\":\"{id}\"}}")).await;
    assert_eq!(within(store.scan(Scan::key("a"))).await.expect("a read").entries, []);
    within(put("b")).await.expect("another lease is granted");
    assert_eq!(within(store.scan(Scan::key("b"))).await.expect("a read").entries.len(), 1);
    let forever = store.transact(Txn::new().put_with_ttl("c", "v", Duration::MAX));
    assert!(matches!(within(forever).await, Err(Error::Invalid(_))));
}

/// Asks etcd over HTTP what the engine has no use for.
async fn gateway(cluster: &Cluster, path: &str, body: &str) -> String {
    let ask = async {
        let mut stream = TcpStream::connect(cluster.client_address(0)).await?;
        let head =
            format!("POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = within(ask).await.expect("an answer");
    assert!(answer.contains("200 OK"), "{answer}");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_outside_the_prefix_counts_but_does_not_show() {
    let cluster = Cluster::single().await.expect("an etcd");
    let all = open(&cluster).await;
    let mut config = config(cluster.endpoints());
    config.prefix = "/registry/".into();
    let store = EtcdStore::open(config).await.expect("a store");

    let start = within(store.current_revision()).await.expect("a revision");
    put(&all, "/other", "x").await;
    within(all.transact(Txn::new().put("/registry/a", "1").put("/registry0", "x"))).await.expect("a write");
    let last = put(&store, "/registry/b", "2").await;
    let commits = common::follow_until(&mut store.follow(start), start, last).await;
    let changes: Vec<usize> = commits.iter().map(|commit| commit.changes.len()).collect();
    assert_eq!(changes, [0, 1, 1]);

    let page = within(store.scan(Scan::new(KeyRange::all(), 100))).await.expect("a page");
    let keys: Vec<&[u8]> = page.entries.iter().map(|kv| kv.key.as_ref()).collect();
    assert_eq!(keys, [&b"/registry/a"[..], b"/registry/b"]);
    let page = within(store.scan(Scan::new(KeyRange::prefix("/other"), 100))).await.expect("a page");
    assert_eq!((page.revision, page.entries.len(), page.resume), (last, 0, None));
    for txn in [
        Txn::new().put("/other", "y"),
        Txn::new().delete("/registry0"),
        Txn::new().compare(Compare::absent("/other")).put("/registry/a", "y"),
        Txn::new().read_on_failure("/other"),
    ] {
        let answer = within(store.transact(txn)).await;
        assert!(matches!(answer, Err(Error::Invalid(_))), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_scans_and_commits_in_pieces_arrive_whole() {
    const LARGE: usize = 50;
    let cluster = Cluster::single().await.expect("an etcd");
    let store = open(&cluster).await;
    let start = within(store.current_revision()).await.expect("a revision");
    for n in 0..LARGE {
        let txn = Txn::new().put(format!("{n:04}"), vec![b'x'; 1 << 20]);
        within(store.transact(txn)).await.expect("a write");
    }
    // From history etcd packs all of them into one message, which is sent in pieces.
    let last = start + LARGE as u64;
    let commits = common::follow_until(&mut store.follow(start), start, last).await;
    assert!(commits.iter().all(|commit| commit.changes.len() == 1));

    let (mut seen, mut range, mut pages) = (0, KeyRange::all(), 0);
    loop {
        let page = within(store.scan(Scan::new(range.clone(), usize::MAX).at(last))).await.expect("a page");
        assert!(page.entries.iter().all(|kv| kv.value.len() == 1 << 20));
        (seen, pages) = (seen + page.entries.len(), pages + 1);
        let Some(resume) = page.resume else { break };
        range = range.starting_at(resume);
    }
    assert_eq!(seen, LARGE);
    assert!(pages > 1, "a page is bounded in bytes");
}
