use serde_json::json;

use super::*;

fn put(key: &str, value: &Value, revision: Revision) -> Change {
    Change::Put(KeyValue {
        key: key.to_owned().into(),
        value: value.to_string().into(),
        create_revision: revision,
        mod_revision: revision,
    })
}

#[test]
fn whoever_writes_what_it_did_not_say_is_found() {
    let says = |version: &str| {
        json!({"status": {"commonEncodingVersion": version, "storageVersions": [
            {"apiServerID": "a", "encodingVersion": version, "decodableVersions": [version]}]}})
    };
    let lease = put("/registry/leases/kube-system/a", &json!({}), 2);
    let version = put("/registry/storageversions/g.foos", &says("g/v1"), 2);
    let thing = |name: &str, version: &str| {
        put(&format!("/registry/g/foos/ns/{name}"), &json!({"apiVersion": version}), 3)
    };
    for (changes, complaint) in [
        (vec![lease.clone(), version.clone()], ""),
        (vec![lease.clone()], "nobody had said anything"),
        (vec![version.clone()], "a had no identity"),
        (vec![lease.clone(), put("/registry/storageversions/g.foos", &says("g/v2"), 2)], "a had said"),
    ] {
        let mut auditor = Auditor::new(&[("g/foos", "g.foos")]);
        auditor.commit(&Commit { revision: 2, changes }).expect("nothing was written");
        let checked = auditor.commit(&Commit { revision: 3, changes: vec![thing("a--1", "g/v1")] });
        let found = checked.err().unwrap_or_default();
        assert!(found.contains(complaint) && found.is_empty() == complaint.is_empty(), "{found}");
    }
    let mut auditor = Auditor::new(&[("g/foos", "g.foos")]);
    auditor.commit(&Commit { revision: 2, changes: vec![lease, version] }).expect("nothing was written");
    assert!(auditor.commit(&Commit { revision: 3, changes: vec![thing("b--1", "g/v1")] }).is_err());
}

/// A log as it is written: every change is a commit of its own.
#[derive(Default)]
struct Story {
    created: BTreeMap<String, Revision>,
    commits: Vec<Commit>,
}

impl Story {
    fn put(mut self, key: &str, value: &Value) -> Self {
        let revision = self.next();
        let created = *self.created.entry(key.to_owned()).or_insert(revision);
        let Change::Put(mut entry) = put(key, value, revision) else { unreachable!() };
        entry.create_revision = created;
        self.commits.push(Commit { revision, changes: vec![Change::Put(entry)] });
        self
    }

    fn next(&self) -> Revision {
        self.commits.len() as Revision + 2
    }

    fn lease(self, id: &str, holder: &str) -> Self {
        self.put(&format!("/registry/leases/kube-system/{id}"), &json!({"spec": {"holderIdentity": holder}}))
    }

    fn gone(mut self, id: &str) -> Self {
        let key = format!("/registry/leases/kube-system/{id}");
        self.created.remove(&key);
        let (revision, changes) = (self.next(), vec![Change::Delete { key: key.into() }]);
        self.commits.push(Commit { revision, changes });
        self
    }

    /// What the servers say, in this order.
    fn says(self, versions: &[(&str, &str)]) -> Self {
        let entry = |(id, version): &(&str, &str)| json!({"apiServerID": id, "encodingVersion": version, "decodableVersions": [version]});
        let entries: Vec<Value> = versions.iter().map(entry).collect();
        let first = versions[0].1;
        let mut status = json!({"storageVersions": entries});
        if versions.iter().all(|(_, version)| *version == first) {
            status["commonEncodingVersion"] = first.into();
        }
        self.put("/registry/storageversions/g.foos", &json!({"status": status}))
    }

    fn thing(self, version: &str, stamp: &str) -> Self {
        let object = json!({"apiVersion": version, "metadata": {"annotations": {WRITER: stamp}}});
        self.put("/registry/g/foos/x", &object)
    }

    /// What is found in it, and how many writers were known.
    fn audit(&self) -> (String, usize) {
        let mut auditor = Auditor::new(&[("g/foos", "g.foos")]);
        let found = self.commits.iter().try_for_each(|commit| auditor.commit(commit));
        (found.err().unwrap_or_default(), auditor.stamped())
    }
}

/// Two servers that say different things, and an object that the first of them made.
fn story() -> Story {
    let story = Story::default().lease("a", "a_1").lease("b", "b_1");
    story.says(&[("a", "g/v1"), ("b", "g/v2")]).thing("g/v1", "a a_1 1")
}

#[test]
fn a_change_is_its_writers_own() {
    let none = "";
    for (what, story, complaint, stamped) in [
        ("another one of the same", story().thing("g/v1", "a a_1 2"), none, 2),
        ("the other server's", story().thing("g/v2", "b b_1 1"), none, 2),
        (
            "in a version only another one said",
            story().thing("g/v2", "a a_1 2"),
            "x at 6, in g/v2: a had said",
            1,
        ),
        (
            "by a server that said nothing",
            story().lease("c", "c_1").thing("g/v1", "c c_1 1"),
            "c had said",
            1,
        ),
        ("after its lease went", story().gone("a").thing("g/v1", "a a_1 2"), "a had no identity", 1),
        (
            "after another process took it over",
            story().gone("a").lease("a", "a_2").thing("g/v1", "a a_1 2"),
            "a was a_2 by then, not a_1",
            1,
        ),
        (
            "by the process that took it over",
            story().gone("a").lease("a", "a_2").thing("g/v1", "a a_2 1"),
            none,
            2,
        ),
        (
            "after it said something else",
            story().says(&[("a", "g/v3"), ("b", "g/v2")]).thing("g/v1", "a a_1 2"),
            "a had said",
            1,
        ),
        ("by a migrator, who keeps the stamp", story().thing("g/v2", "a a_1 1"), none, 1),
        (
            "by a migrator of a server that is no more",
            story().gone("b").thing("g/v2", "a a_1 1"),
            "nobody alive had said",
            1,
        ),
        (
            "after all agreed on another",
            story().says(&[("a", "g/v2"), ("b", "g/v2")]).thing("g/v1", "a a_1 2"),
            "a had said",
            1,
        ),
    ] {
        let (found, known) = story.audit();
        assert!(found.contains(complaint) && found.is_empty() == complaint.is_empty(), "{what}: {found}");
        assert_eq!(known, stamped, "{what}");
    }
}

#[test]
fn an_object_that_comes_with_the_loss_of_its_writers_identity_is_found() {
    let mut story = story();
    let stamped = json!({"apiVersion": "g/v1", "metadata": {"annotations": {WRITER: stamp("a", "a_1", 2)}}});
    let thing = put("/registry/g/foos/y", &stamped, 6);
    let gone = Change::Delete { key: "/registry/leases/kube-system/a".into() };
    story.commits.push(Commit { revision: 6, changes: vec![gone, thing] });
    assert_eq!(story.audit().0, "/registry/g/foos/y at 6, in g/v1: a was a_1 no longer");
}

#[test]
fn a_migration_that_succeeded_too_early_is_found() {
    let says = json!({"status": {"storageVersions": [
        {"apiServerID": "a", "encodingVersion": "g/v1", "decodableVersions": ["g/v1"]},
        {"apiServerID": "b", "encodingVersion": "g/v2", "decodableVersions": ["g/v2"]}]}});
    let thing = |name: &str, version: &str, at| {
        put(&format!("/registry/g/foos/{name}"), &json!({"apiVersion": version}), at)
    };
    let done = json!({"spec": {"resource": {"group": "g", "resource": "foos"}},
        "status": {"conditions": [{"type": "Succeeded", "status": "True"}]}});
    for (rewritten, complaint) in [("g/v2", ""), ("g/v1", "several versions")] {
        let mut auditor = Auditor::new(&[("g/foos", "g.foos")]);
        let leases = ["a", "b"].map(|id| put(&format!("/registry/leases/kube-system/{id}"), &json!({}), 2));
        let published = put("/registry/storageversions/g.foos", &says, 2);
        let commits = [
            leases.into_iter().chain([published]).collect(),
            vec![thing("x", "g/v1", 3)],
            vec![thing("y", "g/v2", 4)],
            vec![thing("x", rewritten, 5)],
        ];
        for (changes, revision) in commits.into_iter().zip(2..) {
            auditor.commit(&Commit { revision, changes }).expect("good");
        }
        let Change::Put(mut entry) = put(&format!("{MIGRATIONS}m"), &done, 6) else { unreachable!() };
        entry.create_revision = 5;
        let judged = auditor.commit(&Commit { revision: 6, changes: vec![Change::Put(entry)] });
        let found = judged.err().unwrap_or_default();
        assert!(found.contains(complaint) && found.is_empty() == complaint.is_empty(), "{found}");
        assert_eq!(auditor.succeeded(), usize::from(complaint.is_empty()));
    }
}
