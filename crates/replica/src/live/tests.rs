use std::collections::BTreeMap;

use bytes::Bytes;
use concord_store::KeyValue;
use proptest::prelude::*;

use super::*;

type Model = BTreeMap<Bytes, u64>;

#[derive(Debug, Clone)]
enum Step {
    Put(Bytes),
    Remove(Bytes),
    /// Many numbered keys: from, how many, how far apart, whether in ascending order.
    Fill(u32, u32, u32, bool),
    Drain(u32, u32, u32, bool),
    /// Somebody keeps a clone.
    Hold,
}

/// Keys whose heads are often alike: short ones, with bytes at both ends of what a byte can be, and
/// some that begin as the numbered ones do.
fn any_key() -> impl Strategy<Value = Bytes> {
    let bytes = prop::collection::vec(prop::sample::select(vec![0_u8, b'a', 0xff]), 0..7);
    let start = prop::sample::select(vec!["", "/registry/pods/", "/registry/pods/web-00001"]);
    (start, bytes).prop_map(|(start, bytes)| [start.as_bytes(), &bytes].concat().into())
}

fn any_step() -> impl Strategy<Value = Step> {
    let many = || (0_u32..3_000, 0_u32..1_500, 1_u32..4, any::<bool>());
    prop_oneof![
        8 => any_key().prop_map(Step::Put),
        6 => any_key().prop_map(Step::Remove),
        2 => many().prop_map(|(from, count, step, up)| Step::Fill(from, count, step, up)),
        2 => many().prop_map(|(from, count, step, up)| Step::Drain(from, count, step, up)),
        1 => Just(Step::Hold),
    ]
}

fn numbered(from: u32, count: u32, step: u32, ascending: bool) -> impl Iterator<Item = Bytes> {
    let number = move |n: u32| from + step * if ascending { n } else { count - 1 - n };
    (0..count).map(move |n| format!("/registry/pods/web-{:06}-x7k2p", number(n)).into())
}

/// The tree under test, what it should be, and clones of both.
#[derive(Default)]
struct Both {
    live: Live,
    model: Model,
    held: Vec<(Live, Model)>,
    revision: u64,
}

impl Both {
    fn put(&mut self, key: Bytes) {
        self.revision += 1;
        let entry = Arc::new(KeyValue {
            key: key.clone(),
            value: Bytes::new(),
            create_revision: 1,
            mod_revision: self.revision,
        });
        let previous = self.live.put(entry).map(|entry| entry.mod_revision);
        assert_eq!(previous, self.model.insert(key, self.revision));
    }

    fn remove(&mut self, key: &Bytes) {
        let removed = self.live.remove(key).map(|entry| entry.mod_revision);
        assert_eq!(removed, self.model.remove(key));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put(key) => self.put(key),
            Step::Remove(key) => self.remove(&key),
            Step::Fill(from, count, step, up) => {
                numbered(from, count, step, up).for_each(|key| self.put(key))
            }
            Step::Drain(from, count, step, up) => {
                numbered(from, count, step, up).for_each(|key| self.remove(&key));
            }
            Step::Hold => self.held.push((self.live.clone(), self.model.clone())),
        }
    }
}

fn check(live: &Live, model: &Model, probes: &[Bytes]) {
    assert_eq!(live.len(), model.len());
    let all: Vec<_> = live.range(&KeyRange::all()).map(|entry| (&entry.key, entry.mod_revision)).collect();
    assert_eq!(all, model.iter().map(|(key, revision)| (key, *revision)).collect::<Vec<_>>());
    for key in model.keys().chain(probes) {
        assert_eq!(live.get(key).map(|entry| entry.mod_revision), model.get(key).copied(), "{key:?}");
    }
    for bounds in probes.windows(2) {
        let range = KeyRange { start: bounds[0].clone(), end: Some(bounds[1].clone()) };
        let expected = model.keys().filter(|key| range.contains(key));
        assert!(live.range(&range).map(|entry| &entry.key).eq(expected), "{range:?}");
    }
    if live.len() > 0 {
        check_node(&live.root, &[], None);
    }
}

/// Checks what holds for each node, all of whose keys are in a range, and returns its depth.
fn check_node(node: &Node, start: &[u8], end: Option<&[u8]>) -> usize {
    assert!(node.len() > 0);
    match node {
        Node::Leaf(leaf) => {
            leaf.check();
            let keys = leaf.slots().iter().map(|slot| slot.entry.key.as_ref());
            assert!(keys.clone().all(|key| start <= key && end.is_none_or(|end| key < end)));
            assert!(keys.is_sorted_by(|a, b| a < b));
            0
        }
        Node::Branch(branch) => {
            let parts = branch.check();
            let starts = [start].into_iter().chain(parts.iter().map(AsRef::as_ref));
            let ends = parts.iter().map(|end| Some(end.as_ref())).chain([end]);
            let children = branch.children().iter().zip(starts.zip(ends));
            let depths: Vec<_> =
                children.map(|(child, (start, end))| check_node(child, start, end)).collect();
            assert!(depths.iter().all(|depth| *depth == depths[0]), "all leaves are equally deep");
            depths[0] + 1
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_equals_an_ordinary_map_and_a_clone_never_changes(
        steps in prop::collection::vec(any_step(), 1..40),
        probes in prop::collection::vec(any_key(), 2..20),
    ) {
        let mut both = Both::default();
        for step in steps {
            both.step(step);
        }
        check(&both.live, &both.model, &probes);
        for (live, model) in &both.held {
            check(live, model, &probes);
        }
    }
}

#[test]
fn what_is_drained_leaves_little_behind() {
    let mut both = Both::default();
    numbered(0, 20_000, 1, true).for_each(|key| both.put(key));
    assert!(count_leaves(&both.live.root) <= 20_000 / 16 + 1, "ascending keys fill their leaves");
    // Every twentieth stays, all over the tree.
    (0..20_000)
        .filter(|n| n % 20 > 0)
        .for_each(|n| numbered(n, 1, 1, true).for_each(|key| both.remove(&key)));
    check(&both.live, &both.model, &[]);
    assert!(count_leaves(&both.live.root) <= 1_000 / 3, "leaves grow together");
    numbered(0, 1_000, 20, false).for_each(|key| both.remove(&key));
    assert!(matches!(&both.live.root, Node::Leaf(leaf) if leaf.len() == 0));
}

fn count_leaves(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => 1,
        Node::Branch(branch) => branch.children().iter().map(count_leaves).sum(),
    }
}
