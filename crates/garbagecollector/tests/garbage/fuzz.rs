//! Random graphs under random changes: nothing is ever deleted that has an owner left, and in the end everything is as a
//! simple collector would have it that looks at everything again and again.

use std::collections::{BTreeMap, BTreeSet};

use concord_garbagecollector::{Change, Decision, Dependents, Graph, Key, Owner, Uid, decide};
use concord_meta::options::PropagationPolicy;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use crate::world::{self, FOREGROUND, HELD, Name, ORPHAN, Object, Reference, World, collect};

const NAMES: Name = 10;
/// How many revisions a decision may be behind what it is carried out on.
const LAG: usize = 4;

/// A world with the real graph beside it.
struct Simulation {
    random: StdRng,
    /// The newest state is the last.
    history: Vec<World>,
    graph: Graph,
    queue: BTreeSet<Name>,
    /// What new objects may have.
    finalizers: &'static [&'static str],
}

fn key(name: Name) -> Key {
    name.to_string().as_bytes().into()
}

fn name(key: &Key) -> Name {
    std::str::from_utf8(key).expect("text").parse().expect("a number")
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let (random, graph) = (StdRng::seed_from_u64(seed), Graph::default());
        let finalizers = &[HELD, ORPHAN, FOREGROUND];
        Self { random, history: vec![World::default()], graph, queue: BTreeSet::new(), finalizers }
    }

    fn world(&self) -> &World {
        self.history.last().expect("there is a first state")
    }

    /// Commits a new state, and feeds the graph.
    fn commit(&mut self, change: impl FnOnce(&mut World)) {
        let mut world = self.world().clone();
        change(&mut world);
        for at in 0..NAMES {
            let (before, now) = (self.world().objects.get(&at), world.objects.get(&at));
            if before == now {
                continue;
            }
            let (before, now) = (before.map(Object::metadata), now.map(Object::metadata));
            let change = Change { key: &key(at), before: before.as_ref(), now: now.as_ref() };
            self.graph.apply(change, &mut |found| self.queue.extend([name(found)]));
        }
        self.history.push(world);
    }

    fn policy(&mut self) -> Option<&'static str> {
        *[None, None, Some(FOREGROUND), Some(ORPHAN)].choose(&mut self.random).expect("some")
    }

    fn owners(&mut self) -> Vec<Reference> {
        let mut owners: BTreeMap<Name, Reference> = BTreeMap::new();
        for _ in 0..self.random.random_range(0..4) {
            let name = self.random.random_range(0..NAMES);
            let there = self.world().objects.get(&name).map(|object| object.uid);
            // Some refer to what is gone, or never was.
            let gone = self.random.random_bool(0.1);
            let uid = there.filter(|_| !gone).unwrap_or(self.world().next_uid / 2);
            owners.insert(name, Reference { name, uid, blocks: self.random.random_bool(0.6) });
        }
        owners.into_values().collect()
    }

    /// Somebody does something.
    fn disturb(&mut self) {
        let name = self.random.random_range(0..NAMES);
        match self.random.random_range(0..10) {
            0..4 => {
                let owners = self.owners();
                let finalizer = self.finalizers.choose(&mut self.random).copied();
                let finalizers = finalizer.filter(|_| self.random.random_bool(0.2)).into_iter().collect();
                self.commit(|world| world.create(name, owners, finalizers));
            }
            4..6 => {
                let owners = self.owners();
                self.commit(|world| world.change(name, |object| object.owners = owners));
            }
            6..9 => {
                let policy = self.policy();
                self.commit(|world| world.delete(name, policy));
            }
            _ => self.let_go(name),
        }
    }

    fn let_go(&mut self, name: Name) {
        self.commit(|world| world.change(name, |object| object.finalizers.retain(|held| *held != HELD)));
    }

    /// Looks at an object as it was a moment ago, decides, and carries that out if what it rests on still holds.
    fn collect_one(&mut self) {
        let all: Vec<Name> = self.queue.iter().copied().collect();
        let Some(name) = all.choose(&mut self.random).copied() else { return };
        self.queue.remove(&name);
        let lag = self.random.random_range(0..LAG.min(self.history.len()));
        let seen = &self.history[self.history.len() - 1 - lag];
        let Some(item) = seen.objects.get(&name) else { return self.again(name, lag) };
        let owners: Vec<Owner> = item.owners.iter().map(|reference| owner(seen, reference)).collect();
        let decision = decide(&item.metadata(), &owners, self.dependents(item));
        if decision == Decision::Keep || !self.holds(name, seen, &owners, &decision) {
            return self.again(name, lag);
        }
        self.judge(name, &decision);
        self.carry_out(name, decision);
    }

    /// What was decided on an old state may have to be decided anew.
    fn again(&mut self, name: Name, lag: usize) {
        if lag > 0 {
            self.queue.insert(name);
        }
    }

    fn dependents(&self, item: &Object) -> Dependents {
        let uid = Uid::from(item.uid.to_string().as_str());
        let (any, blocking) = (self.graph.has_dependents(&uid), self.graph.is_blocked(&uid));
        Dependents {
            any,
            blocking,
            waiting: any && self.graph.has_waiting_dependent(&uid),
            circular: blocking && self.graph.waits_for_itself(&uid),
        }
    }

    /// What the transaction compares.
    fn holds(&self, name: Name, seen: &World, owners: &[Owner], decision: &Decision) -> bool {
        let revision = |world: &World, name: Name| world.objects.get(&name).map(|object| object.revision);
        let same = |name: Name| revision(seen, name) == revision(self.world(), name);
        let item = &seen.objects[&name];
        let rests = |at: usize| match decision {
            Decision::Delete(_) => true,
            Decision::Disown(references) => references.contains(&at),
            _ => false,
        };
        let holds = |at: usize| match owners[at] {
            kind @ (Owner::Absent | Owner::Orphaning) => owner(self.world(), &item.owners[at]) == kind,
            _ => same(item.owners[at].name),
        };
        same(name) && (0..owners.len()).filter(|at| rests(*at)).all(holds)
    }

    /// The rule itself, on the state as it is: nothing goes that has an owner which stays.
    fn judge(&self, name: Name, decision: &Decision) {
        let world = self.world();
        let item = &world.objects[&name];
        let stays = |reference: &Reference| {
            world.owner(reference).is_some_and(|owner| !owner.is_waiting() && !owner.is_orphaning())
        };
        match decision {
            Decision::Delete(_) => {
                assert!(!item.owners.is_empty() && !item.owners.iter().any(stays), "{name} of {world:?}");
            }
            Decision::Disown(references) => {
                assert!(!references.iter().any(|at| stays(&item.owners[*at])), "{name} of {world:?}");
            }
            Decision::Release(_) => assert!(item.is_deleting),
            _ => {}
        }
    }

    fn carry_out(&mut self, name: Name, decision: Decision) {
        self.commit(|world| match decision {
            Decision::Keep | Decision::Ask => {}
            Decision::Delete(policy) => world.delete(
                name,
                match policy {
                    PropagationPolicy::Orphan => Some(ORPHAN),
                    PropagationPolicy::Foreground => Some(FOREGROUND),
                    PropagationPolicy::Background => None,
                },
            ),
            Decision::Disown(references) => world.change(name, |object| {
                let kept = object.owners.iter().enumerate().filter(|(at, _)| !references.contains(at));
                object.owners = kept.map(|(_, owner)| owner.clone()).collect();
            }),
            Decision::Unblock => world.change(name, |object| {
                object.owners.iter_mut().for_each(|owner| owner.blocks = false);
            }),
            Decision::Release(finalizer) => {
                world.change(name, |object| object.finalizers.retain(|name| *name != finalizer));
            }
        });
    }

    /// Lets everybody finish.
    fn settle(&mut self) {
        for name in 0..NAMES {
            self.let_go(name);
        }
        for _ in 0..20_000 {
            if self.queue.is_empty() {
                return;
            }
            self.collect_one();
            // What is held by somebody else is let go by that one.
            for name in 0..NAMES {
                let held = |object: &Object| object.is_deleting && object.finalizers.contains(&HELD);
                if self.world().objects.get(&name).is_some_and(held) {
                    self.let_go(name);
                }
            }
        }
        panic!("it does not come to an end: {:?}", self.world());
    }
}

fn owner(world: &World, reference: &Reference) -> Owner {
    match world.owner(reference) {
        _ if world.is_orphaning(reference.uid) => Owner::Orphaning,
        None => Owner::Absent,
        Some(owner) if owner.is_waiting() => Owner::Waiting,
        Some(_) => Owner::Solid,
    }
}

/// What is left, without what says how often things changed.
fn rest(world: &World) -> BTreeMap<Name, (world::Uid, Vec<(Name, world::Uid)>)> {
    let owners = |object: &Object| object.owners.iter().map(|owner| (owner.name, owner.uid)).collect();
    world.objects.iter().map(|(name, object)| (*name, (object.uid, owners(object)))).collect()
}

fn seeds() -> u64 {
    let asked = std::env::var("CONCORD_GARBAGE_SEEDS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(1_500)
}

#[test]
fn nothing_is_deleted_wrongly_while_everything_changes() {
    for seed in 0..seeds() {
        let mut simulation = Simulation::new(seed);
        for _ in 0..120 {
            match simulation.random.random_bool(0.4) {
                true => simulation.disturb(),
                false => simulation.collect_one(),
            }
        }
        simulation.settle();
        let (left, mut fixed) = (rest(simulation.world()), simulation.world().clone());
        collect(&mut fixed);
        assert_eq!(left, rest(&fixed), "seed {seed}: something was left to do: {:?}", simulation.world());
        let deleting = simulation.world().objects.values().filter(|object| object.is_deleting);
        assert_eq!(deleting.count(), 0, "seed {seed}: {:?}", simulation.world());
    }
}

#[test]
fn the_end_is_that_of_a_simple_collector() {
    for seed in 0..seeds() {
        // An object that is to be orphaned by its own finalizer goes one way or the other, by whether its last owner is seen
        // waiting or gone: so it is upstream, too.
        let mut simulation = Simulation { finalizers: &[HELD], ..Simulation::new(seed) };
        for _ in 0..40 {
            simulation.disturb();
        }
        for name in 0..NAMES {
            simulation.let_go(name);
        }
        let mut simple = simulation.world().clone();
        collect(&mut simple);
        simulation.settle();
        assert_eq!(
            rest(simulation.world()),
            rest(&simple),
            "seed {seed}: {:?} {simple:?}",
            simulation.world()
        );
    }
}
