use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use concord_replica::{Event, Snapshot, View};
use concord_store::{KeyRange, Revision};

use crate::{Binding, ClusterRole, Policy, policy::place};

/// Keeps a [`Policy`] of what is stored, fed by the replica.
///
/// When the replica shows a revision to anybody, the policy has it: readers of [`RulesView::policy`] never see rules older
/// than the objects that they read.
pub struct RulesView {
    prefixes: [Bytes; 4],
    policy: Policy,
    published: Arc<ArcSwap<Policy>>,
}

/// The kinds, in the order of the prefixes.
#[derive(Clone, Copy)]
enum Kind {
    ClusterRole,
    ClusterRoleBinding,
    Role,
    RoleBinding,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::ClusterRole, "clusterroles"),
    (Kind::ClusterRoleBinding, "clusterrolebindings"),
    (Kind::Role, "roles"),
    (Kind::RoleBinding, "rolebindings"),
];

/// Where the four kinds are stored, below what all keys begin with.
pub(crate) fn prefixes(prefix: &str) -> [Bytes; 4] {
    KINDS.map(|(_, plural)| format!("{prefix}{plural}/").into())
}

impl RulesView {
    /// A view of what is stored under keys that begin with `prefix`, such as `/registry/`; empty until it is fed.
    pub fn new(prefix: &str) -> Self {
        Self { prefixes: prefixes(prefix), policy: Policy::default(), published: Arc::default() }
    }

    /// Where the newest policy is.
    pub fn policy(&self) -> Arc<ArcSwap<Policy>> {
        self.published.clone()
    }

    /// Takes over what is stored at a key; `None` if nothing is.
    fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        let found = self.prefixes.iter().zip(KINDS).find_map(|(prefix, (kind, _))| {
            let rest = std::str::from_utf8(key.strip_prefix(prefix.as_ref())?).ok()?;
            Some((kind, rest))
        });
        let Some((kind, rest)) = found else { return };
        // The place says where an object is; what stands in its metadata says the same, and is not asked.
        let (namespace, name) = match kind {
            Kind::ClusterRole | Kind::ClusterRoleBinding => ("", rest),
            Kind::Role | Kind::RoleBinding => match rest.split_once('/') {
                Some((namespace, name)) if !namespace.is_empty() => (namespace, name),
                _ => return,
            },
        };
        let place = place(namespace, name);
        match kind {
            Kind::ClusterRole | Kind::Role => self.policy.set_role(place, value.and_then(ClusterRole::read)),
            Kind::ClusterRoleBinding | Kind::RoleBinding => {
                let binding = value.and_then(Binding::read);
                let binding = binding.map(|binding| Binding { namespace: namespace.into(), ..binding });
                self.policy.set_binding(&place, binding);
            }
        }
    }

    fn publish(&mut self, revision: Revision) {
        self.policy.set_revision(revision);
        self.published.store(Arc::new(self.policy.clone()));
    }
}

impl View for RulesView {
    fn name(&self) -> &str {
        "rbac"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        self.prefixes.to_vec()
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        self.policy = Policy::default();
        for prefix in self.prefixes.clone() {
            for entry in snapshot.scan(&KeyRange::prefix(prefix)) {
                self.set(&entry.key, Some(&entry.value));
            }
        }
        self.publish(snapshot.revision());
    }

    fn apply(&mut self, revision: Revision, events: &[Event]) {
        for event in events {
            self.set(event.key(), event.current().map(|entry| entry.value.as_ref()));
        }
        self.publish(revision);
    }
}

#[cfg(test)]
mod tests;
