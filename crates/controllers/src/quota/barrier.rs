//! Why a quota holds for requests that were decided before there was one.
//!
//! Whatever uses something compares the revision of its namespace: creates do so anyhow, because of [`NamespaceLifecycle`],
//! and the few updates that can use more do it here. A quota that begins to limit something writes its namespace once more,
//! as it is. So a request that was decided without knowing the quota is decided again, on whichever server, and what the
//! quota was counted from misses nothing.
//!
//! [`NamespaceLifecycle`]: crate::NamespaceLifecycle

use std::sync::Arc;

use concord_registry::{Attributes, Guard, Object, ObjectName, Operation, Storage};
use concord_replica::Snapshot;
use concord_store::{Compare, Write};

use super::at;

/// The namespaces, as something that requests can meet at.
pub(super) struct Barrier {
    pub(super) namespaces: Arc<Storage>,
}

impl Barrier {
    /// For a request that may use more of something than before.
    pub(super) fn pass(&self, attributes: &Attributes<'_>, snapshot: &Snapshot, guard: &mut Guard) {
        if attributes.operation == Operation::Update {
            self.meet(attributes.namespace, snapshot, guard, false);
        }
    }

    /// For a request that makes a quota limit something else than before.
    pub(super) fn raise(&self, attributes: &Attributes<'_>, snapshot: &Snapshot, guard: &mut Guard) {
        self.meet(attributes.namespace, snapshot, guard, true);
    }

    fn meet(&self, namespace: &str, snapshot: &Snapshot, guard: &mut Guard, write: bool) {
        let key = self.namespaces.key(ObjectName { namespace: "", name: namespace });
        let Some(entry) = snapshot.get(&key) else { return };
        guard.compares.push(Compare::mod_revision(key.clone(), entry.mod_revision));
        if write {
            guard.writes.push(Write::Put { key, value: entry.value.clone(), ttl: None });
        }
    }
}

/// Whether a request makes a quota limit something else than before.
pub(super) fn limits_anew(attributes: &Attributes<'_>, quota: &Object) -> bool {
    let resource = attributes.resource.group_resource();
    let is_quota = resource.group.is_empty() && resource.resource == "resourcequotas";
    if !is_quota || !attributes.subresource.is_empty() {
        return false;
    }
    let spec = |quota: &Object| at(quota, &["spec"]).cloned();
    match attributes.operation {
        Operation::Create => true,
        Operation::Update => attributes.old.is_some_and(|old| spec(old) != spec(quota)),
        _ => false,
    }
}
