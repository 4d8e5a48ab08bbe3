//! Controllers of servers that do not know everything that is stored: what they do not know they leave alone.

use concord_store::{KeyRange, Scan, Store as _};
use http::Method;
use serde_json::{Value, json};

use super::{Fleet, Member, agreed, eventually, traffic::Traffic};
use crate::support::send;

const OLD: &[&str] = &["--runtime-config=policy/v1=false"];
const NEW: &[&str] = &[];

fn budgets(namespace: &str) -> String {
    format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Makes an object through a server, perhaps one that is owned, and says whose owner it can be.
async fn make(member: &Member, collection: &str, name: &str, owner: Option<&Value>) -> Value {
    let spec = if collection.contains("poddisruptionbudgets") { json!({"spec": {}}) } else { json!({}) };
    make_of(member, collection, name, spec, owner).await
}

/// Makes an object with this in it.
pub(super) async fn make_of(
    member: &Member,
    collection: &str,
    name: &str,
    mut object: Value,
    owner: Option<&Value>,
) -> Value {
    object["metadata"] = json!({"name": name});
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = json!([owner]);
    }
    let made = eventually("it is made", || async {
        let (status, made, _) = send(&mut member.admin().await, Method::POST, collection, &object).await;
        assert!(matches!(status, 201 | 429 | 503), "{collection}: {status} {made}");
        (status == 201).then_some(made)
    });
    let made = made.await;
    json!({"apiVersion": made["apiVersion"], "kind": made["kind"], "name": name, "uid": made["metadata"]["uid"]})
}

pub(super) async fn delete(member: &Member, path: &str) {
    eventually("it is deleted", || async {
        let status = member.admin().await.request(Method::DELETE, path).await.expect("an answer").status;
        assert!(matches!(status, 200 | 202 | 429 | 503), "{path}: {status}");
        (status < 300).then_some(())
    })
    .await;
}

pub(super) async fn gone(member: &Member, path: &str) {
    eventually(path, || async {
        let answer = member.get(path).await;
        (answer.status == 404 && answer.body.contains("not found")).then_some(())
    })
    .await;
}

/// How many keys there are below a place, by the word of the store itself.
pub(super) async fn stored(fleet: &Fleet, below: &str) -> usize {
    let store = fleet.store().await;
    let scan = Scan::new(KeyRange::prefix(format!("/registry/{below}")), 100);
    let count = store.scan(scan).await.expect("a page").entries.len();
    store.shutdown().await;
    count
}

/// A namespace is deleted and owners go while half of the fleet does not know a kind that is in it and owns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_destroyed_that_its_controllers_do_not_know() {
    let fleet = Fleet::new().await;
    let mut traffic = Traffic::default();
    let first = fleet.start("apiserver-1", OLD).await;
    traffic.through(&first, "apiserver-1");
    // The first one leads, and the second knows more than it.
    let second = fleet.start("apiserver-2", NEW).await;
    traffic.through(&second, "apiserver-2");
    agreed(&[&first, &second]).await;
    let namespaces = "/api/v1/namespaces";
    for name in ["staying", "leaving"] {
        make(&first, namespaces, name, None).await;
    }
    let owner = make(&first, &budgets("staying"), "owner", None).await;
    make(&first, &maps("staying"), "kept", Some(&owner)).await;
    make(&first, &budgets("leaving"), "unknown-to-one", None).await;
    make(&first, &maps("leaving"), "known-to-both", None).await;
    let dead = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "dead", "uid": "dead"});
    make(&first, &maps("staying"), "orphan", Some(&dead)).await;
    delete(&first, &format!("{namespaces}/leaving")).await;
    // What is known to be garbage goes. What is known to be in the namespace goes, and the rest holds it.
    gone(&first, &format!("{}/orphan", maps("staying"))).await;
    eventually("the namespace is emptied as far as possible", || async {
        (stored(&fleet, "configmaps/leaving/").await == 0).then_some(())
    })
    .await;
    if stored(&fleet, "poddisruptionbudgets/leaving/").await > 0 {
        assert_eq!(first.get(&format!("{namespaces}/leaving")).await.status, 200);
    }
    assert_eq!(first.get(&format!("{}/kept", maps("staying"))).await.status, 200);

    // The upgrade goes on, and whoever leads now knows everything.
    let data = first.stop("TERM").await;
    gone(&second, &format!("{namespaces}/leaving")).await;
    assert_eq!(stored(&fleet, "poddisruptionbudgets/leaving/").await, 0);
    let first = fleet.start_in(data, "apiserver-1", NEW).await;
    agreed(&[&first, &second]).await;
    assert_eq!(first.get(&format!("{}/kept", maps("staying"))).await.status, 200);

    // Back again: the one that stays knows everything, and is asked through the one that does not.
    let data = first.stop("TERM").await;
    let first = fleet.start_in(data, "apiserver-1", OLD).await;
    agreed(&[&first, &second]).await;
    delete(&first, &format!("{}/owner", budgets("staying"))).await;
    gone(&first, &format!("{}/kept", maps("staying"))).await;
    traffic.check();
    for member in [first, second] {
        member.stop("KILL").await;
    }
    let done = traffic.end().await.0;
    assert!(done > 20, "{done}");
}
