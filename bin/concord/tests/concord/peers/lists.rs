//! Lists that many clients ask for at the same time, through a server that does not have them.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use concord_server::test_client::TestClient;
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::task::JoinSet;

use super::{
    Fleet, agreed, eventually,
    users::{audited, texts},
};
use crate::support::send;

const WITHOUT: &str = "--runtime-config=policy/v1=false";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// The revision of a list, and the names in it.
async fn list(client: &mut TestClient, id: &str) -> (u64, Vec<String>) {
    let answer = client.exchange(Method::GET, BUDGETS, &[("audit-id", id)], Bytes::new()).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let ids: Vec<_> = answer.headers.get_all("audit-id").iter().collect();
    assert_eq!(ids, [id], "everybody has an ID of its own");
    let list: Value = serde_json::from_str(&answer.body).expect("a whole list");
    let name = |item: &Value| item["metadata"]["name"].as_str().expect("a name").to_owned();
    let revision = list["metadata"]["resourceVersion"].as_str().and_then(|revision| revision.parse().ok());
    (revision.expect("a revision"), list["items"].as_array().expect("items").iter().map(name).collect())
}

/// How many lists a server counts under the beginning of a line of its metrics.
fn counted(metrics: &str, name: &str, labels: &[&str]) -> usize {
    let is_it = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
    let value = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok());
    metrics.lines().filter(is_it).filter_map(value).map(|count| count as usize).sum()
}

/// A list is never older than what was there when it was asked for, however many ask at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_lists_after_a_write_sees_it_while_many_list_the_same() {
    const MADE: usize = 60;
    let fleet = Fleet::new().await;
    let logs = tempdir().expect("a directory");
    let flags = [&[WITHOUT.to_owned()], &audited(logs.path(), "a")[..]].concat();
    let far = fleet.start("apiserver-a", &texts(&flags)).await;
    let near = fleet.start("apiserver-b", &[]).await;
    agreed(&[&far, &near]).await;
    let (is_over, lists) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut crowd = JoinSet::new();
    for number in 0..32 {
        let mut client = far.admin().await;
        let (is_over, lists) = (is_over.clone(), lists.clone());
        crowd.spawn(async move {
            let (mut last, mut at) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                let (revision, _) = list(&mut client, &format!("{number}-{at}")).await;
                assert!(revision >= last, "time goes backward: {last}, then {revision}");
                (last, at) = (revision, at + 1);
                lists.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let (mut writer, mut reader) = (far.admin().await, far.admin().await);
    for at in 0..MADE {
        let name = format!("b-{at}");
        // Through either server: what one has answered the other shows.
        let mut direct = near.admin().await;
        let through = if at % 2 == 0 { &mut writer } else { &mut direct };
        let budget = json!({"metadata": {"name": name}, "spec": {}});
        let (status, made, _) = send(through, Method::POST, BUDGETS, &budget).await;
        assert_eq!(status, 201, "{made}");
        let (_, names) = list(&mut reader, &format!("reader-{at}")).await;
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = crowd.join_next().await {
        ended.expect("every list was right");
    }
    let asked = lists.load(Ordering::Relaxed) + MADE;
    let budgets = r#"resource="poddisruptionbudgets""#;
    let rerouted = counted(
        &far.metrics().await,
        "apiserver_rerouted_request_total{",
        &[r#"code="200""#, r#"group="policy""#, budgets],
    );
    assert_eq!(rerouted, asked, "each is counted");
    let sent = counted(&near.metrics().await, "apiserver_request_total{", &[r#"verb="LIST""#, budgets]);
    assert!(sent < asked, "{sent} requests for {asked} lists: nobody asked together");
    each_is_written_down(&logs.path().join("a"), asked).await;
}

/// Whom its list came from is said of each.
async fn each_is_written_down(log: &Path, asked: usize) {
    let events = eventually("all are written down", || async {
        let log = fs::read_to_string(log).expect("text");
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
        let is_it = |event: &Value| {
            event["verb"] == "list"
                && event["stage"] == "ResponseComplete"
                && event["objectRef"]["resource"] == "poddisruptionbudgets"
        };
        let events: Vec<Value> = events.filter(is_it).collect();
        (events.len() >= asked).then_some(events)
    });
    let events = events.await;
    assert_eq!(events.len(), asked);
    for event in events {
        let sent_to = &event["annotations"]["apiserver.kubernetes.io/peer-proxied-to"];
        assert_eq!(sent_to, "apiserver-b", "{event}");
    }
}
