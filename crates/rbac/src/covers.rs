//! Whether some rules allow all that others do.

use std::collections::{BTreeMap, BTreeSet};

use concord_meta::go;

use crate::{PolicyRule, rule::url_covers};

/// What `owner` does not allow of all that `servant` allows, in parts that allow one verb on one thing each; nothing if it
/// is all covered.
///
/// Each part is covered by one rule of the owner or by none, since it cannot be divided further.
pub fn covers(owner: &[PolicyRule], servant: &[PolicyRule]) -> Vec<PolicyRule> {
    let parts = servant.iter().flat_map(parts);
    parts.filter(|part| !owner.iter().any(|rule| rule_covers(rule, part))).collect()
}

/// Everything a rule allows, one verb on one thing each.
fn parts(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |word: &String| vec![word.clone()];
    let mut parts = Vec::new();
    for (group, resource) in
        rule.api_groups.iter().flat_map(|group| rule.resources.iter().map(move |r| (group, r)))
    {
        for verb in &rule.verbs {
            let part = PolicyRule {
                verbs: one(verb),
                api_groups: one(group),
                resources: one(resource),
                ..PolicyRule::default()
            };
            match rule.resource_names.as_slice() {
                [] => parts.push(part),
                names => {
                    let named = |name| PolicyRule { resource_names: one(name), ..part.clone() };
                    parts.extend(names.iter().map(named));
                }
            }
        }
    }
    for (url, verb) in
        rule.non_resource_urls.iter().flat_map(|url| rule.verbs.iter().map(move |verb| (url, verb)))
    {
        parts.push(PolicyRule { verbs: one(verb), non_resource_urls: one(url), ..PolicyRule::default() });
    }
    parts
}

fn rule_covers(owner: &PolicyRule, part: &PolicyRule) -> bool {
    let has = |list: &[String], word: &String| list.iter().any(|item| item == "*" || item == word);
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
pub fn describe_missing(missing: &[PolicyRule]) -> String {
    // By groups, resources and names.
    let mut things: BTreeMap<[&[String]; 3], PolicyRule> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for part in missing {
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
    lines.into_iter().collect::<Vec<_>>().join("\n")
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
