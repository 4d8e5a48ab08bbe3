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
    if strategy.text() == BY_VERSION && emulated == Version::default() {
        emulation.required(format!("must be specified when `strategy` is '{BY_VERSION}'"));
    }
    lease_strategy(strategy.child("strategy"), strategy.text());
}

/// The numbers of a version; whether it is final comes last, so that what comes before it is less.
type Version = ([u64; 3], bool);

/// The version at a place; as good as none if it cannot be read.
fn version(node: Node<'_>) -> Version {
    let text = node.text();
    if text.is_empty() {
        return Version::default();
    }
    if !is_semantic(text) {
        node.invalid(text, "must be a valid semantic version");
        return Version::default();
    }
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = core.split('.').map(|part| part.parse().unwrap_or(u64::MAX));
    let numbers = [(); 3].map(|()| numbers.next().unwrap_or_default());
    (numbers, !text.split('+').next().unwrap_or_default().contains('-'))
}
