//! Whether some rules allow all that others do.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use concord_meta::go;

use crate::{PolicyRule, rule::url_covers};

/// How many words are compared at most, which takes less than a second. A rule of a few kilobytes can stand for more parts
/// than anybody could look at; upstream looks at all of them.
const MAX_COMPARED: usize = 100_000_000;

/// How much of what is missing is told at most, in bytes of its words.
const MAX_TOLD: usize = 1024 * 1024;

/// What somebody does not have.
#[derive(Debug, Default)]
pub struct Missing {
    /// One verb on one thing each.
    pub parts: Vec<PolicyRule>,
    /// Whether there may be others: looking for them ended early.
    pub more: bool,
}

impl Missing {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        self.parts.is_empty() && !self.more
    }
}

/// What `owner` does not allow of all that `servant` allows, in parts that allow one verb on one thing each; nothing if it
/// is all covered.
///
/// Each part is covered by one rule of the owner or by none, since it cannot be divided further.
pub fn covers(owner: &[PolicyRule], servant: &[PolicyRule]) -> Missing {
    let mut search = Search { missing: Missing::default(), compared: 0, told: 0 };
    let ended = servant.iter().try_for_each(|rule| search.look(owner, rule));
    Missing { more: ended.is_break(), ..search.missing }
}

/// Looks for what is missing, for as long as that is worth it.
struct Search {
    missing: Missing,
    compared: usize,
    told: usize,
}

impl Search {
    fn look(&mut self, owner: &[PolicyRule], rule: &PolicyRule) -> ControlFlow<()> {
        // Nearly always there is a rule that has it all.
        for own in owner {
            self.compare(most_compared(own, rule))?;
            if rule_covers(own, rule) {
                return ControlFlow::Continue(());
            }
        }
        for group in &rule.api_groups {
            for resource in &rule.resources {
                self.look_at_resource(owner, rule, group, resource)?;
            }
        }
        for url in &rule.non_resource_urls {
            for verb in &rule.verbs {
                let part = PolicyRule {
                    verbs: vec![verb.clone()],
                    non_resource_urls: vec![url.clone()],
                    ..PolicyRule::default()
                };
                self.look_at_part(owner.iter(), part)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn look_at_resource(
        &mut self,
        owner: &[PolicyRule],
        rule: &PolicyRule,
        group: &str,
        resource: &str,
    ) -> ControlFlow<()> {
        let lists = owner.iter().map(|own| 1 + own.api_groups.len() + own.resources.len());
        self.compare(lists.sum())?;
        let about =
            |own: &&PolicyRule| has(&own.api_groups, group) && covers_resource(&own.resources, resource);
        let owner: Vec<&PolicyRule> = owner.iter().filter(about).collect();
        for verb in &rule.verbs {
            let part = |names: &[String]| PolicyRule {
                verbs: vec![verb.clone()],
                api_groups: vec![group.to_owned()],
                resources: vec![resource.to_owned()],
                resource_names: names.to_vec(),
                ..PolicyRule::default()
            };
            if rule.resource_names.is_empty() {
                self.look_at_part(owner.iter().copied(), part(&[]))?;
            }
            for name in rule.resource_names.chunks(1) {
                self.look_at_part(owner.iter().copied(), part(name))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn look_at_part<'a>(
        &mut self,
        owner: impl Iterator<Item = &'a PolicyRule>,
        part: PolicyRule,
    ) -> ControlFlow<()> {
        // What it takes to make it.
        self.compare(10 + length(&part) / 64)?;
        for own in owner {
            self.compare(most_compared(own, &part))?;
            if rule_covers(own, &part) {
                return ControlFlow::Continue(());
            }
        }
        self.told += 64 + length(&part);
        if self.told > MAX_TOLD {
            return ControlFlow::Break(());
        }
        self.missing.parts.push(part);
        ControlFlow::Continue(())
    }

    fn compare(&mut self, words: usize) -> ControlFlow<()> {
        self.compared = self.compared.saturating_add(words);
        if self.compared > MAX_COMPARED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn lists(rule: &PolicyRule) -> [&Vec<String>; 5] {
    [&rule.verbs, &rule.api_groups, &rule.resources, &rule.resource_names, &rule.non_resource_urls]
}

/// The bytes of a rule's words.
fn length(rule: &PolicyRule) -> usize {
    lists(rule).into_iter().flatten().map(String::len).sum()
}

/// How many words have to be compared to find out whether one rule covers another.
fn most_compared(owner: &PolicyRule, servant: &PolicyRule) -> usize {
    let pairs = lists(owner).into_iter().zip(lists(servant));
    pairs.map(|(own, other)| own.len().saturating_mul(other.len())).fold(1, usize::saturating_add)
}

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|item| item == "*" || item == word)
}

/// Whether one rule allows all that another does.
fn rule_covers(owner: &PolicyRule, part: &PolicyRule) -> bool {
    let names = owner.resource_names.is_empty()
        || !part.resource_names.is_empty()
            && part.resource_names.iter().all(|name| owner.resource_names.contains(name));
    names
        && part.verbs.iter().all(|verb| has(&owner.verbs, verb))
        && part.api_groups.iter().all(|group| has(&owner.api_groups, group))
        && part.resources.iter().all(|resource| covers_resource(&owner.resources, resource))
        && part
            .non_resource_urls
            .iter()
            .all(|url| owner.non_resource_urls.iter().any(|own| url_covers(own, url)))
}

/// Whether one of the owner's resources is this one or stands for it.
fn covers_resource(owner: &[String], resource: &str) -> bool {
    let any = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
    owner.iter().any(|own| own == "*" || own == resource || Some(own) == any.as_ref())
}

/// The parts that [`covers`] found missing, as people read them: verbs on one thing together, sorted, one per line.
pub fn describe_missing(missing: &Missing) -> String {
    // By groups, resources and names.
    let mut things: BTreeMap<[&[String]; 3], PolicyRule> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for part in &missing.parts {
        if !part.non_resource_urls.is_empty() {
            lines.insert(describe(part));
            continue;
        }
        let thing = [&*part.api_groups, &*part.resources, &*part.resource_names];
        match things.get_mut(&thing) {
            Some(rule) => rule.verbs.extend(part.verbs.iter().cloned()),
            None => drop(things.insert(thing, part.clone())),
        }
    }
    lines.extend(things.values().map(describe));
    let more = missing.more.then(|| "and more".to_owned());
    lines.into_iter().chain(more).collect::<Vec<_>>().join("\n")
}

fn describe(rule: &PolicyRule) -> String {
    let lists = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let lists: Vec<String> = lists.map(|(name, list)| format!("{name}:{}", go::quote_slice(list))).collect();
    format!("{{{}}}", lists.join(", "))
}

#[cfg(test)]
mod tests;
