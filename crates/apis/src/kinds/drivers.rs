use concord_registry::{Context, Object, Part, metadata, metadata_mut};

use super::Hooks;

pub(super) const HOOKS: Hooks = Hooks { update: Some(update), ..Hooks::NONE };

/// A CSIDriver has no generation until it changes for the first time.
fn update(_: &Context, _: Part<'_>, new: &mut Object, old: &Object) {
    if new.get("spec") != old.get("spec") {
        let next = metadata(old).generation().saturating_add(1);
        metadata_mut(new).insert("generation".to_owned(), next.into());
    }
}
