use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use concord_codec::{FieldValidation, PatchType, encode};
use concord_meta::{Status, labels::Selector};
use concord_registry::{ObjectName, Part, PatchRequest, Registry, Resource, Resources};
use concord_replica::{Closed, Error as ReplicaError, Scope};
use serde_json::json;

use crate::{
    ClusterRole, Policy, PolicyRule, Rbac,
    own::{Backoff, context, served},
};

/// Who owns the rules of an aggregated role, as upstream's controller.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Gives aggregated cluster roles the rules of all that they select, whenever a cluster role changes.
///
/// Upstream runs this in kube-controller-manager. Any number of both may run at once: all apply the same rules.
pub struct Aggregation {
    registry: Arc<Registry>,
    resources: Arc<dyn Resources>,
    rbac: Rbac,
}

impl Aggregation {
    /// Does nothing until it runs.
    pub fn new(registry: Arc<Registry>, resources: Arc<dyn Resources>, rbac: Rbac) -> Self {
        Self { registry, resources, rbac }
    }

    /// Goes on until the replica ends.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what is missing is found again.
    pub async fn run(self) {
        let mut backoff = Backoff::new();
        while let Some(resource) = served(self.resources.as_ref(), "clusterroles") {
            let Some(storage) = resource.storage() else { return };
            match self.follow(&resource, storage.prefix.clone()).await {
                Ok(Closed::Shutdown | Closed::Failed)
                | Err(Failed::Replica(ReplicaError::Shutdown | ReplicaError::Failed { .. })) => return,
                Ok(_) => backoff = Backoff::new(),
                Err(Failed::Replica(_)) => {}
                Err(Failed::Apply(error)) => {
                    tracing::warn!(%error, "The rules of an aggregated role could not be written.");
                }
            }
            backoff.pause().await;
        }
    }

    /// Brings everything up to date, and again after each change.
    async fn follow(&self, resource: &Resource, prefix: Bytes) -> Result<Closed, Failed> {
        let (_, mut changes) = self.registry.replica().snapshot_and_subscribe(Scope::prefix(prefix))?;
        loop {
            // The policy has all that the subscription has told of, and more: what it has too much comes again.
            let policy = self.rbac.policy();
            for (name, rules) in outdated(&policy) {
                self.apply(resource, name, &rules).await?;
            }
            if let Err(closed) = changes.next().await {
                return Ok(closed);
            }
        }
    }

    async fn apply(&self, resource: &Resource, name: &str, rules: &[PolicyRule]) -> Result<(), Failed> {
        let kind = resource.kind();
        let mut wanted = json!({
            "kind": kind.kind,
            "apiVersion": kind.group_version().to_string(),
            "metadata": {"name": name},
        });
        // Without any, what was applied before goes away, and what a user wrote stays; as upstream has it.
        if !rules.is_empty() {
            wanted["rules"] = json!(rules);
        }
        let body = encode(&wanted);
        let request = PatchRequest {
            name: ObjectName { namespace: "", name },
            part: Part::Main,
            patch_type: PatchType::Apply,
            body: &body,
            force: true,
            validation: FieldValidation::Ignore,
        };
        let applied = Box::pin(self.registry.patch(&context(MANAGER), resource, request)).await;
        applied.map(drop).map_err(Failed::Apply)
    }
}

/// Why a round came to its end.
enum Failed {
    Replica(ReplicaError),
    Apply(Status),
}

impl From<ReplicaError> for Failed {
    fn from(error: ReplicaError) -> Self {
        Self::Replica(error)
    }
}

/// The aggregated roles whose rules are not those that they should be, with what these are.
fn outdated(policy: &Policy) -> Vec<(&str, Vec<PolicyRule>)> {
    let roles = policy.cluster_roles();
    let aggregated =
        roles.iter().filter_map(|(name, role)| Some((*name, role, rules_of(name, role, &roles)?)));
    let outdated = aggregated.filter(|(_, role, rules)| role.rules != *rules);
    outdated.map(|(name, _, rules)| (name, rules)).collect()
}

/// The rules of all roles that this one selects, each once: selector by selector, by name. None if the role is not
/// aggregated, or if it selects in a way that makes no sense: then it keeps what it has.
fn rules_of(
    name: &str,
    role: &ClusterRole,
    roles: &BTreeMap<&str, &Arc<ClusterRole>>,
) -> Option<Vec<PolicyRule>> {
    let selectors = role.aggregates.as_ref()?.iter().map(|selector| selector.to_selector());
    let selectors: Vec<Selector> = selectors.collect::<Result<_, _>>().ok()?;
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in &selectors {
        let selected = roles.iter().filter(|(other, role)| **other != name && selector.matches(&role.labels));
        for rule in selected.flat_map(|(_, role)| &role.rules) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests;
