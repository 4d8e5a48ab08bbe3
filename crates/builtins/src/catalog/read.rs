//! Reading the tables: see there for what they look like.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    Catalog, Deprecation, GroupFacts, NameRule, Priority, Propagation, Release, ResourceFacts,
    SelectableField, StatusOnCreate, StorageFacts, StrategyFacts, SubresourceFacts, VersionFacts,
};

const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";
const SUBRESOURCE_VERBS: &str = "get,patch,update";

/// How resources behave, by group and plural.
pub(super) type Strategies = HashMap<(&'static str, &'static str), Arc<StrategyFacts>>;

/// What a release serves; `None` if the table is not as it says it is.
pub(super) fn catalog(text: &'static str, release: Release, strategies: &Strategies) -> Option<Catalog> {
    let mut versions = Reader { release, strategies, stored: HashMap::new() }.versions(text)?;
    versions.retain(|version| !version.resources.is_empty());
    let mut groups: Vec<GroupFacts> = Vec::new();
    for version in versions {
        match groups.last_mut() {
            Some(group) if group.name == version.group => group.versions.push(version),
            _ => groups.push(GroupFacts { name: version.group, versions: vec![version] }),
        }
    }
    Some(Catalog { release, groups })
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn heading(line: &'static str) -> Option<&'static str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

/// Reads the table for one release.
struct Reader<'a> {
    release: Release,
    strategies: &'a Strategies,
    /// The version that a resource is stored in, and since when, as far as it was read.
    stored: HashMap<(&'static str, &'static str), (&'static str, Option<Release>)>,
}

impl Reader<'_> {
    fn versions(mut self, text: &'static str) -> Option<Vec<VersionFacts>> {
        let mut versions: Vec<VersionFacts> = Vec::new();
        // Whether the resource is served whose subresources follow.
        let mut served = false;
        for line in lines(text) {
            if let Some(heading) = heading(line) {
                versions.push(version(heading)?);
            } else if let Some(line) = line.strip_prefix("  ") {
                if served {
                    let resource = versions.last_mut()?.resources.last_mut()?;
                    resource.subresources.extend(self.subresource(resource, line)?);
                }
            } else {
                let version = versions.last_mut()?;
                let resource = self.resource(version, line)?;
                served = resource.is_some();
                version.resources.extend(resource);
            }
        }
        self.set_storage(&mut versions);
        Some(versions)
    }

    /// The resource of a line, if the release serves it; the outer `None` if the line makes no sense.
    fn resource(&mut self, of: &VersionFacts, line: &'static str) -> Option<Option<ResourceFacts>> {
        let mut resource = begin(of, line)?;
        let mut stored = (of.version, None);
        for word in line.split(' ').skip(HEAD) {
            let (word, value) = word.split_once('=')?;
            match word {
                "verbs" => resource.verbs = list(value),
                "short" => resource.short_names = list(value),
                "categories" => resource.categories = list(value),
                "singular" => value.clone_into(&mut resource.singular),
                "gone" => resource.gone = Some(value.parse().ok()?),
                "stored" => stored.1 = Some(value.parse().ok()?),
                "as" => stored = (value, Some(resource.introduced)),
                "deprecated" => resource.deprecation = Some(deprecation(value)?),
                "use" => self.set_replacement(resource.deprecation.as_mut()?, value)?,
                _ => return None,
            }
        }
        resource.deprecation = resource.deprecation.filter(|deprecation| deprecation.since <= self.release);
        let gone = resource.gone.is_some_and(|gone| gone <= self.release);
        if gone || resource.introduced > self.release {
            return Some(None);
        }
        let name = (resource.group, resource.plural);
        resource.strategy = self.strategies.get(&name).cloned().unwrap_or_default();
        self.note_stored(name, stored);
        Some(Some(resource))
    }

    fn set_replacement(&self, deprecation: &mut Deprecation, value: &'static str) -> Option<()> {
        let (told, replacement) = value.split_once(':')?;
        let told: Release = told.parse().ok()?;
        deprecation.replacement = (told <= self.release).then_some(replacement);
        Some(())
    }

    /// The latest release that says it counts; without any, the version that comes first.
    fn note_stored(
        &mut self,
        resource: (&'static str, &'static str),
        (version, since): (&'static str, Option<Release>),
    ) {
        let since = since.filter(|since| *since <= self.release);
        let known = self.stored.entry(resource).or_insert((version, since));
        if since > known.1 {
            *known = (version, since);
        }
    }

    fn subresource(&self, of: &ResourceFacts, line: &'static str) -> Option<Option<SubresourceFacts>> {
        let (line, since) =
            line.split_once(" since=").map_or((line, None), |(line, since)| (line, Some(since)));
        let introduced: Option<Release> = since.map(str::parse).transpose().ok()?;
        let mut words = line.split(' ');
        let name = words.next()?;
        let kind = words.next().unwrap_or(of.kind);
        let (api_version, kind) = kind.rsplit_once('/').map_or((None, kind), |(of, kind)| (Some(of), kind));
        let (group, version) = api_version.map_or((of.group, of.version), group_version);
        let verbs = list(words.next().unwrap_or(SUBRESOURCE_VERBS));
        let served = introduced.is_none_or(|introduced| introduced <= self.release);
        Some(served.then_some(SubresourceFacts { name, group, version, kind, verbs }))
    }

    fn set_storage(&self, versions: &mut [VersionFacts]) {
        for resource in versions.iter_mut().flat_map(|version| &mut version.resources) {
            if resource.verbs.contains(&"create") && resource.verbs.contains(&"get") {
                let (stored, _) = self.stored[&(resource.group, resource.plural)];
                let (group, version) = stored.rsplit_once('/').unwrap_or((resource.group, stored));
                let key = resource.strategy.key.unwrap_or(resource.plural);
                resource.storage = Some(StorageFacts { group, version, key });
            }
        }
    }
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
    let is_ahead = words.next() == Some("ahead");
    Some(VersionFacts { group, version, is_ahead, priority, resources: Vec::new() })
}

fn group_version(text: &'static str) -> (&'static str, &'static str) {
    text.rsplit_once('/').unwrap_or(("", text))
}

/// How many words of a resource say what it is: plural, kind, scope and since when. Others may follow.
const HEAD: usize = 4;

fn begin(of: &VersionFacts, line: &'static str) -> Option<ResourceFacts> {
    let mut words = line.split(' ');
    let (plural, kind, scope) = (words.next()?, words.next()?, words.next()?);
    Some(ResourceFacts {
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
        introduced: words.next()?.strip_prefix("since=")?.parse().ok()?,
        gone: None,
        deprecation: None,
        storage: None,
        strategy: Arc::default(),
    })
}

fn deprecation(releases: &str) -> Option<Deprecation> {
    let (since, removed) =
        releases.split_once('/').map_or((releases, None), |(since, removed)| (since, Some(removed)));
    let removed = removed.map(str::parse).transpose().ok()?;
    Some(Deprecation { since: since.parse().ok()?, removed, replacement: None })
}

fn list(names: &'static str) -> Vec<&'static str> {
    names.split(',').collect()
}

/// The table of strategies; `None` if it is not as it says it is.
pub(super) fn strategies(text: &'static str) -> Option<Strategies> {
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
        "long-name" => NameRule::LongName,
        "label" => NameRule::Label,
        "service" => NameRule::Service,
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
