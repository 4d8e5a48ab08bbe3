//! Which providers are for which resource.

use std::{collections::BTreeMap, sync::Arc};

use concord_meta::GroupResource;

use crate::{ConfigError, Configuration, Providers};

/// Every group, or every resource.
pub(crate) const ANY: &str = "*";

/// What a configuration means for each resource.
pub struct Encryption {
    /// Names and wildcards as the file has them.
    by_resource: BTreeMap<(String, String), Arc<Providers>>,
    /// For what the file does not name.
    others: Arc<Providers>,
}

impl Encryption {
    /// Nothing is encrypted.
    pub fn none() -> Self {
        Self { by_resource: BTreeMap::new(), others: Arc::new(Providers::identity()) }
    }

    /// What the configuration says.
    ///
    /// # Errors
    ///
    /// When one rule hides another, or needs something that is not there.
    pub fn new(configuration: &Configuration) -> Result<Self, ConfigError> {
        let mut by_resource: BTreeMap<(String, String), Providers> = BTreeMap::new();
        for rule in &configuration.rules {
            for name in &rule.resources {
                let GroupResource { group, resource } = parse(name);
                for earlier in [(group.clone(), ANY.to_owned()), (ANY.to_owned(), ANY.to_owned())] {
                    let same = earlier == (group.clone(), resource.clone());
                    if by_resource.contains_key(&earlier) && !same {
                        let rule = written(&earlier.0, &earlier.1);
                        return Err(ConfigError::Masked { resource: written(&group, &resource), rule });
                    }
                }
                let providers = Providers::new(rule.providers.iter().flatten())?;
                // What is said later about the same resource reads what was written before.
                by_resource.entry((group, resource)).or_default().append(providers);
            }
        }
        let by_resource = by_resource.into_iter().map(|(name, providers)| (name, Arc::new(providers)));
        Ok(Self { by_resource: by_resource.collect(), ..Self::none() })
    }

    /// What seals and opens the values of what is no resource, or one that nothing is said about.
    pub fn others(&self) -> &Arc<Providers> {
        &self.others
    }

    /// What seals and opens the values of a resource.
    pub fn of(&self, group: &str, resource: &str) -> &Arc<Providers> {
        let named = [(group, resource), (group, ANY), (ANY, ANY)];
        let find =
            |(group, resource): (&str, &str)| self.by_resource.get(&(group.to_owned(), resource.to_owned()));
        named.into_iter().find_map(find).unwrap_or(&self.others)
    }
}

/// As upstream reads `resource.group`.
pub(crate) fn parse(name: &str) -> GroupResource {
    let (resource, group) = name.split_once('.').unwrap_or((name, ""));
    GroupResource::new(group, resource)
}

/// As it stands in the file.
fn written(group: &str, resource: &str) -> String {
    match (group, resource) {
        ("", ANY) => "*.".to_owned(),
        ("", resource) => resource.to_owned(),
        (group, resource) => format!("{resource}.{group}"),
    }
}
