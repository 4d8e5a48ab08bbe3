//! Which providers are for which resource.

use std::{collections::BTreeMap, sync::Arc};

use concord_meta::GroupResource;

use crate::{ConfigError, Configuration, Envelope, Kms, Providers};

/// Every group, or every resource.
pub(crate) const ANY: &str = "*";

/// What a configuration means for each resource.
pub struct Encryption {
    /// Names and wildcards as the file has them.
    by_resource: BTreeMap<(String, String), Arc<Providers>>,
    /// For what the file does not name.
    others: Arc<Providers>,
    /// The key management services, by their names.
    services: Services,
}

pub(crate) type Services = BTreeMap<String, Arc<Envelope>>;

impl Encryption {
    /// Nothing is encrypted.
    pub fn none() -> Self {
        Self {
            by_resource: BTreeMap::new(),
            others: Arc::new(Providers::identity()),
            services: Services::new(),
        }
    }

    /// What the configuration says.
    ///
    /// # Errors
    ///
    /// When one rule hides another, or needs something that is not there.
    pub fn new(configuration: &Configuration) -> Result<Self, ConfigError> {
        Self::after(configuration, &Self::none())
    }

    /// What the configuration says, after another one: what key management services have said is still known.
    ///
    /// # Errors
    ///
    /// When one rule hides another, or needs something that is not there.
    pub fn after(configuration: &Configuration, before: &Self) -> Result<Self, ConfigError> {
        let mut services = Services::new();
        let mut by_resource: BTreeMap<(String, String), Providers> = BTreeMap::new();
        let mut service = |kms: &Kms| {
            let same = before.services.get(&kms.name).filter(|known| known.service == *kms);
            let new = || same.cloned().unwrap_or_else(|| Arc::new(Envelope::new(kms.clone())));
            services.entry(kms.name.clone()).or_insert_with(new).clone()
        };
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
                let providers = Providers::new(rule.providers.iter().flatten(), &mut service)?;
                // What is said later about the same resource reads what was written before.
                by_resource.entry((group, resource)).or_default().append(providers);
            }
        }
        let by_resource = by_resource.into_iter().map(|(name, providers)| (name, Arc::new(providers)));
        Ok(Self { by_resource: by_resource.collect(), services, ..Self::none() })
    }

    /// The key management services that it needs.
    pub fn services(&self) -> impl Iterator<Item = &Arc<Envelope>> {
        self.services.values()
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
