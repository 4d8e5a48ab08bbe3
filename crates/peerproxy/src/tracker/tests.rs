use serde_json::json;

use super::*;
use crate::{document::parse_groups, identity::Lease, view::Seen};

mod forged;

const PEER: &str = "apiserver-xzyuxin5ffqe4sbn4knhvm7e74";
const OTHER: &str = "apiserver-qkqlewvapptsegjj4bzzcqpmla";
const OWN: &str = "apiserver-aaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A log and a tracker that is told about it.
struct World {
    known: Known,
    revision: Revision,
    tracker: Tracker,
    now: Duration,
}

fn told(groups: &[&str]) -> Arc<Told> {
    let item = |name: &&str| {
        json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": [
            {"resource": "things", "verbs": ["get"]}]}]})
    };
    let items: Vec<_> = groups.iter().map(item).collect();
    let body =
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
    let groups = parse_groups(body.to_string().as_bytes()).expect("readable");
    Arc::new(Told { document: Arc::new(Document::new(Vec::new(), groups)), ..Told::default() })
}

impl World {
    fn new() -> Self {
        let mut known = Known::loaded();
        known.leases.insert(OWN.into(), Seen { revision: 1, value: Lease { holder: "own".into() } });
        let now = Duration::from_secs(1000);
        let mut world = Self { known, revision: 1, tracker: Tracker::new(OWN, now), now };
        world.observe();
        world
    }

    fn observe(&mut self) {
        let departed = self.known.departed();
        self.tracker.observe(&self.known, departed, self.now);
    }

    fn lease(&mut self, id: &str, holder: &str) {
        self.revision += 1;
        let lease = Lease { holder: holder.to_owned() };
        self.known.leases.insert(id.to_owned(), Seen { revision: self.revision, value: lease });
        self.observe();
    }

    fn record(&mut self, id: &str, address: Option<&str>) {
        self.revision += 1;
        let address = address.map(|address| address.parse().expect("an address"));
        self.known.records.insert(id.to_owned(), Seen { revision: self.revision, value: address });
        self.observe();
    }

    /// Lets time pass in which this server sees its own renewals.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.lease(OWN, "own");
        }
    }

    /// Lets time pass in which the other server gives signs of life, too.
    fn pass_together(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.pass(1);
            let holder = self.known.leases[PEER].value.holder.clone();
            self.lease(PEER, &holder);
        }
    }

    /// Asks whoever is due, and has them answer.
    fn ask(&mut self, answer: Option<&[&str]>) -> usize {
        let questions = self.tracker.due(self.now);
        for question in &questions {
            self.tracker.answered(question, answer.map(told), self.now);
        }
        questions.len()
    }

    /// Each server that is alive: `known`, `old` or `unknown`, whether it is reachable, its address and its groups.
    fn peers(&mut self) -> Vec<String> {
        let routing = self.tracker.routing(self.now);
        let describe = |peer: &RoutedPeer| {
            let groups = peer.document.iter().flat_map(|document| document.groups());
            let groups: Vec<_> = groups.map(|group| group.name().to_owned()).collect();
            let address = peer.address.map_or("-".to_owned(), |address| address.port().to_string());
            let known = match (peer.is_known, peer.document.is_some()) {
                (true, _) => "known",
                (false, true) => "old",
                (false, false) => "unknown",
            };
            format!("{known} {} {address} {}", peer.is_reachable, groups.join(","))
        };
        routing.peers.iter().map(describe).collect()
    }
}

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

#[test]
fn a_server_is_unknown_until_it_has_said_where_it_is_and_what_it_serves() {
    let mut world = World::new();
    assert!(world.peers().is_empty());
    world.lease(PEER, "p1");
    assert_eq!((world.ask(None), world.peers()), (0, one("unknown false - ")));
    world.record(PEER, Some("10.0.0.1:1"));
    assert_eq!((world.ask(Some(&["batch"])), world.peers()), (1, one("known true 1 batch")));
    // Asked again only after a while.
    assert_eq!(world.ask(None), 0);
    world.pass_together(59);
    assert_eq!(world.ask(None), 0);
    world.pass_together(1);
    // F3, F9: what it said last stays, whatever becomes of it.
    assert_eq!((world.ask(None), world.peers()), (1, one("known false 1 batch")));
}

#[test]
fn a_server_that_does_not_answer_is_asked_until_it_does_and_holds_up_nobody() {
    let mut world = World::new();
    for id in [PEER, OTHER] {
        world.lease(id, id);
        world.record(id, Some("10.0.0.1:1"));
    }
    let questions = world.tracker.due(world.now);
    assert_eq!(questions.len(), 2);
    // F6: one hangs, the other answers.
    let other = questions.iter().find(|question| question.id == OTHER).expect("asked");
    world.tracker.answered(other, Some(told(&["apps"])), world.now);
    assert_eq!(world.peers(), ["known true 1 apps", "unknown false 1 "]);
    let hung = questions.iter().find(|question| question.id == PEER).expect("asked");
    world.tracker.answered(hung, None, world.now);
    // F8, F9: soon again, and for ever.
    let mut asked = 0;
    for _ in 0..500 {
        world.now += Duration::from_millis(100);
        asked += world.ask(None);
    }
    assert!((25..32).contains(&asked), "{asked}");
}

#[test]
fn a_crash_is_seen_when_the_record_expires_and_forgotten_when_it_was_silent_for_long() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.ask(Some(&["batch"]));
    world.pass(7);
    world.known.records.remove(PEER);
    world.observe();
    // F2, F20: still listed, and where it was is still known.
    assert_eq!(world.peers(), one("known false 1 batch"));
    world.pass(40);
    assert_eq!(world.peers(), one("known false 1 batch"));
    world.pass(2);
    assert!(world.peers().is_empty());
    // It was only frozen.
    world.record(PEER, Some("10.0.0.1:1"));
    assert_eq!((world.peers(), world.ask(Some(&["batch"]))), (one("unknown false 1 "), 1));
    assert_eq!(world.peers(), one("known true 1 batch"));
}

#[test]
fn who_keeps_its_record_lives_however_rarely_its_lease_is_renewed() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.ask(Some(&["batch"]));
    world.pass(100);
    assert_eq!(world.peers(), one("known true 1 batch"));
}

#[test]
fn a_server_that_hangs_up_is_asked_at_once_but_not_again_and_again() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.ask(Some(&["batch"]));
    let address = "10.0.0.1:1".parse().expect("an address");
    world.tracker.hung_up("10.0.0.2:1".parse().expect("an address"), world.now);
    assert_eq!(world.ask(None), 0);
    world.tracker.hung_up(address, world.now);
    assert_eq!(world.ask(None), 0);
    assert_eq!(world.tracker.next(world.now), Some(world.now + BREATH));
    world.now += BREATH;
    assert_eq!((world.ask(None), world.peers()), (1, one("known false 1 batch")));
    // Each attempt to ask it ends a connection, too.
    world.tracker.hung_up(address, world.now);
    assert_eq!(world.ask(None), 0);
}

#[test]
fn a_store_that_stalls_kills_nobody() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.ask(Some(&["batch"]));
    world.now += Duration::from_secs(3600);
    world.observe();
    assert_eq!(world.peers(), one("known true 1 batch"));
    // The records were gone when it came back, and this server was the first to renew.
    world.known.records.clear();
    world.pass(2);
    assert_eq!(world.peers(), one("known false 1 batch"));
}

#[test]
fn a_server_that_is_started_again_is_never_gone() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.ask(Some(&["batch"]));
    // F4: its lease is deleted and made anew, and the record is that of the process before.
    world.known.leases.remove(PEER);
    world.observe();
    assert_eq!(world.peers(), one("known true 1 batch"));
    world.now += Duration::from_millis(900);
    world.lease(PEER, "p2");
    assert_eq!(world.peers(), one("old true 1 batch"));
    assert_eq!(world.ask(None), 1);
    assert_eq!(world.peers(), one("old false 1 batch"));
    world.record(PEER, Some("10.0.0.1:2"));
    assert_eq!(world.ask(Some(&["apps"])), 1);
    assert_eq!(world.peers(), one("known true 2 apps"));
}

#[test]
fn a_server_that_leaves_is_gone_at_once() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.ask(Some(&["batch"]));
    // About to end: nothing is sent there any more.
    world.record(PEER, None);
    assert_eq!(world.peers(), one("known false - batch"));
    world.known.leases.remove(PEER);
    world.known.records.remove(PEER);
    world.observe();
    assert_eq!(world.peers(), one("known false - batch"));
    assert_eq!(world.tracker.next(world.now), Some(world.now + LEAVING));
    world.now += LEAVING;
    world.observe();
    assert!(world.peers().is_empty());
}

#[test]
fn an_answer_to_an_old_question_counts_for_nothing() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    let old = world.tracker.due(world.now).remove(0);
    world.lease(PEER, "p2");
    world.tracker.answered(&old, Some(told(&["old"])), world.now);
    assert_eq!(world.peers(), one("unknown false 1 "));
    assert_eq!((world.ask(Some(&["new"])), world.peers()), (1, one("known true 1 new")));
    world.known.leases.clear();
    world.now += LEAVING * 2;
    world.tracker.answered(&old, Some(told(&["old"])), world.now);
}

#[test]
fn a_deleted_definition_never_comes_back_from_a_peer() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.known.define("things.example.com", &["example.com/v1"]);
    world.ask(Some(&["batch", "example.com"]));
    world.observe();
    assert_eq!(world.peers(), one("known true 1 batch"));
    world.known.define("things.example.com", &[]);
    world.observe();
    // F14: for as long as the grace lasts, and as long as nobody said it anew after that.
    for _ in 0..20 {
        world.pass(15);
        world.record(PEER, Some("10.0.0.1:1"));
        assert_eq!(world.peers(), one("known true 1 batch"));
    }
    assert_eq!(world.now, Duration::from_secs(1300));
    world.pass(15);
    world.record(PEER, Some("10.0.0.1:1"));
    assert_eq!(world.peers(), one("known true 1 batch"));
    // Now it must be the peer's own.
    assert_eq!(world.ask(Some(&["batch", "example.com"])), 1);
    assert_eq!(world.peers(), one("known true 1 batch,example.com"));
    world.observe();
    assert!(world.tracker.departed.is_empty());
}

#[test]
fn what_changes_nothing_is_the_same_routing() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.known.define("a", &["example.com/v1"]);
    world.ask(Some(&["batch", "example.com"]));
    world.observe();
    let before = world.tracker.routing(world.now);
    world.known.define("b", &["other.com/v1"]);
    world.pass_together(61);
    assert_eq!(world.ask(Some(&["batch", "example.com"])), 1);
    assert!(Arc::ptr_eq(&before, &world.tracker.routing(world.now)));
    world.tracker.suspect(PEER, world.now);
    assert_eq!(world.ask(None), 1);
    assert_eq!(world.tracker.routing(world.now).generation, before.generation + 1);
}

#[test]
fn a_server_that_starts_waits_for_the_others_but_not_for_ever() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    // Who does not say where it is cannot be waited for.
    assert!(world.tracker.routing(world.now).is_synced);
    let mut world = World::new();
    world.tracker = Tracker::new(OWN, world.now);
    world.known.leases.insert(PEER.into(), Seen { revision: 2, value: Lease { holder: "p1".into() } });
    world.record(PEER, Some("10.0.0.1:1"));
    assert!(!world.tracker.routing(world.now).is_synced);
    assert_eq!(world.tracker.due(world.now).len(), 1);
    assert_eq!(world.tracker.next(world.now), Some(world.now + FIRST_ROUND));
    world.now += FIRST_ROUND;
    assert!(world.tracker.routing(world.now).is_synced);
    // Before the log was read nothing is known.
    assert!(!Tracker::new(OWN, Duration::ZERO).routing(world.now).is_synced);
}

#[test]
fn a_change_of_one_of_ten_servers_is_one_question_and_touches_nobody_else() {
    let mut world = World::new();
    let ids: Vec<String> = (0..10_u8).map(|at| format!("apiserver-{}", char::from(b'a' + at))).collect();
    for id in &ids {
        world.record(id, Some("10.0.0.1:1"));
        world.lease(id, "first");
    }
    // One that starts asks each of them once.
    assert_eq!(world.ask(Some(&["batch"])), 10);
    // Renewals ask nobody.
    for id in &ids {
        world.lease(id, "first");
        world.record(id, Some("10.0.0.1:1"));
    }
    assert_eq!(world.ask(None), 0);
    // F3: one crashes, which is seen, and another one is started again: the first is still known.
    world.known.records.remove(&ids[0]);
    world.observe();
    world.lease(&ids[1], "second");
    assert_eq!(world.ask(Some(&["apps"])), 1);
    let peers = world.peers();
    assert_eq!(peers[..3], ["known false 1 batch", "known true 1 apps", "known true 1 batch"]);
    assert!(peers[2..].iter().all(|peer| peer == "known true 1 batch"), "{peers:?}");
}

#[test]
fn a_definition_that_is_made_again_in_the_meantime_is_this_servers_own() {
    let mut world = World::new();
    world.lease(PEER, "p1");
    world.record(PEER, Some("10.0.0.1:1"));
    world.known.define("things.example.com", &["example.com/v1"]);
    world.observe();
    world.ask(Some(&["batch", "example.com"]));
    for _ in 0..3 {
        // F16: gone, and there again before the others may be asked about it.
        world.known.define("things.example.com", &[]);
        world.pass_together(61);
        world.ask(Some(&["batch", "example.com"]));
        assert_eq!(world.peers(), one("known true 1 batch"));
        world.known.define("things.example.com", &["example.com/v1"]);
        world.pass_together(61);
        world.ask(Some(&["batch", "example.com"]));
        assert_eq!(world.peers(), one("known true 1 batch"));
    }
    // Two that go one minute after the other are each left out for as long.
    world.known.define("others.example.org", &["example.org/v1"]);
    world.observe();
    world.known.define("things.example.com", &[]);
    world.pass_together(60);
    world.known.define("others.example.org", &[]);
    for second in 61..=430 {
        world.pass_together(1);
        world.ask(Some(&["batch", "example.com", "example.org"]));
        let peers = world.peers().join("");
        assert!(second > 300 || !peers.contains("example.com"), "after {second} s: {peers}");
        assert!(second > 360 || !peers.contains("example.org"), "after {second} s: {peers}");
    }
    assert_eq!(world.peers(), one("known true 1 batch,example.com,example.org"));
}
