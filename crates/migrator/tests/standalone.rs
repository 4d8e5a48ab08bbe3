//! A migrator that is a client, against a server that behaves as a kube-apiserver does, on good days and on bad ones.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use concord_migrator::standalone::{Answer, Ask, Server, Standalone};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";
const SECRETS: &str = "/api/v1/secrets";

/// What the server does with patches of objects whose names begin like this.
#[derive(Clone, Copy)]
enum Mood {
    /// It refuses them for good.
    Refuses,
    /// It cannot, so many times.
    Fails(u16, u64),
    /// It cannot be reached, so many times.
    Away(u64),
    /// Somebody else has changed the object.
    Conflicts,
    /// It answers with 429 and asks for so many seconds, so many times.
    Busy(u64, u64),
    /// It does it, and its answer is lost.
    Unheard,
}

#[derive(Default)]
struct Fake {
    migration: Mutex<Value>,
    /// Names and resource versions; those below 1000 have an old form.
    objects: Mutex<BTreeMap<String, u64>>,
    revision: AtomicU64,
    moods: Vec<(&'static str, Mood)>,
    asked: Mutex<BTreeMap<String, u64>>,
    patches: Mutex<Vec<Value>>,
    /// The second page is too old once.
    is_compacted: Mutex<bool>,
    /// Every so many requests are answered by nobody: one of several servers is gone.
    dead: Option<u64>,
    requests: AtomicU64,
    /// What lists are said to be of.
    list_revision: Option<&'static str>,
    /// When the resource begins to be served.
    served_from: Option<tokio::time::Instant>,
}

fn answer(code: u16, body: Value) -> Result<Answer, String> {
    Ok(Answer { code, body, retry_after: None })
}

fn status(code: u16, message: &str) -> Result<Answer, String> {
    answer(code, json!({"kind": "Status", "message": message}))
}

impl Fake {
    fn new(names: &[&str], annotations: &Value, moods: Vec<(&'static str, Mood)>) -> Arc<Self> {
        let migration = json!({
            "metadata": {"name": "m", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": annotations},
            "spec": {"resource": {"group": "", "resource": "secrets"}}, "status": {},
        });
        let objects = names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at as u64 + 1));
        Arc::new(Self {
            migration: Mutex::new(migration),
            objects: Mutex::new(objects.collect()),
            revision: AtomicU64::new(1000),
            moods,
            ..Self::default()
        })
    }

    fn list(&self, path: &str) -> Result<Answer, String> {
        let start = path.split_once("continue=").map_or("", |(_, token)| token);
        if !start.is_empty() && std::mem::take(&mut *self.is_compacted.lock()) {
            let body = json!({"message": "too old", "metadata": {"continue": start}});
            return answer(410, body);
        }
        let objects = self.objects.lock();
        let mut rest = objects.iter().filter(|(name, _)| name.as_str() >= start);
        let metadata = |(name, revision): (&String, &u64)| json!({"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": revision.to_string()}});
        // Two at a time, however many are asked for.
        let items: Vec<Value> = rest.by_ref().take(2).map(metadata).collect();
        let next = rest.next().map(|(name, _)| name.clone()).unwrap_or_default();
        let revision = self.list_revision.unwrap_or("999");
        answer(200, json!({"metadata": {"resourceVersion": revision, "continue": next}, "items": items}))
    }

    fn patch(&self, name: &str, patch: Value) -> Result<Answer, String> {
        let count = {
            let mut asked = self.asked.lock();
            let count = asked.entry(name.to_owned()).or_default();
            *count += 1;
            *count
        };
        self.patches.lock().push(patch);
        let mood = self.moods.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, mood)| *mood);
        match mood {
            Some(Mood::Refuses) => return status(422, "it stays"),
            Some(Mood::Fails(code, times)) if count <= times => return status(code, "not now"),
            Some(Mood::Away(times)) if count <= times => return Err("connection refused".to_owned()),
            Some(Mood::Busy(seconds, times)) if count <= times => {
                return Ok(Answer { code: 429, body: json!({}), retry_after: Some(seconds) });
            }
            Some(Mood::Conflicts) => return status(409, "it has changed"),
            _ => {}
        }
        let mut objects = self.objects.lock();
        let Some(revision) = objects.get_mut(name) else { return status(404, "gone") };
        if *revision < 1000 {
            *revision = self.revision.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(mood, Some(Mood::Unheard)) && count == 1 {
            return status(504, "it took too long");
        }
        answer(200, json!({"metadata": {"resourceVersion": revision.to_string()}}))
    }

    fn condition(&self, kind: &str) -> Option<(String, String)> {
        let migration = self.migration.lock();
        let found =
            migration["status"]["conditions"].as_array()?.iter().find(|known| known["type"] == kind)?;
        (found["status"] == "True").then(|| (found["reason"].to_string(), found["message"].to_string()))
    }
}

#[async_trait]
impl Server for Fake {
    async fn ask(&self, ask: Ask, path: &str) -> Result<Answer, String> {
        let place = path.split('?').next().unwrap_or_default();
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        if self.dead.is_some_and(|every| request.is_multiple_of(every)) {
            return Err("connection refused".to_owned());
        }
        match (ask, place) {
            (Ask::Get, MIGRATIONS) => answer(200, json!({"items": [self.migration.lock().clone()]})),
            (Ask::Get, "/api/v1")
                if self.served_from.is_some_and(|from| tokio::time::Instant::now() < from) =>
            {
                answer(200, json!({"resources": []}))
            }
            (Ask::Get, "/api/v1") => {
                let verbs = ["get", "list", "patch", "update"];
                let secrets = json!({"name": "secrets", "verbs": verbs, "storageVersionHash": "h1"});
                answer(200, json!({"resources": [secrets]}))
            }
            (Ask::GetMetadata, SECRETS) => self.list(path),
            (Ask::Get, _) => answer(200, self.migration.lock().clone()),
            (Ask::Put(object), _) => {
                *self.migration.lock() = object.clone();
                answer(200, object)
            }
            (Ask::Patch(patch), place) if place.starts_with(MIGRATIONS) => {
                let mut migration = self.migration.lock();
                for (name, value) in patch["metadata"]["annotations"].as_object().into_iter().flatten() {
                    migration["metadata"]["annotations"][name] = value.clone();
                }
                answer(200, migration.clone())
            }
            (Ask::Patch(patch), place) => self.patch(place.rsplit('/').next().unwrap_or_default(), patch),
            _ => status(404, "nothing"),
        }
    }
}

/// Runs it until the migration has ended.
async fn migrate(server: &Arc<Fake>) {
    migrate_within(server, Duration::from_secs(60)).await;
}

async fn migrate_within(server: &Arc<Fake>, longest: Duration) {
    let cancel = CancellationToken::new();
    let work = tokio::spawn(Standalone::new(server.clone(), "v1beta1").run(cancel.clone()));
    let begin = Instant::now();
    while server.condition("Succeeded").or_else(|| server.condition("Failed")).is_none() {
        assert!(begin.elapsed() < longest, "not in time: {}", server.migration.lock());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cancel.cancel();
    work.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn every_object_is_written_again_and_nothing_is_said_to_be_proved() {
    let server = Fake::new(&["a", "b", "c", "d", "e"], &json!({}), Vec::new());
    *server.is_compacted.lock() = true;
    server.objects.lock().insert("d".to_owned(), 1500);
    migrate(&server).await;
    let (_, message) = server.condition("Succeeded").expect("it has");
    assert!(message.contains("4 objects were written again and 1 needed nothing"), "{message}");
    assert!(message.contains("was not counted"), "{message}");
    assert!(server.condition("AgreementUnknown").is_some());
    assert!(server.objects.lock().values().all(|revision| *revision >= 1000));
    assert_eq!(server.migration.lock()["status"]["resourceVersion"], "999");
    for patch in server.patches.lock().iter() {
        let metadata = patch["metadata"].as_object().expect("an object");
        assert!(metadata.contains_key("uid") && metadata.contains_key("resourceVersion"), "{patch}");
        assert_eq!((patch.as_object().map(serde_json::Map::len), metadata.len()), (Some(1), 2), "{patch}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_now_is_tried_again_and_what_fails_for_good_is_named() {
    let moods = vec![
        ("a", Mood::Fails(429, 2)),
        ("b", Mood::Fails(500, 8)),
        ("c", Mood::Away(9)),
        ("d", Mood::Refuses),
        ("e", Mood::Conflicts),
    ];
    let server = Fake::new(&["a", "b", "c", "d", "e", "f"], &json!({}), moods);
    migrate(&server).await;
    let (_, message) = server.condition("Failed").expect("it has");
    assert_eq!(message, "\"1 objects could not be migrated; ns/d: it stays\"");
    let objects = server.objects.lock();
    for name in ["a", "b", "c", "f"] {
        assert!(objects[name] >= 1000, "{name} was left behind");
    }
}

/// Everybody is told to come back later, and then that something is wrong: it takes as long as the server says, and ends well.
#[tokio::test(start_paused = true)]
async fn a_storm_is_waited_for_as_long_as_it_lasts() {
    let (mut names, mut moods) = (Vec::new(), Vec::new());
    for (name, mood) in [
        ("a", Mood::Busy(1, 20)),
        ("b", Mood::Busy(30, 10)),
        ("c", Mood::Fails(500, 30)),
        ("d", Mood::Fails(503, 30)),
        ("e", Mood::Fails(504, 30)),
        ("f", Mood::Away(60)),
    ] {
        names.push(name);
        moods.push((name, mood));
    }
    let server = Fake::new(&names, &json!({}), moods);
    let begin = tokio::time::Instant::now();
    migrate(&server).await;
    assert!(server.condition("Succeeded").is_some(), "{}", server.migration.lock());
    assert!(begin.elapsed() >= Duration::from_secs(10 * 30), "it did as it was told: {:?}", begin.elapsed());
    assert!(server.objects.lock().values().all(|revision| *revision >= 1000));
}

/// As upstream's: what is not comparable says nothing about what was written since.
#[tokio::test(start_paused = true)]
async fn a_list_of_no_revision_is_an_end() {
    for revision in ["abcde", "007", ""] {
        let mut server =
            Arc::into_inner(Fake::new(&["a"], &json!({}), Vec::new())).expect("nobody has it yet");
        server.list_revision = Some(revision);
        let server = Arc::new(server);
        migrate(&server).await;
        let (_, message) = server.condition("Failed").expect("it has");
        let expected = format!("is not valid: resource version is not well formed: {revision}");
        assert!(message.contains(&expected), "{message}");
        assert!(server.patches.lock().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_is_cancelled_ends() {
    let annotations = json!({"storagemigration.concord.dev/cancelled": "true"});
    let server = Fake::new(&["a"], &annotations, Vec::new());
    migrate(&server).await;
    assert!(server.condition("Failed").expect("it has").0.contains("MigrationCancelled"));
    assert!(server.patches.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing_and_says_why() {
    let annotations = json!({"storagemigration.concord.dev/dry-run": "true"});
    let server = Fake::new(&["a", "b"], &annotations, Vec::new());
    migrate(&server).await;
    assert!(server.condition("Failed").expect("it has").0.contains("DryRunNotPossible"));
    assert!(server.patches.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn orders_are_heard_while_objects_wait() {
    let server = Fake::new(&["a"], &json!({}), vec![("a", Mood::Busy(30, 100))]);
    let cancel = CancellationToken::new();
    let work = tokio::spawn(Standalone::new(server.clone(), "v1beta1").run(cancel.clone()));
    while server.patches.lock().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.migration.lock()["metadata"]["annotations"]["storagemigration.concord.dev/cancelled"] =
        "true".into();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(server.condition("Failed").expect("within a second").0.contains("MigrationCancelled"));
    cancel.cancel();
    work.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_where_one_was_if_what_is_stored_is_the_same() {
    for (hash, expected) in [("h1", &["c", "d"][..]), ("h0", &["a", "b", "c", "d"])] {
        let progress = json!({"cursor": "c", "agreement": hash, "migrated": 2});
        let annotations = json!({"storagemigration.concord.dev/progress": progress.to_string()});
        let server = Fake::new(&["a", "b", "c", "d"], &annotations, Vec::new());
        migrate(&server).await;
        assert!(server.condition("Succeeded").is_some());
        let written: Vec<String> = server.asked.lock().keys().cloned().collect();
        assert_eq!(written, expected, "{hash}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_rate_makes_it_panic() {
    let annotations = json!({"storagemigration.concord.dev/max-requests-per-second": "1e-20"});
    let server = Fake::new(&["a"], &annotations, Vec::new());
    migrate(&server).await;
    assert!(server.condition("Succeeded").is_some());
}

/// Upstream's gives up for good when one of several servers cannot be reached.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_among_others_is_no_end() {
    for every in [2, 3, 7] {
        let server = Fake::new(&["a", "b", "c", "d", "e"], &json!({}), vec![("c", Mood::Unheard)]);
        let mut server = Arc::into_inner(server).expect("nobody has it yet");
        server.dead = Some(every);
        let server = Arc::new(server);
        migrate(&server).await;
        assert!(server.condition("Succeeded").is_some(), "one of {every}");
        let revisions: Vec<u64> = server.objects.lock().values().copied().collect();
        assert!(revisions.iter().all(|revision| (1000..1005).contains(revision)), "{revisions:?}: each once");
    }
}

/// A minute counts from when it is missed, not from when the migration was made.
#[tokio::test(start_paused = true)]
async fn a_resource_may_come_later_but_not_too_late() {
    for (seconds, comes) in [(20, true), (120, false)] {
        let server = Fake::new(&["a"], &json!({}), Vec::new());
        let mut server = Arc::into_inner(server).expect("nobody has it yet");
        let begin = tokio::time::Instant::now();
        server.served_from = Some(begin + Duration::from_secs(seconds));
        let server = Arc::new(server);
        let waits = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let migration = server.migration.lock();
            assert_eq!(migration["status"]["conditions"][0]["reason"], "WaitingForResource");
        };
        tokio::join!(migrate_within(&server, Duration::from_secs(200)), waits);
        assert_eq!(server.condition("Succeeded").is_some(), comes, "after {seconds} seconds");
        if !comes {
            assert_eq!(
                server.condition("Failed").expect("it has").1,
                "\"resource does not exist in discovery\""
            );
            assert!(begin.elapsed() >= Duration::from_secs(60), "{:?}", begin.elapsed());
        }
    }
}

/// Resource versions are what the server says, and may be more than any number that a client has.
#[tokio::test(start_paused = true)]
async fn resource_versions_of_any_size_are_passed_on() {
    let server = Fake::new(&["a", "b", "c"], &json!({}), Vec::new());
    server.revision.store(u64::MAX - 10, Ordering::Relaxed);
    for (name, revision) in [("a", (1 << 53) + 1), ("b", (1 << 63) + 1)] {
        server.objects.lock().insert(name.to_owned(), revision);
    }
    migrate(&server).await;
    assert!(server.condition("Succeeded").is_some());
    let sent: Vec<Value> =
        server.patches.lock().iter().map(|patch| patch["metadata"]["resourceVersion"].clone()).collect();
    for expected in ["9007199254740993", "9223372036854775809", "3"] {
        assert!(sent.contains(&json!(expected)), "{expected}: {sent:?}");
    }
}
