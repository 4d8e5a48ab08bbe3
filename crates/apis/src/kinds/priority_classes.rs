use concord_registry::{Context, Object, metadata_mut};

use super::Hooks;

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), ..Hooks::NONE };

/// A PriorityClass has a generation, but nobody counts its changes.
fn create(_: &Context, object: &mut Object) {
    metadata_mut(object).insert("generation".to_owned(), 1.into());
}
