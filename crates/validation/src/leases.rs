//! Candidates for a lease.

use crate::{
    devices::is_semantic,
    meta,
    node::{Node, Root},
    policy::lease_strategy,
    rules::IMMUTABLE,
};

const BY_VERSION: &str = "OldestEmulationVersion";

pub(crate) fn candidate(root: Root<'_>) {
    spec(root.get("spec"));
}

pub(crate) fn candidate_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update_any_finalizers(new, old);
    spec(new.get("spec"));
    let (name, before) = (new.get("spec").get("leaseName"), old.get("spec").str("leaseName"));
    if name.text() != before {
        name.invalid(name.text(), IMMUTABLE);
    }
}

fn spec(spec: Node<'_>) {
    spec.need(&["leaseName"]);
    let (binary, emulation) = (spec.get("binaryVersion"), spec.get("emulationVersion"));
    let emulated = version(emulation);
    let own = version(binary);
    match binary.text() {
        "" => binary.required(""),
        text if !emulation.text().is_empty() && own < emulated => {
            binary.invalid(text, "must be greater than or equal to `emulationVersion`");
        }
        _ => {}
    }
    let strategy = spec.get("strategy");
    if strategy.text().is_empty() {
        return strategy.required("");
    }
    if strategy.text() == BY_VERSION && emulated == ZERO {
        emulation.required(format!("must be specified when `strategy` is '{BY_VERSION}'"));
    }
    lease_strategy(strategy.child("strategy"), strategy.text());
}

/// The numbers of a version, whether it is final, and what it is called before that: what comes before it is less.
type Version<'v> = ([u64; 3], bool, Vec<Identifier<'v>>);

/// A part of what a version is called before it is final. Numbers are less than texts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'v> {
    Number(u64),
    Text(&'v str),
}

/// As good as none.
const ZERO: Version<'static> = ([0; 3], true, Vec::new());

/// The version at a place; as good as none if it cannot be read.
fn version(node: Node<'_>) -> Version<'_> {
    let text = node.text();
    if text.is_empty() {
        return ZERO;
    }
    if !is_semantic(text) {
        node.invalid(text, "must be a valid semantic version");
        return ZERO;
    }
    // What it was built from does not count.
    let text = text.split('+').next().unwrap_or_default();
    let (core, before) = text.split_once('-').unwrap_or((text, ""));
    let mut numbers = core.split('.').map(|part| part.parse().unwrap_or(u64::MAX));
    let numbers = [(); 3].map(|()| numbers.next().unwrap_or_default());
    let identifier = |part| str::parse(part).map_or(Identifier::Text(part), Identifier::Number);
    let identifiers = before.split('.').filter(|part| !part.is_empty()).map(identifier).collect();
    (numbers, before.is_empty(), identifiers)
}
