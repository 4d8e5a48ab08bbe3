//! Reading the tables: see there for what they look like.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    Catalog, Deprecation, GroupFacts, NameRule, Priority, Propagation, ResourceFacts, SelectableField,
    StatusOnCreate, StorageFacts, StrategyFacts, SubresourceFacts, VersionFacts,
};

const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";
const SUBRESOURCE_VERBS: &str = "get,patch,update";

type Strategies = HashMap<(&'static str, &'static str), Arc<StrategyFacts>>;

/// The catalog; `None` if a table is not as it says it is.
pub(super) fn read(catalog: &'static str, strategies: &'static str) -> Option<Catalog> {
    let strategies = read_strategies(strategies)?;
    let mut versions = read_versions(catalog, &strategies)?;
    set_storage(&mut versions);
    let mut groups: Vec<GroupFacts> = Vec::new();
    for version in versions {
        match groups.last_mut() {
            Some(group) if group.name == version.group => group.versions.push(version),
            _ => groups.push(GroupFacts { name: version.group, versions: vec![version] }),
        }
    }
    Some(Catalog { groups })
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn heading(line: &'static str) -> Option<&'static str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

fn read_versions(text: &'static str, strategies: &Strategies) -> Option<Vec<VersionFacts>> {
    let mut versions: Vec<VersionFacts> = Vec::new();
    for line in lines(text) {
        if let Some(heading) = heading(line) {
            versions.push(version(heading)?);
        } else if let Some(line) = line.strip_prefix("  ") {
            let resource = versions.last_mut()?.resources.last_mut()?;
            let subresource = subresource(resource, line)?;
            resource.subresources.push(subresource);
        } else {
            let version = versions.last_mut()?;
            let resource = resource(version, line, strategies)?;
            version.resources.push(resource);
        }
    }
    Some(versions)
}

fn version(heading: &'static str) -> Option<VersionFacts> {
    let mut words = heading.split(' ');
    let (group, version) = group_version(words.next()?);
    let priority = match (words.next(), words.next()) {
        (Some(group), Some(version)) => {
            Some(Priority { group: group.parse().ok()?, version: version.parse().ok()? })
        }
        _ => None,
    };
    Some(VersionFacts { group, version, priority, resources: Vec::new() })
}

fn group_version(text: &'static str) -> (&'static str, &'static str) {
    text.rsplit_once('/').unwrap_or(("", text))
}

fn resource(of: &VersionFacts, line: &'static str, strategies: &Strategies) -> Option<ResourceFacts> {
    let mut words = line.split(' ');
    let (plural, kind, scope) = (words.next()?, words.next()?, words.next()?);
    let mut resource = ResourceFacts {
        group: of.group,
        version: of.version,
        plural,
        singular: kind.to_lowercase(),
        kind,
        namespaced: scope == "ns",
        verbs: list(ALL_VERBS),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
        deprecation: None,
        storage: None,
        strategy: strategies.get(&(of.group, plural)).cloned().unwrap_or_default(),
    };
    for word in words {
        let (word, value) = word.split_once('=')?;
        match word {
            "verbs" => resource.verbs = list(value),
            "short" => resource.short_names = list(value),
            "categories" => resource.categories = list(value),
            "singular" => value.clone_into(&mut resource.singular),
            "deprecated" => resource.deprecation = Some(deprecation(value)),
            "use" => resource.deprecation.as_mut()?.replacement = Some(value),
            _ => return None,
        }
    }
    Some(resource)
}

fn deprecation(releases: &'static str) -> Deprecation {
    let (since, removed) =
        releases.split_once('/').map_or((releases, None), |(since, removed)| (since, Some(removed)));
    Deprecation { since, removed, replacement: None }
}

fn subresource(of: &ResourceFacts, line: &'static str) -> Option<SubresourceFacts> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let kind = words.next().unwrap_or(of.kind);
    let (api_version, kind) = kind.rsplit_once('/').map_or((None, kind), |(of, kind)| (Some(of), kind));
    let (group, version) = api_version.map_or((of.group, of.version), group_version);
    let verbs = list(words.next().unwrap_or(SUBRESOURCE_VERBS));
    Some(SubresourceFacts { name, group, version, kind, verbs })
}

fn list(names: &'static str) -> Vec<&'static str> {
    names.split(',').collect()
}

/// Objects are stored in the first version that serves them, unless the strategy says another.
fn set_storage(versions: &mut [VersionFacts]) {
    let mut first = HashMap::new();
    for resource in versions.iter_mut().flat_map(|version| &mut version.resources) {
        let version = *first.entry((resource.group, resource.plural)).or_insert(resource.version);
        if resource.verbs.contains(&"create") && resource.verbs.contains(&"get") {
            let stored = resource.strategy.stored.unwrap_or(version);
            let (group, version) = stored.rsplit_once('/').unwrap_or((resource.group, stored));
            let key = resource.strategy.key.unwrap_or(resource.plural);
            resource.storage = Some(StorageFacts { group, version, key });
        }
    }
}

fn read_strategies(text: &'static str) -> Option<Strategies> {
    let mut strategies = Strategies::new();
    let mut group = "";
    for line in lines(text) {
        if let Some(heading) = heading(line) {
            group = heading;
        } else {
            let (plural, words) = line.split_once(": ")?;
            strategies.insert((group, plural), Arc::new(strategy(words)?));
        }
    }
    Some(strategies)
}

fn strategy(words: &'static str) -> Option<StrategyFacts> {
    let mut strategy = StrategyFacts::default();
    for word in words.split(' ') {
        let (word, value) = word.split_once('=').unwrap_or((word, ""));
        match word {
            "generation" => strategy.generation = true,
            "create-on-update" => strategy.create_on_update = true,
            "conditional" => strategy.conditional_update = true,
            "returns-deleted" => strategy.returns_deleted = true,
            "orphan" => strategy.propagation = Propagation::Orphan,
            "no-dependents" => strategy.propagation = Propagation::Unsupported,
            "name" => strategy.name = name_rule(value)?,
            "key" => strategy.key = Some(value),
            "stored" => strategy.stored = Some(value),
            "ttl" => strategy.ttl = Some(Duration::from_secs(value.parse().ok()?)),
            "status" => strategy.status_on_create = status_on_create(value)?,
            "reset" => strategy.reset = list(value),
            "status-reset" => strategy.status_reset = list(value),
            "approval-reset" => strategy.approval_reset = list(value),
            "fields" => strategy.fields = value.split(',').map(field).collect(),
            "no-namespace-field" => strategy.no_namespace_field = true,
            "unsupported" => strategy.unsupported_field = Some(value),
            _ => return None,
        }
    }
    Some(strategy)
}

fn name_rule(word: &str) -> Option<NameRule> {
    Some(match word {
        "label" => NameRule::Label,
        "path-segment" => NameRule::PathSegment,
        "config-map-key" => NameRule::ConfigMapKey,
        "ip-address" => NameRule::IpAddress,
        "group-dot-resource" => NameRule::GroupDotResource,
        "plural-dot-group" => NameRule::PluralDotGroup,
        "version-dot-group" => NameRule::VersionDotGroup,
        "trust-bundle" => NameRule::TrustBundle,
        _ => return None,
    })
}

fn status_on_create(word: &'static str) -> Option<StatusOnCreate> {
    match word.split_once(':') {
        None if word == "keep" => Some(StatusOnCreate::Keep),
        Some(("phase", phase)) => Some(StatusOnCreate::Phase(phase)),
        _ => None,
    }
}

fn field(text: &'static str) -> SelectableField {
    let (text, zero) = text.split_once('=').unwrap_or((text, ""));
    let (label, paths) = text.split_once(':').unwrap_or((text, text));
    SelectableField { label, paths: paths.split('|').filter(|path| !path.is_empty()).collect(), zero }
}
