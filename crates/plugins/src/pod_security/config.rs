//! What an administrator says about pods for all namespaces.

use std::collections::BTreeSet;

use concord_codec::{FieldTree, FieldValidation, Options, decode_yaml, strict_decoding_error};
use concord_meta::{field, names};
use concord_registry::Object;
use serde_json::{Map, Value};

use super::policy::{Level, LevelVersion, Policy, Version};

const GROUP: &str = "pod-security.admission.config.k8s.io";
const MODES: [&str; 3] = ["enforce", "warn", "audit"];
const EXEMPT: [&str; 3] = ["namespaces", "runtimeClasses", "usernames"];

/// Why a configuration cannot be used. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PodSecurityConfigError {
    /// It is no PodSecurityConfiguration.
    #[error("{0}")]
    Decode(String),
    /// Something in it is not as it should be.
    #[error("{}", field::aggregate(.0))]
    Invalid(Vec<field::Error>),
}

/// A `PodSecurityConfiguration`: what holds where the labels of a namespace say nothing, and what nothing holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSecurityConfig {
    pub(super) defaults: Policy,
    exempt: [BTreeSet<String>; 3],
}

impl Default for PodSecurityConfig {
    fn default() -> Self {
        Self { defaults: Policy::NONE, exempt: Default::default() }
    }
}

impl PodSecurityConfig {
    /// Reads YAML or JSON.
    ///
    /// # Errors
    ///
    /// [`PodSecurityConfigError`].
    pub fn read(text: &[u8]) -> Result<Self, PodSecurityConfigError> {
        let fields = fields();
        let options =
            Options { validation: FieldValidation::Strict, fields: Some(&fields), ..Options::default() };
        let refused = |error: String| PodSecurityConfigError::Decode(error);
        let decoded = decode_yaml(text, &options).map_err(|error| refused(error.to_string()))?;
        if !decoded.violations.is_empty() {
            return Err(refused(strict_decoding_error(&decoded.violations)));
        }
        let text = |name: &str| decoded.object.get(name).and_then(Value::as_str).unwrap_or_default();
        let versions = ["v1", "v1beta1", "v1alpha1"].map(|version| format!("{GROUP}/{version}"));
        if text("kind") != "PodSecurityConfiguration" || !versions.iter().any(|of| of == text("apiVersion")) {
            let what =
                format!("no kind {:?} is registered for version {:?}", text("kind"), text("apiVersion"));
            return Err(refused(what));
        }
        let mut reader = Reader { errors: Vec::new() };
        let of =
            |name: &str| decoded.object.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let (defaults, exemptions) = (of("defaults"), of("exemptions"));
        let [enforce, warn, audit] = MODES.map(|mode| reader.mode(&defaults, mode));
        let exempt = EXEMPT.map(|list| reader.list(&exemptions, list));
        match reader.errors.is_empty() {
            true => Ok(Self { defaults: Policy { enforce, audit, warn }, exempt }),
            false => Err(PodSecurityConfigError::Invalid(reader.errors)),
        }
    }

    pub(super) fn exempts_namespace(&self, name: &str) -> bool {
        self.exempt[0].contains(name)
    }

    /// Whether pods with this spec are exempt.
    pub(super) fn exempts_class(&self, spec: &Object) -> bool {
        let class = spec.get("runtimeClassName").and_then(Value::as_str);
        class.is_some_and(|class| self.exempt[1].contains(class))
    }

    pub(super) fn exempts_user(&self, name: &str) -> bool {
        self.exempt[2].contains(name)
    }

    /// What to say about labels that have no effect.
    pub(super) fn ignored(
        &self,
        namespace: &str,
        policy: &Policy,
        labels: Option<&Object>,
    ) -> Option<String> {
        if policy.is_privileged() || policy.is_equivalent(&self.defaults) {
            return None;
        }
        let is_set = |mode: &str| {
            let label = |suffix: &str| format!("{}{mode}{suffix}", super::PREFIX);
            ["", "-version"].iter().any(|suffix| labels.is_some_and(|all| all.contains_key(&label(suffix))))
        };
        let modes = [("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn)];
        let told = modes.iter().filter(|(mode, of)| of.level != Level::Privileged && is_set(mode));
        let told: Vec<String> = told.map(|(mode, of)| format!("{mode}={of}")).collect();
        Some(format!(
            "namespace \"{namespace}\" is exempt from Pod Security, and the policy ({}) will be ignored",
            told.join(", ")
        ))
    }
}

fn fields() -> FieldTree {
    let mode = |name: &str| [name.to_owned(), format!("{name}-version")];
    let defaults = MODES.iter().flat_map(|name| mode(name)).map(|name| (name, FieldTree::Opaque));
    let exemptions = EXEMPT.map(|name| (name, FieldTree::List(Box::new(FieldTree::Opaque))));
    FieldTree::object([
        ("kind", FieldTree::Opaque),
        ("apiVersion", FieldTree::Opaque),
        ("defaults", FieldTree::Object(defaults.collect())),
        ("exemptions", FieldTree::object(exemptions)),
    ])
}

/// Reads parts, and remembers what was wrong.
struct Reader {
    errors: Vec<field::Error>,
}

impl Reader {
    fn mode(&mut self, defaults: &Map<String, Value>, mode: &str) -> LevelVersion {
        let text = |name: &str| defaults.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let path = |name: &str| field::Path::new("defaults").child(name);
        let version_name = format!("{mode}-version");
        let (level, version) = (text(mode).unwrap_or("privileged"), text(&version_name).unwrap_or("latest"));
        let (parsed, of) = (Level::parse(level), Version::parse(version));
        if parsed.is_none() {
            self.errors.push(field::Error::invalid(&path(mode), level, Level::EXPECTED));
        }
        if of.is_none() {
            self.errors.push(field::Error::invalid(&path(&version_name), version, Version::EXPECTED));
        }
        LevelVersion { level: parsed.unwrap_or(Level::Restricted), version: of.unwrap_or(Version::Latest) }
    }

    fn list(&mut self, exemptions: &Map<String, Value>, list: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let items = exemptions.get(list).and_then(Value::as_array).into_iter().flatten();
        for (at, item) in items.enumerate() {
            let item = item.as_str().unwrap_or_default();
            let wrong = match list {
                "namespaces" => names::dns1123_label(item),
                "runtimeClasses" => names::dns1123_subdomain(item),
                _ if item.is_empty() => vec!["username must not be empty".to_owned()],
                _ => Vec::new(),
            };
            let path = field::Path::new("exemptions").child(list).index(at);
            if !wrong.is_empty() {
                self.errors.push(field::Error::invalid(&path, item, wrong.join(", ")));
            } else if !found.insert(item.to_owned()) {
                self.errors.push(field::Error::duplicate(&path, item));
            }
        }
        found
    }
}
