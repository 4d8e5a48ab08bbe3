//! From the catalog to resources.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
    time::Duration,
};

use concord_builtins::{
    Catalog, FeatureGates, GroupFacts, Release, ResourceFacts, SubresourceFacts, VersionFacts, protobuf,
    schema_in,
};
use concord_endpoints::{ApiGroup, ApiSet, ApiVersion, Columns, Endpoint, Origin};
use concord_meta::{GroupResource, GroupVersion, GroupVersionKind};
use concord_registry::{
    Backing, Deprecation, Resource, ResourceNames, Scaling, Storage, Subresource, SubresourceKind, Verb,
};
use concord_schema::Schema;
use concord_server::{AlwaysDeny, Authorizer};

use crate::{
    RuntimeConfig, Virtuals, conversion::BuiltinConverter, strategy::BuiltinStrategy, virtuals,
    virtuals::Needs,
};

/// What the operator decides about the built-in APIs.
#[derive(Clone)]
pub struct Settings {
    /// The release of Kubernetes whose APIs they are.
    pub release: Release,
    /// Which of them are served.
    pub runtime_config: RuntimeConfig,
    /// Which features they have.
    pub features: Arc<FeatureGates>,
    /// What all keys begin with, with a slash at the end.
    pub prefix: String,
    /// How long events are kept.
    pub event_ttl: Duration,
    /// Who may do what, for those who ask. By default nobody may do anything.
    pub authorizer: Arc<dyn Authorizer>,
    /// What other parts answer, such as requests for tokens.
    pub virtuals: Virtuals,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            release: Release::LATEST,
            runtime_config: RuntimeConfig::default(),
            features: Arc::new(FeatureGates::of(Release::LATEST)),
            prefix: "/registry/".to_owned(),
            event_ttl: Duration::from_secs(3600),
            authorizer: Arc::new(AlwaysDeny),
            virtuals: Virtuals::default(),
        }
    }
}

/// The built-in APIs that are turned on, ready to be served.
pub fn api_set(settings: &Settings) -> ApiSet {
    let needs = Needs {
        pods: Arc::new(OnceLock::new()),
        budgets: Arc::new(OnceLock::new()),
        features: settings.features.clone(),
        authorizer: settings.authorizer.clone(),
        others: settings.virtuals.clone(),
    };
    Assembly { settings, storages: HashMap::new(), needs }.set(Catalog::of(settings.release))
}

struct Assembly<'a> {
    settings: &'a Settings,
    /// By group and key: the versions of one resource have it in common. Events are in two groups, whose selectors name
    /// fields differently: each has its own view of the same keys.
    storages: HashMap<(&'static str, &'static str), Arc<Storage>>,
    needs: Needs,
}

impl Assembly<'_> {
    fn set(mut self, catalog: &'static Catalog) -> ApiSet {
        self.make_storages(catalog);
        let groups = catalog.groups().iter().filter_map(|group| self.group(group)).map(Arc::new);
        ApiSet::new(groups.collect::<Vec<_>>())
    }

    fn group(&self, group: &GroupFacts) -> Option<ApiGroup> {
        let versions: Vec<ApiVersion> =
            group.versions.iter().filter_map(|version| self.version(version)).collect();
        let priority = group.versions.iter().find_map(|version| version.priority);
        // The group that has no priority is the one that tells those of the others: it comes first.
        let priority = priority.and_then(|priority| i32::try_from(priority.group).ok()).unwrap_or(i32::MAX);
        (!versions.is_empty()).then(|| ApiGroup::new(group.name, priority, Origin::BuiltIn, versions))
    }

    fn version(&self, facts: &VersionFacts) -> Option<ApiVersion> {
        let version = GroupVersion::new(facts.group, facts.version);
        let enabled =
            facts.resources.iter().filter(|resource| self.settings.runtime_config.enables(facts, resource));
        let endpoints: Vec<Endpoint> = enabled.filter_map(|resource| self.endpoint(resource)).collect();
        (!endpoints.is_empty()).then(|| ApiVersion::new(version, endpoints))
    }

    fn endpoint(&self, facts: &ResourceFacts) -> Option<Endpoint> {
        let resource = Arc::new(self.resource(facts)?);
        let needed = match (facts.group, facts.version, facts.plural) {
            ("", "v1", "pods") => Some(&self.needs.pods),
            ("policy", "v1", "poddisruptionbudgets") => Some(&self.needs.budgets),
            _ => None,
        };
        if let Some(later) = needed {
            later.set(resource.clone()).ok();
        }
        let printer = concord_printers::printer(facts.group, facts.version, facts.kind);
        Some(Endpoint { columns: Columns::Fixed(printer), ..Endpoint::from(resource) })
    }

    fn resource(&self, facts: &ResourceFacts) -> Option<Resource> {
        let version = GroupVersion::new(facts.group, facts.version);
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names = ResourceNames {
            plural: facts.plural.to_owned(),
            singular: facts.singular.clone(),
            kind: facts.kind.to_owned(),
            list_kind: facts.list_kind(),
            short_names: owned(&facts.short_names),
            categories: owned(&facts.categories),
        };
        let backing = match facts.storage {
            Some(storage) => Backing::Stored(self.storages.get(&(facts.group, storage.key))?.clone()),
            None => {
                let schema = self.schema(facts.group, facts.version, facts.kind)?;
                Backing::Virtual(virtuals::of(facts.kind, schema, &self.needs))
            }
        };
        let mut resource = Resource::new(version, names, backing, verbs(&facts.verbs));
        resource.namespaced = facts.namespaced;
        resource.protobuf = Some(|kind| protobuf(&kind.group, &kind.version, &kind.kind));
        resource.subresources =
            facts.subresources.iter().filter_map(|subresource| self.subresource(subresource)).collect();
        resource.deprecation = deprecation(facts);
        resource.storage_version_hash = facts.storage_version_hash().unwrap_or_default();
        Some(resource)
    }

    fn subresource(&self, facts: &SubresourceFacts) -> Option<Subresource> {
        let behaviour = match facts.name {
            "scale" => SubresourceKind::Scale(self.scaling()?),
            "binding" | "eviction" | "token" => {
                let schema = self.schema(facts.group, facts.version, facts.kind)?;
                SubresourceKind::Virtual(virtuals::of(facts.kind, schema, &self.needs))
            }
            "attach" | "exec" | "log" | "portforward" | "proxy" => {
                SubresourceKind::Unreachable("this server has no nodes behind it")
            }
            _ => SubresourceKind::Part,
        };
        Some(Subresource {
            name: facts.name.to_owned(),
            kind: GroupVersionKind::new(facts.group, facts.version, facts.kind),
            verbs: verbs(&facts.verbs),
            behaviour,
        })
    }

    /// Also of versions that are not served: fields may be owned in them, and objects stored.
    fn make_storages(&mut self, catalog: &'static Catalog) {
        let mut by_key: BTreeMap<&'static str, Vec<&ResourceFacts>> = BTreeMap::new();
        for facts in catalog.versions().flat_map(|version| &version.resources) {
            if let Some(storage) = facts.storage {
                by_key.entry(storage.key).or_default().push(facts);
            }
        }
        for (key, all) in by_key {
            for group in all.chunk_by(|one, other| one.group == other.group) {
                if let Some(storage) = self.storage(group, &all) {
                    self.storages.insert((group[0].group, key), Arc::new(storage));
                }
            }
        }
    }

    /// The storage that the versions of a resource in one group share; `all` are those in all groups.
    fn storage(&self, versions: &[&ResourceFacts], all: &[&ResourceFacts]) -> Option<Storage> {
        let first = versions.first()?;
        let stored = first.storage?;
        // Upstream stores a few kinds in versions that no release serves any more; here they are stored as served.
        let (group, version) = match self.schema(stored.group, stored.version, first.kind) {
            Some(_) => (stored.group, stored.version),
            None => (first.group, first.version),
        };
        let stored_schema = self.schema(group, version, first.kind)?;
        let version = GroupVersion::new(group, version);
        let mut schemas = self.schemas(all)?;
        schemas.insert(version.to_string(), stored_schema.clone());
        let names: Vec<String> = schemas.keys().cloned().collect();
        // Selectors name the fields of the stored version.
        let of_stored =
            versions.iter().find(|facts| facts.group == group && facts.version == version.version);
        let facts = of_stored.unwrap_or(first);
        let strategy = BuiltinStrategy::new(facts, &stored_schema, &names, self.settings);
        Some(Storage {
            resource: GroupResource::new(facts.group, facts.plural),
            kind: facts.kind.to_owned(),
            encoding: version.clone(),
            version,
            namespaced: facts.namespaced,
            prefix: format!("{}{}/", self.settings.prefix, stored.key).into(),
            strategy: Arc::new(strategy),
            converter: Arc::new(BuiltinConverter { schemas }),
            // As for upstream, who owns fields of an object in another group is forgotten.
            forms: self
                .schemas(versions)?
                .into_iter()
                .map(|(version, schema)| (version, schema.into()))
                .collect(),
            formed_since: 0,
            lifetime: None,
        })
    }

    /// The fields that a kind has in the release.
    fn schema(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
        schema_in(self.settings.release, group, version, kind)
    }

    /// The fields of a kind in each of its versions, by `apiVersion`.
    fn schemas(&self, versions: &[&ResourceFacts]) -> Option<BTreeMap<String, Arc<Schema>>> {
        let schema = |facts: &&ResourceFacts| self.schema(facts.group, facts.version, facts.kind);
        versions.iter().map(|facts| Some((facts.api_version(), schema(facts)?))).collect()
    }

    /// Where the built-in kinds that can be scaled keep their replicas: all in the same places.
    fn scaling(&self) -> Option<Scaling> {
        let path = |names: [&str; 2]| names.map(ToOwned::to_owned).to_vec();
        Some(Scaling {
            spec_replicas: path(["spec", "replicas"]),
            status_replicas: path(["status", "replicas"]),
            selector: Some(path(["spec", "selector"])),
            schema: self.schema("autoscaling", "v1", "Scale")?,
        })
    }
}

fn deprecation(facts: &ResourceFacts) -> Option<Deprecation> {
    let removed = facts.deprecation.and_then(|deprecation| deprecation.removed);
    let removed_release = removed.map(|release| release.to_string()).unwrap_or_default();
    facts.deprecation_warning().map(|warning| Deprecation { warning, removed_release })
}

fn verbs(names: &[&str]) -> Vec<Verb> {
    let mut verbs: Vec<Verb> = names.iter().filter_map(|name| Verb::parse(name)).collect();
    verbs.sort();
    verbs
}

#[cfg(test)]
mod tests {
    use concord_registry::Resources as _;

    use super::*;

    #[test]
    fn nothing_of_the_catalog_is_left_out() {
        let everything = RuntimeConfig::parse(&["api/all=true"]).expect("good");
        for release in Release::all() {
            let settings = Settings { release, runtime_config: everything.clone(), ..Settings::default() };
            let set = api_set(&settings);
            let versions = Catalog::of(release).versions().filter(|version| !version.is_ahead);
            for facts in versions.flat_map(|version| &version.resources) {
                let version = GroupVersion::new(facts.group, facts.version);
                let resource = set.find(&version, facts.plural).expect(facts.plural);
                assert!(resource.schema().is_some(), "{version} {} has no schema", facts.plural);
                let made: Vec<&str> = resource.subresources.iter().map(|sub| sub.name.as_str()).collect();
                let listed: Vec<&str> = facts.subresources.iter().map(|sub| sub.name).collect();
                assert_eq!(made, listed, "{version} {}", facts.plural);
            }
        }
    }

    #[test]
    fn one_resource_of_a_version_can_be_turned_on() {
        let config = RuntimeConfig::parse(&["resource.k8s.io/v1beta2/deviceclasses=true"]).expect("good");
        let set = api_set(&Settings { runtime_config: config, ..Settings::default() });
        let version = GroupVersion::new("resource.k8s.io", "v1beta2");
        assert!(set.find(&version, "deviceclasses").is_some());
        assert!(set.find(&version, "resourceslices").is_none());
    }
}
