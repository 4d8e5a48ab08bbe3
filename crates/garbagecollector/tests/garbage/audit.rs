//! Two servers that do not serve the same kinds collect at once while objects come and go; afterwards the log says whether
//! everything that went had to.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use concord_meta::options::PropagationPolicy::{Background, Foreground, Orphan};
use concord_store::{Change, Commit, Store as _};
use futures_util::StreamExt as _;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};

use crate::support::{Fixture, PATIENCE, Server, blocked, owner};

/// What an object says, as it was at some revision.
struct Seen {
    uid: String,
    owners: Vec<(String, String)>,
    is_deleting: bool,
    is_waiting: bool,
}

impl Seen {
    fn read(value: &[u8]) -> Self {
        let object: Value = serde_json::from_slice(value).expect("JSON");
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place = |reference: &Value| {
            let plural = if reference["kind"] == "Secret" { "secrets" } else { "configmaps" };
            format!("/registry/{plural}/ns/{}", text(&reference["name"]))
        };
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let waits =
            metadata["finalizers"].as_array().is_some_and(|all| all.contains(&"foregroundDeletion".into()));
        let is_deleting = metadata["deletionTimestamp"].is_string();
        Self {
            uid: text(&metadata["uid"]),
            owners: owners.map(|reference| (place(reference), text(&reference["uid"]))).collect(),
            is_deleting,
            is_waiting: is_deleting && waits,
        }
    }
}

/// Replays the log.
struct Auditor {
    objects: BTreeMap<String, Seen>,
    /// What somebody asked to have deleted, by uid.
    asked: BTreeSet<String>,
    collected: usize,
}

impl Auditor {
    fn commit(&mut self, commit: &Commit) {
        for change in &commit.changes {
            let key = String::from_utf8_lossy(change.key()).into_owned();
            let now = match change {
                Change::Put(entry) if is_ours(&key) => Some(Seen::read(&entry.value)),
                _ => None,
            };
            if now.as_ref().is_none_or(|now| now.is_deleting) {
                self.judge(&key, commit.revision);
            }
            match now {
                Some(now) => drop(self.objects.insert(key, now)),
                None => drop(self.objects.remove(&key)),
            }
        }
    }

    /// The end of an object has begun, or it is gone.
    fn judge(&mut self, key: &str, revision: u64) {
        let Some(before) = self.objects.get(key) else { return };
        if before.is_deleting || self.asked.contains(&before.uid) {
            return;
        }
        assert!(!before.owners.is_empty(), "{key} had no owner and was deleted at {revision}");
        for (place, uid) in &before.owners {
            let owner = self.objects.get(place).filter(|owner| owner.uid == *uid);
            let goes = owner.is_none_or(|owner| owner.is_waiting);
            assert!(goes, "{key} was deleted at {revision} though {place} was there");
        }
        self.collected += 1;
    }
}

fn is_ours(key: &str) -> bool {
    key.starts_with("/registry/configmaps/") || key.starts_with("/registry/secrets/")
}

/// Somebody who creates and deletes.
struct User {
    random: StdRng,
    made: Vec<(&'static str, Value)>,
    asked: BTreeSet<String>,
    next: usize,
}

impl User {
    fn owners(&mut self) -> Vec<Value> {
        let mut owners: BTreeMap<String, Value> = BTreeMap::new();
        for _ in 0..self.random.random_range(0..3) {
            let Some((kind, object)) = self.made.choose(&mut self.random) else { continue };
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            let reference = match *kind {
                "ConfigMap" if self.random.random_bool(0.5) => blocked(object),
                kind => owner("v1", kind, object),
            };
            owners.insert(uid, reference);
        }
        owners.into_values().collect()
    }

    async fn act(&mut self, server: &Server) {
        if self.random.random_bool(0.7) || self.made.is_empty() {
            let (kind, plural) =
                *[("ConfigMap", "configmaps"), ("Secret", "secrets")].choose(&mut self.random).expect("some");
            let (owners, at) = (self.owners(), self.next);
            self.next += 1;
            let made = server.create(&format!("/{plural}/ns/o-{at}"), json!({}), &owners).await;
            self.made.push((kind, made));
            return;
        }
        let at = self.random.random_range(0..self.made.len());
        let (kind, object) = self.made.swap_remove(at);
        self.asked.insert(object["metadata"]["uid"].as_str().expect("a uid").to_owned());
        let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
        let name = object["metadata"]["name"].as_str().expect("a name");
        let policy = *[Background, Foreground, Orphan].choose(&mut self.random).expect("some");
        // It may have been collected already.
        server.delete(&format!("/{plural}/ns/{name}"), policy).await.ok();
    }
}

/// Whether something is left to do: nothing is on its way out, and everything has an owner that is there.
async fn is_settled(server: &Server) -> bool {
    let snapshot = server.registry.replica().consistent(PATIENCE).await.expect("a state");
    let entries = snapshot.scan(&concord_store::KeyRange::all());
    let all: BTreeMap<String, Seen> = entries
        .map(|entry| (String::from_utf8_lossy(&entry.key).into_owned(), entry))
        .filter(|(key, _)| is_ours(key))
        .map(|(key, entry)| (key, Seen::read(&entry.value)))
        .collect();
    let is_there = |(place, uid): &(String, String)| all.get(place).is_some_and(|owner| owner.uid == *uid);
    all.values().all(|object| !object.is_deleting && object.owners.iter().all(is_there))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_different_kinds_delete_nothing_wrongly() {
    let fixture = Fixture::new().await;
    let servers = [&fixture.server, &Server::on(&fixture.store).await];
    servers[1].kinds.hide("secrets");
    let running = servers.map(Server::start);
    let random = StdRng::seed_from_u64(7);
    let mut user = User { random, made: Vec::new(), asked: BTreeSet::new(), next: 0 };
    for step in 0..600 {
        user.act(servers[step % 2]).await;
    }
    let started = Instant::now();
    while !is_settled(servers[0]).await {
        assert!(started.elapsed() < PATIENCE, "it does not come to an end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for running in running {
        running.stop().await;
    }
    let mut auditor = Auditor { objects: BTreeMap::new(), asked: user.asked, collected: 0 };
    let last = fixture.store.current_revision().await.expect("a revision");
    let (mut commits, mut seen) = (fixture.store.follow(1), 1);
    while seen < last {
        for commit in commits.next().await.expect("more").expect("readable") {
            seen = commit.revision;
            auditor.commit(&commit);
        }
    }
    assert!(auditor.collected > 20, "only {} were collected", auditor.collected);
}
