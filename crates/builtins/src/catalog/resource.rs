//! What discovery tells of a resource, and where it is stored.

use std::sync::Arc;

use super::{Release, api_version, hash::storage_version_hash, strategy::StrategyFacts};

/// A resource in one version.
#[derive(Debug)]
pub struct ResourceFacts {
    /// The group's name; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The name in paths, such as `pods`.
    pub plural: &'static str,
    /// The name of one, such as `pod`.
    pub singular: String,
    /// The kind of its objects.
    pub kind: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// What may be done with it, in the order of the alphabet.
    pub verbs: Vec<&'static str>,
    /// What users may call it.
    pub short_names: Vec<&'static str>,
    /// The groups of resources that users may ask for together, such as `all`.
    pub categories: Vec<&'static str>,
    /// Its subresources, by name.
    pub subresources: Vec<SubresourceFacts>,
    /// The release that introduced it.
    pub introduced: Release,
    /// The first release that does not serve it.
    pub gone: Option<Release>,
    /// Whether the release deprecates it.
    pub deprecation: Option<Deprecation>,
    /// Where its objects are kept. Resources whose objects are only answers have none.
    pub storage: Option<StorageFacts>,
    /// How it behaves. All versions of a resource share it, except for the fields of selectors.
    pub strategy: Arc<StrategyFacts>,
}

/// A part of a resource with an endpoint of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct SubresourceFacts {
    /// Its name, such as `status`.
    pub name: &'static str,
    /// The group of the kind.
    pub group: &'static str,
    /// The version of the kind.
    pub version: &'static str,
    /// The kind that is read and written there.
    pub kind: &'static str,
    /// What may be done with it.
    pub verbs: Vec<&'static str>,
}

/// Where the objects of a resource are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageFacts {
    /// The group they are stored as.
    pub group: &'static str,
    /// The version upstream stores them as. The same kind as is served, also where the group is another one.
    pub version: &'static str,
    /// What their keys begin with after `/registry/`, without a slash at the end.
    pub key: &'static str,
}

/// A resource that will go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// The release that deprecated it.
    pub since: Release,
    /// The release that will not serve it, as announced.
    pub removed: Option<Release>,
    /// Group, version and kind of what to use instead, with slashes between them.
    pub replacement: Option<&'static str>,
}

impl ResourceFacts {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }

    /// The kind of its lists.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// A subresource by its name.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceFacts> {
        self.subresources.iter().find(|facts| facts.name == name)
    }

    /// Whether the status is written at an endpoint of its own. Writes to the resource itself leave it alone
    /// then, and it is empty in the beginning: see [`StrategyFacts::status_on_create`].
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The hash of the stored version that discovery tells.
    pub fn storage_version_hash(&self) -> Option<String> {
        self.storage.map(|storage| storage_version_hash(storage.group, storage.version, self.kind))
    }

    /// The warning that every answer carries, if the resource is deprecated.
    pub fn deprecation_warning(&self) -> Option<String> {
        let Deprecation { since, removed, replacement } = self.deprecation?;
        let mut text = format!("{} {} is deprecated in v{since}+", self.api_version(), self.kind);
        if let Some(removed) = removed {
            text += &format!(", unavailable in v{removed}+");
        }
        if let Some((api_version, kind)) = replacement.and_then(|replacement| replacement.rsplit_once('/')) {
            text += &format!("; use {api_version} {kind}");
        }
        Some(text)
    }

    /// The fields, as paths with dots, that a write to the resource or one of its subresources leaves as they
    /// are. Who writes them does not own them.
    pub fn reset_fields(&self, subresource: Option<&str>) -> Vec<&'static str> {
        let strategy = &self.strategy;
        match subresource {
            Some("scale") => Vec::new(),
            Some("status") if strategy.status_reset.is_empty() => vec!["spec"],
            Some("status") => strategy.status_reset.clone(),
            Some("approval") => strategy.approval_reset.clone(),
            _ => self.has_status().then_some("status").into_iter().chain(strategy.reset.clone()).collect(),
        }
    }

    /// How a field selector with an unknown field is refused.
    pub fn unsupported_field(&self, field: &str) -> String {
        let strategy = &self.strategy;
        let template = match strategy.unsupported_field {
            Some(template) => template,
            None if strategy.fields.is_empty() => {
                return format!(
                    "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                );
            }
            None => "field_label_not_supported:_{}",
        };
        let kind = format!("{}, Kind={}", self.api_version(), self.kind);
        template.replace('_', " ").replace("{gvk}", &kind).replace("{}", field)
    }
}
