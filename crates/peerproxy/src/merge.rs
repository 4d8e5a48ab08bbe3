//! The discovery document of a whole fleet.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashSet},
};

use concord_meta::compare_kube_aware_versions;

use crate::{
    document::{Group, Resource, Subresource, Version},
    order::merged_order,
};

/// What one server serves.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The server's ID: servers count in the order of their IDs, so that all of them merge to the same.
    pub id: &'a str,
    /// Its groups.
    pub groups: &'a [Group],
    /// Whether it can be asked now. What nobody who can be asked serves is stale.
    pub is_reachable: bool,
}

/// Merges what servers serve into one list of groups.
///
/// kube-apiserver's rules: servers count in the order of their IDs; of what they disagree about the first one's word counts,
/// except that verbs and subresources are those of all, and of subresources with one name the last one's counts.
///
/// Other than there, a version is stale only if no server that can be asked has it, versions that nobody compares are
/// ordered by maturity, and contradicting orders do not throw all priorities away.
pub fn merge(sources: &[Source<'_>]) -> Vec<Group> {
    let mut sources = sources.to_vec();
    sources.sort_by_key(|source| source.id);
    let mut merged: BTreeMap<String, Group> = BTreeMap::new();
    for group in sources.iter().flat_map(|source| source.groups) {
        match merged.get_mut(group.name()) {
            Some(known) => add_versions(known, group),
            None => drop(merged.insert(group.name().to_owned(), group.clone())),
        }
    }
    let lists: Vec<Vec<&str>> =
        sources.iter().map(|source| source.groups.iter().map(Group::name).collect()).collect();
    let order = merged_order(&lists, str::cmp);
    let mut groups: Vec<Group> = order.iter().filter_map(|name| merged.remove(name)).collect();
    freshen(&mut groups, &sources);
    groups
}

/// Says of each version whether a server that can be asked has it.
fn freshen(groups: &mut [Group], sources: &[Source<'_>]) {
    let reachable = sources.iter().filter(|source| source.is_reachable).flat_map(|source| source.groups);
    let fresh: HashSet<(&str, &str)> = reachable
        .flat_map(|group| {
            let fresh = group.versions.iter().filter(|version| !version.is_stale());
            fresh.map(|version| (group.name(), version.version.as_str()))
        })
        .collect();
    for group in groups {
        let name = group.metadata.name.clone();
        for version in &mut group.versions {
            let is_fresh = fresh.contains(&(name.as_str(), version.version.as_str()));
            version.freshness = if is_fresh { "Current" } else { "Stale" }.to_owned();
        }
    }
}

fn add_versions(known: &mut Group, more: &Group) {
    let lists = [names(&known.versions), names(&more.versions)];
    let order = (lists[0] != lists[1]).then(|| merged_order(&lists, newest_first));
    for version in &more.versions {
        match known.versions.iter_mut().find(|candidate| candidate.version == version.version) {
            Some(known) => add_resources(known, version),
            None => known.versions.push(version.clone()),
        }
    }
    if let Some(order) = order {
        arrange(&mut known.versions, &order, |version| &version.version);
    }
}

fn names(versions: &[Version]) -> Vec<&str> {
    versions.iter().map(|version| version.version.as_str()).collect()
}

fn newest_first(one: &str, other: &str) -> Ordering {
    compare_kube_aware_versions(other, one)
}

fn add_resources(known: &mut Version, more: &Version) {
    fn names(version: &Version) -> Vec<&str> {
        version.resources.iter().map(|resource| resource.resource.as_str()).collect()
    }
    let lists = [names(known), names(more)];
    let order = (lists[0] != lists[1]).then(|| merged_order(&lists, str::cmp));
    for resource in &more.resources {
        match known.resources.iter_mut().find(|candidate| candidate.resource == resource.resource) {
            Some(known) if known == resource => {}
            Some(known) => add_capabilities(known, resource),
            None => known.resources.push(resource.clone()),
        }
    }
    if let Some(order) = order {
        arrange(&mut known.resources, &order, |resource| &resource.resource);
    }
}

fn add_capabilities(known: &mut Resource, more: &Resource) {
    known.verbs.extend(more.verbs.iter().cloned());
    known.verbs.sort();
    known.verbs.dedup();
    let all = known.subresources.drain(..).chain(more.subresources.iter().cloned());
    let all: BTreeMap<String, Subresource> = all.map(|below| (below.subresource.clone(), below)).collect();
    known.subresources = all.into_values().collect();
}

/// Puts items in the order of their names. Of several with one name the last stays, as in kube-apiserver.
fn arrange<T>(items: &mut Vec<T>, order: &[String], name: fn(&T) -> &String) {
    let mut by_name: BTreeMap<String, T> = items.drain(..).map(|item| (name(&item).clone(), item)).collect();
    items.extend(order.iter().filter_map(|name| by_name.remove(name)));
}

#[cfg(test)]
mod tests;
