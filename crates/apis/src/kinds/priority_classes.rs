use concord_registry::{Context, Object, metadata_mut};

use super::Hooks;

pub(super) const HOOKS: Hooks =
    Hooks { create: Some(create), forbid_delete: Some(forbid_delete), ..Hooks::NONE };

/// A PriorityClass has a generation, but nobody counts its changes.
fn create(_: &Context, object: &mut Object) {
    metadata_mut(object).insert("generation".to_owned(), 1.into());
}

/// Pods that a cluster cannot do without rely on them. As upstream's, a collection is deleted with them.
fn forbid_delete(name: &str) -> Option<&'static str> {
    let own = ["system-node-critical", "system-cluster-critical"].contains(&name);
    own.then_some("this is a system priority class and cannot be deleted")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_classes_of_the_system_stay() {
        for (name, stays) in
            [("system-node-critical", true), ("system-cluster-critical", true), ("system", false)]
        {
            assert_eq!(super::forbid_delete(name).is_some(), stays, "{name}");
        }
    }
}
