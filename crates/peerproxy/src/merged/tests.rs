use std::thread;

use concord_server::Metrics;
use serde_json::Value;

use super::*;
use crate::{PeerView, document::Document, fake::Fake, routing::RoutedPeer, transport::SendError};

fn list(group: &str) -> Bytes {
    let kind = r#""kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{}"#;
    let resource = r#"{"resource":"things","scope":"Cluster","singularResource":"thing","verbs":["get"]}"#;
    let versions = format!(r#"[{{"version":"v1","resources":[{resource}],"freshness":"Current"}}]"#);
    format!(r#"{{{kind},"items":[{{"metadata":{{"name":"{group}"}},"versions":{versions}}}]}}"#).into()
}

fn routing(generation: u64, groups: &[&str]) -> Routing {
    let peer = |group: &&str| RoutedPeer {
        id: format!("apiserver-{group}"),
        address: None,
        document: Some(Arc::new(Document::new(Vec::new(), parse_groups(&list(group)).expect("readable")))),
        is_known: true,
        is_reachable: true,
        openapi: Arc::default(),
    };
    Routing { generation, peers: groups.iter().map(peer).collect(), is_synced: true, ..Routing::default() }
}

fn discovery() -> (Arc<Peers>, FleetDiscovery) {
    let transport =
        Arc::new(Fake::new(|_, _| Box::pin(async { Err(SendError::Broken("nobody".to_owned())) })));
    let state = PeerView::new("/registry/").state();
    let peers = Peers::new("apiserver-own", state, transport, Arc::new(Metrics::new()));
    (peers.clone(), FleetDiscovery::new(peers))
}

fn names(merged: &MergedDiscovery) -> String {
    let document: Value = serde_json::from_slice(&merged.document).expect("JSON");
    let items = document["items"].as_array().expect("groups").iter();
    items.map(|group| group["metadata"]["name"].as_str().expect("a name")).collect::<Vec<_>>().join(" ")
}

#[test]
fn without_others_there_is_nothing_to_merge() {
    let (peers, discovery) = discovery();
    assert!(discovery.merged(&list("a"), "1").is_none());
    peers.set_routing(Routing {
        peers: vec![RoutedPeer { document: None, ..routing(2, &["b"]).peers.remove(0) }],
        ..routing(2, &[])
    });
    assert!(discovery.merged(&list("a"), "1").is_none());
    // F5: with the last one that leaves, what it served goes.
    peers.set_routing(routing(3, &["b"]));
    assert_eq!(names(&discovery.merged(&list("a"), "1").expect("merged")), "a b");
    peers.set_routing(routing(4, &[]));
    assert!(discovery.merged(&list("a"), "1").is_none());
}

#[test]
fn it_is_made_anew_exactly_when_something_changed() {
    let (peers, discovery) = discovery();
    peers.set_routing(routing(1, &["b"]));
    let first = discovery.merged(&list("a"), "1").expect("merged");
    assert!(Arc::ptr_eq(&first, &discovery.merged(&list("a"), "1").expect("merged")));
    // F33: what is served here changed.
    let second = discovery.merged(&list("c"), "2").expect("merged");
    assert_eq!((names(&first), names(&second)), ("a b".to_owned(), "b c".to_owned()));
    assert_ne!(first.etag, second.etag);
    // What others serve changed.
    peers.set_routing(routing(2, &["b", "d"]));
    let third = discovery.merged(&list("c"), "2").expect("merged");
    assert_eq!(names(&third), "b c d");
    // Back to what it was: the same tag, whoever makes it.
    peers.set_routing(routing(3, &["b"]));
    let again = discovery.merged(&list("a"), "1").expect("merged");
    assert_eq!((&again.etag, &again.document), (&first.etag, &first.document));
}

/// The core group of a server that has these below its pods.
fn core(below: &[&str]) -> Bytes {
    let kind = r#""kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{}"#;
    let subresource = |name: &&str| format!(r#"{{"subresource":"{name}","verbs":["get"]}}"#);
    let subresources = below.iter().map(subresource).collect::<Vec<_>>().join(",");
    let resource = format!(
        r#"{{"resource":"pods","scope":"Namespaced","singularResource":"pod","verbs":["get"],"subresources":[{subresources}]}}"#
    );
    let versions = format!(r#"[{{"version":"v1","resources":[{resource}],"freshness":"Current"}}]"#);
    format!(r#"{{{kind},"items":[{{"metadata":{{}},"versions":{versions}}}]}}"#).into()
}

#[test]
fn what_only_others_have_in_the_core_group_is_shown() {
    let (peers, discovery) = discovery();
    assert!(discovery.merged_core(&core(&["status"]), "1").is_none());
    let mut one = routing(1, &["b"]);
    let groups = one.peers[0].document.as_ref().expect("a document").groups().to_vec();
    let newer = parse_groups(&core(&["resize", "status"])).expect("readable");
    one.peers[0].document = Some(Arc::new(Document::new(newer, groups)));
    peers.set_routing(one);
    let merged = discovery.merged_core(&core(&["status"]), "1").expect("merged");
    let document: Value = serde_json::from_slice(&merged.document).expect("JSON");
    let pods = &document["items"][0]["versions"][0]["resources"][0];
    let names = pods["subresources"].as_array().expect("a list").iter();
    let names: Vec<&str> = names.filter_map(|below| below["subresource"].as_str()).collect();
    assert_eq!(names, ["resize", "status"]);
    // Neither of the two documents takes the place of the other.
    let others = discovery.merged(&list("a"), "1").expect("merged");
    assert_eq!(self::names(&others), "a b");
    let again = discovery.merged_core(&core(&["status"]), "1").expect("merged");
    assert!(Arc::ptr_eq(&again, &merged));
}

#[test]
fn the_tag_is_the_hash_that_kube_apiserver_makes() {
    let (peers, discovery) = discovery();
    peers.set_routing(routing(1, &["b"]));
    let merged = discovery.merged(&list("a"), "1").expect("merged");
    let document = String::from_utf8(merged.document.to_vec()).expect("text");
    let kind = r#""kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","#;
    let without = document.trim_end().replacen(kind, "", 1);
    assert_eq!(merged.etag, etag(without.as_bytes()));
    assert_eq!(merged.etag.len(), 130);
}

#[test]
fn it_is_made_once_for_all_who_ask_at_once() {
    let (peers, discovery) = discovery();
    for generation in 1..20 {
        peers.set_routing(routing(generation, &["b"]));
        let made: Vec<_> = thread::scope(|scope| {
            let ask = || scope.spawn(|| discovery.merged(&list("a"), "1").expect("merged"));
            let asking: Vec<_> = (0..8).map(|_| ask()).collect();
            asking.into_iter().map(|asked| asked.join().expect("no panic")).collect()
        });
        assert!(made.iter().all(|one| Arc::ptr_eq(one, &made[0])), "{generation}");
    }
}
