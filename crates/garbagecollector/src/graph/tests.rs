use std::borrow::Cow;

use super::*;
use crate::OwnerReference;

/// An object: its uid, its owners (with a `!` if they have to wait for it), and finalizers if it is being deleted.
fn object(uid: &'static str, owners: &[&'static str], ending: &[&str]) -> Metadata<'static> {
    let reference = |owner: &&'static str| OwnerReference {
        uid: Cow::Borrowed(owner.trim_end_matches('!')),
        block_owner_deletion: owner.ends_with('!').then_some(true),
        ..OwnerReference::default()
    };
    Metadata {
        uid: uid.into(),
        owner_references: owners.iter().map(reference).collect(),
        finalizers: ending.iter().map(|name| (*name).to_owned()).collect(),
        is_deleting: !ending.is_empty(),
    }
}

/// A graph, and the objects in it. The key of an object is its uid.
#[derive(Default)]
struct Fed {
    graph: Graph,
    objects: HashMap<&'static str, Metadata<'static>>,
}

impl Fed {
    fn set(&mut self, uid: &'static str, owners: &[&'static str], ending: &[&str]) -> Vec<String> {
        let now = object(uid, owners, ending);
        let before = self.objects.insert(uid, now.clone());
        self.apply(uid, before.as_ref(), Some(&now))
    }

    fn remove(&mut self, uid: &'static str) -> Vec<String> {
        let before = self.objects.remove(uid);
        self.apply(uid, before.as_ref(), None)
    }

    fn apply(&mut self, key: &str, before: Option<&Metadata<'_>>, now: Option<&Metadata<'_>>) -> Vec<String> {
        let mut found = Vec::new();
        let change = Change { key: key.as_bytes(), before, now };
        self.graph.apply(change, &mut |key| found.push(String::from_utf8_lossy(key).into_owned()));
        found.sort();
        found
    }
}

#[test]
fn a_change_concerns_those_it_is_about() {
    let mut fed = Fed::default();
    assert!(fed.set("owner", &[], &[]).is_empty());
    assert_eq!(fed.set("a", &["owner"], &[]), ["a"]);
    assert_eq!(fed.set("b", &["owner!", "other"], &[]), ["b"]);
    assert!(fed.set("b", &["owner!", "other"], &[]).is_empty(), "nothing about its owners changed");
    assert_eq!(fed.graph.len(), 3);
    assert_eq!(fed.remove("owner"), ["a", "b"]);
    assert_eq!(fed.graph.tombstone(&"owner".into()), Some(&Bytes::from("owner")));
    assert!(fed.remove("a").is_empty());
    assert!(fed.graph.tombstone(&"owner".into()).is_some(), "somebody still refers to it");
    assert!(fed.remove("b").is_empty());
    assert!(fed.graph.tombstone(&"owner".into()).is_none() && fed.graph.is_empty());
}

#[test]
fn whoever_waits_is_told_when_the_last_one_it_waits_for_lets_go() {
    let mut fed = Fed::default();
    fed.set("owner", &[], &[]);
    fed.set("a", &["owner!"], &[]);
    fed.set("b", &["owner!"], &[]);
    fed.set("c", &["owner"], &[]);
    assert_eq!(fed.set("owner", &[], &["foregroundDeletion"]), ["a", "b", "c", "owner"]);
    assert!(fed.graph.is_blocked(&"owner".into()));
    assert!(fed.remove("a").is_empty());
    assert_eq!(fed.set("b", &["owner"], &[]), ["b", "owner"], "b no longer holds it");
    assert!(!fed.graph.is_blocked(&"owner".into()) && fed.graph.has_dependents(&"owner".into()));
}

#[test]
fn whoever_lets_its_dependents_go_is_told_when_none_is_left() {
    let mut fed = Fed::default();
    fed.set("owner", &[], &[]);
    fed.set("a", &["owner"], &[]);
    fed.set("b", &["owner!"], &[]);
    assert_eq!(fed.set("owner", &[], &["orphan"]), ["a", "b", "owner"]);
    assert_eq!(fed.set("a", &[], &[]), ["a"]);
    assert_eq!(fed.set("b", &[], &[]), ["b", "owner"]);
}

#[test]
fn an_object_that_took_the_place_of_another_is_another() {
    let mut fed = Fed::default();
    fed.set("owner", &[], &[]);
    fed.set("a", &["owner"], &[]);
    let (before, now) = (object("owner", &[], &[]), object("new", &[], &[]));
    assert_eq!(fed.apply("owner", Some(&before), Some(&now)), ["a"]);
    assert!(fed.graph.tombstone(&"owner".into()).is_some());
}

#[test]
fn those_who_wait_for_each_other_are_found() {
    let mut fed = Fed::default();
    let ending = &["foregroundDeletion"];
    fed.set("a", &["c!"], ending);
    fed.set("b", &["a!"], ending);
    fed.set("c", &["b!"], &[]);
    assert!(!fed.graph.waits_for_itself(&"a".into()), "c does not wait");
    assert!(fed.graph.has_waiting_dependent(&"a".into()) && !fed.graph.has_waiting_dependent(&"b".into()));
    fed.set("c", &["b!"], ending);
    for uid in ["a", "b", "c"] {
        assert!(fed.graph.waits_for_itself(&uid.into()), "{uid}");
    }
    fed.set("d", &["a!"], &[]);
    assert!(fed.graph.waits_for_itself(&"a".into()), "whatever else it waits for");
    fed.set("c", &["b"], ending);
    assert!(!fed.graph.waits_for_itself(&"b".into()));
}

#[test]
fn a_graph_made_anew_keeps_what_is_gone_for_good() {
    let mut fed = Fed::default();
    for (uid, owners) in [("one", &[][..]), ("two", &[]), ("a", &["one"]), ("b", &["two"])] {
        fed.set(uid, owners, &[]);
    }
    fed.remove("one");
    fed.remove("two");
    let (mut graph, a) = (Graph::default(), object("a", &["one"], &[]));
    graph.apply(Change { key: b"a", before: None, now: Some(&a) }, &mut |_| {});
    graph.inherit(fed.graph);
    assert!(graph.tombstone(&"one".into()).is_some() && graph.tombstone(&"two".into()).is_none());
    assert_eq!(graph.all().count(), 1);
}
