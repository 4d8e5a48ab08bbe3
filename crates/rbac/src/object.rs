//! The four kinds, as they are stored.

use std::{collections::BTreeMap, sync::Arc};

use concord_meta::{go::quote, labels::LabelSelector};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{PolicyRule, rule::list};

/// The group of all four kinds.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

/// A ClusterRole; a Role is one without labels and aggregation, which only matter for cluster roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterRole {
    /// The name.
    pub name: Arc<str>,
    /// The labels, by which other roles aggregate it.
    pub labels: BTreeMap<String, String>,
    /// What it allows.
    pub rules: Vec<PolicyRule>,
    /// The roles whose rules make up its own; none if it is not aggregated.
    pub aggregates: Option<Vec<LabelSelector>>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name.
    pub name: Arc<str>,
    /// The namespace in which the role is granted; empty for everywhere.
    pub namespace: Arc<str>,
    /// What is granted.
    pub role: RoleRef,
    /// To whom.
    pub subjects: Vec<Subject>,
}

/// The role that a binding grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRef {
    /// The group of the kind.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// To whom a role is granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// The group of the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The name.
    pub name: String,
    /// The namespace of a service account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

#[derive(Deserialize)]
struct StoredRole {
    metadata: Metadata,
    #[serde(default, deserialize_with = "list")]
    rules: Vec<PolicyRule>,
    #[serde(default, rename = "aggregationRule")]
    aggregation_rule: Option<AggregationRule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregationRule {
    #[serde(default, deserialize_with = "list")]
    cluster_role_selectors: Vec<LabelSelector>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredBinding {
    metadata: Metadata,
    #[serde(default)]
    role_ref: RoleRef,
    #[serde(default, deserialize_with = "list")]
    subjects: Vec<Subject>,
}

impl ClusterRole {
    /// Reads a stored Role or ClusterRole.
    pub(crate) fn read(stored: &[u8]) -> Option<Self> {
        let StoredRole { metadata, rules, aggregation_rule } = read(stored)?;
        Some(Self {
            name: metadata.name.into(),
            labels: metadata.labels.unwrap_or_default(),
            rules,
            aggregates: aggregation_rule.map(|rule| rule.cluster_role_selectors),
        })
    }
}

impl Binding {
    /// Reads a stored RoleBinding or ClusterRoleBinding.
    pub(crate) fn read(stored: &[u8]) -> Option<Self> {
        let StoredBinding { metadata, role_ref, subjects } = read(stored)?;
        let Metadata { name, namespace, .. } = metadata;
        Some(Self { name: name.into(), namespace: namespace.into(), role: role_ref, subjects })
    }

    /// What a decision that rests on this binding says for a reason.
    pub(crate) fn describe(&self, subject: usize) -> String {
        let subject =
            self.subjects.get(subject).map(|subject| subject.describe(&self.namespace)).unwrap_or_default();
        let (kind, name) = match &*self.namespace {
            "" => ("ClusterRoleBinding", quote(&self.name)),
            namespace => ("RoleBinding", quote(&format!("{}/{namespace}", self.name))),
        };
        format!("{kind} {name} of {} {} to {subject}", self.role.kind, quote(&self.role.name))
    }
}

impl Subject {
    fn describe(&self, namespace: &str) -> String {
        match (self.kind.as_str(), self.namespace.as_str()) {
            ("ServiceAccount", "") => {
                format!("ServiceAccount {}", quote(&format!("{}/{namespace}", self.name)))
            }
            ("ServiceAccount", own) => format!("ServiceAccount {}", quote(&format!("{}/{own}", self.name))),
            (kind, _) => format!("{kind} {}", quote(&self.name)),
        }
    }
}

/// What is stored was written by a server of ours, or by upstream's: whatever cannot be read grants nothing.
fn read<T: DeserializeOwned>(stored: &[u8]) -> Option<T> {
    match serde_json::from_slice(stored) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::error!(%error, "A stored role or binding cannot be read; it grants nothing.");
            None
        }
    }
}
