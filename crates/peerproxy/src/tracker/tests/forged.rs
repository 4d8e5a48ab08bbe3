//! Leases that clients can write.

use super::*;

#[test]
fn whoever_has_a_lease_counts_until_it_is_silent() {
    let mut world = World::new();
    // Whatever it is called: nothing is proved without it. But it is nowhere, and never renewed.
    for id in ["foo", PEER] {
        world.lease(id, "x");
        assert_eq!((world.ask(None), world.peers()), (0, one("unknown false - ")), "{id}");
        world.pass(42);
        assert!(world.peers().is_empty());
    }
    // A record says where it is, which no client can write.
    world.record("foo", Some("10.0.0.1:1"));
    assert_eq!(world.ask(Some(&["batch"])), 1);
    assert_eq!(world.peers(), one("known true 1 batch"));
    world.known.records.remove("foo");
    world.observe();
    assert_eq!(world.peers(), one("known false 1 batch"));
}

/// Leases of names that servers give themselves.
fn forge(world: &mut World, count: usize) {
    world.revision += 1;
    for at in 0..count {
        let lease = Seen { revision: world.revision, value: Lease { holder: "x".to_owned() } };
        world.known.leases.insert(format!("apiserver-{at:a>26}"), lease);
    }
    world.observe();
}

#[test]
fn thousands_of_forged_leases_cost_little_and_hide_nobody() {
    let mut world = World::new();
    forge(&mut world, 10_000);
    assert_eq!((world.tracker.peers.len(), world.peers().len()), (MOST_UNLOCATED, MOST_UNLOCATED));
    assert!(world.tracker.routing(world.now).is_crowded);
    // Who says where it is is found among them.
    world.lease("zzz", "z");
    world.record("zzz", Some("10.0.0.1:1"));
    assert_eq!(world.ask(Some(&["batch"])), 1);
    assert_eq!(world.peers().len(), MOST_UNLOCATED + 1);
    // Nobody renews them: they are forgotten, one like the other.
    world.known.records.clear();
    world.pass(42);
    assert!(world.peers().is_empty() && !world.tracker.routing(world.now).is_crowded);
    // One that lives among them is not, whoever it is.
    world.lease("zz-without-a-record", "z");
    assert!(world.peers().is_empty() && world.tracker.routing(world.now).is_crowded);
    world.pass(42);
    assert!(!world.tracker.routing(world.now).is_crowded);
    // Where some go there is room for others, which are not alive for that.
    let gone: Vec<String> = world.tracker.peers.keys().take(10).cloned().collect();
    gone.iter().for_each(|id| drop(world.known.leases.remove(id)));
    world.observe();
    world.pass(2);
    assert!(world.peers().is_empty());
    world.known.leases.clear();
    world.observe();
    world.pass(2);
    assert!(world.tracker.peers.is_empty() && !world.tracker.routing(world.now).is_crowded);
}
