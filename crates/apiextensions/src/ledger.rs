//! Who has which names.

use std::collections::{BTreeMap, BTreeSet};

use concord_registry::{Object, metadata};
use concord_store::Revision;
use serde_json::Value;

use crate::{
    definition::Names,
    names::{Conflict, Taken, accept},
    settled::is_settled,
};

/// The names that definitions have, group by group. It is kept while definitions are learned, so that giving names to one
/// costs nothing for all the others.
#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeMap<String, Group>);

#[derive(Debug, Default)]
struct Group {
    /// Boxed, since most groups have few and a map makes room for eleven.
    definitions: BTreeMap<String, Box<Holder>>,
    resources: Owners,
    kinds: Owners,
}

/// The definitions that have a name, which is one but for a short time.
#[derive(Debug, Default)]
struct Owners(BTreeMap<String, Vec<String>>);

impl Owners {
    fn of(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn enter(&mut self, name: &str, owner: &str) {
        let owners = self.0.entry(name.to_owned()).or_default();
        if !owners.iter().any(|known| known == owner) {
            owners.reserve_exact(1);
            owners.push(owner.to_owned());
        }
    }

    fn strike(&mut self, name: &str, owner: &str) {
        if let Some(owners) = self.0.get_mut(name) {
            owners.retain(|known| known != owner);
            if owners.is_empty() {
                self.0.remove(name);
            }
        }
    }
}

/// A definition and its names.
#[derive(Debug, Default)]
struct Holder {
    accepted: Names,
    /// Names that were decided to be given and may not have come round yet, and at which revision of the definition that
    /// was decided.
    given: Option<(Revision, Names)>,
    /// Whether there is nothing to be decided or to be told.
    is_settled: bool,
    /// That of the definition, whose schemas were looked at last.
    generation: i64,
    /// When the definition was made: of two that have the same name, the older one keeps it.
    created: String,
}

impl Holder {
    fn names(&self) -> impl Iterator<Item = &Names> {
        [&self.accepted].into_iter().chain(self.given.as_ref().map(|(_, names)| names))
    }
}

impl Group {
    fn enter(&mut self, name: &str, holder: Box<Holder>) {
        for names in holder.names() {
            resources(names).for_each(|resource| self.resources.enter(resource, name));
            kinds(names).for_each(|kind| self.kinds.enter(kind, name));
        }
        self.definitions.insert(name.to_owned(), holder);
    }

    fn strike(&mut self, name: &str) -> Option<Box<Holder>> {
        let holder = self.definitions.remove(name)?;
        for names in holder.names() {
            resources(names).for_each(|resource| self.resources.strike(resource, name));
            kinds(names).for_each(|kind| self.kinds.strike(kind, name));
        }
        Some(holder)
    }
}

fn resources(names: &Names) -> impl Iterator<Item = &String> {
    [&names.plural, &names.singular].into_iter().chain(&names.short_names).filter(|name| !name.is_empty())
}

fn kinds(names: &Names) -> impl Iterator<Item = &String> {
    [&names.kind, &names.list_kind].into_iter().filter(|name| !name.is_empty())
}

/// What all definitions of a group have but one.
struct Others<'a> {
    group: &'a Group,
    than: &'a str,
}

impl Others<'_> {
    fn have(&self, owners: &[String]) -> bool {
        owners.iter().any(|owner| owner != self.than)
    }
}

impl Taken for Others<'_> {
    fn has_resource(&self, name: &str) -> bool {
        self.have(self.group.resources.of(name))
    }

    fn has_kind(&self, name: &str) -> bool {
        self.have(self.group.kinds.of(name))
    }
}

impl Group {
    /// Whether a definition has lost a name that it was given: another server, which did not know of it yet, gave the
    /// name to an older one. All servers see the same of this, and decide the same.
    fn has_lost(&self, name: &str, holder: &Holder, owners: &[String], has: impl Fn(&Names) -> bool) -> bool {
        let others = owners.iter().filter(|other| *other != name);
        let mut others = others.filter_map(|other| Some((other, self.definitions.get(other)?)));
        others.any(|(other, of)| has(&of.accepted) && (&of.created, other.as_str()) < (&holder.created, name))
    }

    fn has_lost_resource(&self, name: &str, holder: &Holder, resource: &str) -> bool {
        let has = |names: &Names| resources(names).any(|other| other == resource);
        self.has_lost(name, holder, self.resources.of(resource), has)
    }

    fn has_lost_kind(&self, name: &str, holder: &Holder, kind: &str) -> bool {
        let has = |names: &Names| kinds(names).any(|other| other == kind);
        self.has_lost(name, holder, self.kinds.of(kind), has)
    }

    /// The accepted names of a definition, without those that it has lost.
    fn kept(&self, name: &str, accepted: &Names) -> Names {
        let mut kept = accepted.clone();
        let Some(holder) = self.definitions.get(name) else { return kept };
        for resource in [&mut kept.plural, &mut kept.singular] {
            if self.has_lost_resource(name, holder, resource) {
                resource.clear();
            }
        }
        kept.short_names.retain(|short| !self.has_lost_resource(name, holder, short));
        for kind in [&mut kept.kind, &mut kept.list_kind] {
            if self.has_lost_kind(name, holder, kind) {
                kind.clear();
            }
        }
        kept
    }

    /// The definitions that have a name of this one, and have lost it or made it lose it.
    fn losers(&self, name: &str) -> BTreeSet<String> {
        let Some(holder) = self.definitions.get(name) else { return BTreeSet::new() };
        let resources = resources(&holder.accepted).map(|resource| self.resources.of(resource));
        let kinds = kinds(&holder.accepted).map(|kind| self.kinds.of(kind));
        let sharing: BTreeSet<&String> =
            resources.chain(kinds).filter(|owners| owners.len() > 1).flatten().collect();
        let lost = |name: &&&String| {
            self.definitions
                .get(**name)
                .is_some_and(|holder| self.kept(name, &holder.accepted) != holder.accepted)
        };
        sharing.iter().filter(lost).map(|name| (*name).clone()).collect()
    }
}

/// The group in the name of a definition, which is always `plural.group`.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

fn creation(definition: &Object) -> String {
    let created = metadata(definition).get("creationTimestamp").and_then(Value::as_str);
    created.unwrap_or_default().to_owned()
}

impl Ledger {
    /// The names of all definitions.
    pub(crate) fn definitions(&self) -> Vec<String> {
        self.0.values().flat_map(|group| group.definitions.keys().cloned()).collect()
    }

    /// Takes note of what a definition is now. Answers the definitions for which there may be something to decide.
    pub(crate) fn note(&mut self, name: &str, now: Option<(Revision, &Object)>) -> BTreeSet<String> {
        let group = self.0.entry(group_of(name).to_owned()).or_default();
        let before = group.strike(name).unwrap_or_default();
        let mut open = BTreeSet::new();
        if let Some((revision, definition)) = now {
            let status = definition.get("status");
            let generation = metadata(definition).generation();
            // Schemas of definitions that were settled when the server started have been looked at before.
            let is_looked_at = before.generation == 0 || before.generation == generation;
            let holder = Holder {
                accepted: status.map(|status| Names::of(&status["acceptedNames"])).unwrap_or_default(),
                given: before.given.filter(|(decided, _)| *decided >= revision),
                is_settled: is_settled(definition) && is_looked_at,
                generation,
                created: creation(definition),
            };
            if !holder.is_settled && !metadata(definition).is_terminating() {
                open.insert(name.to_owned());
            }
            group.enter(name, Box::new(holder));
            open.extend(group.losers(name));
        }
        let gave_up = resources(&before.accepted).any(|name| group.resources.of(name).is_empty())
            || kinds(&before.accepted).any(|name| group.kinds.of(name).is_empty());
        if gave_up {
            let waiting = group.definitions.iter().filter(|(_, holder)| !holder.is_settled);
            open.extend(waiting.map(|(name, _)| name.clone()));
        }
        if group.definitions.is_empty() {
            self.0.remove(group_of(name));
        }
        open
    }

    /// Gives a definition, as it is at this revision, the names that it wants and nobody else has. Whoever asks next sees
    /// them taken.
    pub(crate) fn give(
        &mut self,
        name: &str,
        revision: Revision,
        wanted: &Names,
        accepted: &Names,
    ) -> (Names, Option<Conflict>) {
        let group = self.0.entry(group_of(name).to_owned()).or_default();
        let kept = group.kept(name, accepted);
        let (names, conflict) = accept(wanted, &kept, &Others { group, than: name });
        let mut holder = group.strike(name).unwrap_or_default();
        holder.given = Some((revision, names.clone()));
        group.enter(name, holder);
        (names, conflict)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(wanted: &Names, accepted: Option<&Names>) -> Object {
        let status = match accepted {
            Some(names) => json!({
                "acceptedNames": names.value(),
                "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
            }),
            None => json!({}),
        };
        let object =
            json!({"metadata": {"generation": 1}, "spec": {"names": wanted.value()}, "status": status});
        object.as_object().expect("an object").clone()
    }

    fn names(plural: &str, kind: &str) -> Names {
        Names { plural: plural.to_owned(), kind: kind.to_owned(), ..Names::default() }
    }

    fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(ToOwned::to_owned).into()
    }

    #[test]
    fn a_name_is_given_once_and_again_when_it_is_free() {
        let mut ledger = Ledger::default();
        let (one, two) = (names("ones", "Thing"), names("twos", "Thing"));
        assert_eq!(ledger.note("ones.g", Some((1, &definition(&one, None)))), set(["ones.g"]));
        assert_eq!(ledger.note("twos.g", Some((2, &definition(&two, None)))), set(["twos.g"]));
        assert_eq!(ledger.give("ones.g", 1, &one, &Names::default()), (one.clone(), None));
        // Before anything came round.
        let (given, conflict) = ledger.give("twos.g", 2, &two, &Names::default());
        assert_eq!((given.kind.as_str(), conflict.map(|(reason, _)| reason)), ("", Some("KindConflict")));
        // What another group has does not matter.
        assert_eq!(ledger.give("twos.h", 3, &two, &Names::default()).1, None);

        let settled = definition(&one, Some(&one));
        assert_eq!(ledger.note("ones.g", Some((4, &settled))), set([]), "nothing is left to decide");
        assert_eq!(ledger.note("ones.g", Some((5, &settled))), set([]));
        assert_eq!(ledger.note("ones.g", None), set(["twos.g"]), "its names are free");
        assert_eq!(ledger.give("twos.g", 2, &two, &Names::default()), (two, None));
    }

    #[test]
    fn what_was_given_stays_so_until_it_comes_round() {
        let mut ledger = Ledger::default();
        let (one, two) = (names("ones", "Thing"), names("twos", "Thing"));
        ledger.note("ones.g", Some((1, &definition(&one, None))));
        // The decision was made on a state of the definition that comes round only now.
        ledger.give("ones.g", 3, &one, &Names::default());
        ledger.note("ones.g", Some((3, &definition(&one, None))));
        assert!(ledger.give("twos.g", 2, &two, &Names::default()).1.is_some());
        // Somebody else changed the definition, so that the decision came to nothing.
        ledger.note("ones.g", Some((4, &definition(&one, None))));
        assert_eq!(ledger.give("twos.g", 2, &two, &Names::default()).1, None);
    }

    /// Two servers gave the same name at once. Whatever each of them hears first, the older definition keeps it.
    #[test]
    fn of_two_that_were_given_a_name_the_older_one_keeps_it() {
        let (one, two) = (names("ones", "Thing"), names("twos", "Thing"));
        let made = |names: &Names, created: &str| {
            let mut definition = definition(names, Some(names));
            definition["metadata"]["creationTimestamp"] = json!(created);
            definition
        };
        let heard =
            [("ones.g", made(&one, "2026-01-02T00:00:01Z")), ("twos.g", made(&two, "2026-01-02T00:00:00Z"))];
        for order in [[0, 1], [1, 0]] {
            let mut ledger = Ledger::default();
            let mut open = BTreeSet::new();
            for (revision, index) in (1..).zip(order) {
                let (name, definition) = &heard[index];
                open.extend(ledger.note(name, Some((revision, definition))));
            }
            assert_eq!(open, set(["ones.g"]));
            let (given, conflict) = ledger.give("ones.g", 3, &one, &one);
            assert_eq!((given.plural.as_str(), given.kind.as_str()), ("ones", ""));
            assert_eq!(conflict.map(|(reason, _)| reason), Some("KindConflict"));
            assert_eq!(ledger.give("twos.g", 3, &two, &two), (two.clone(), None));
        }
    }
}
