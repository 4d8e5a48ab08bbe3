use concord_registry::{Context, Object, Part, metadata, metadata_mut};

use super::Hooks;

pub(super) const HOOKS: Hooks = Hooks { update: Some(update), ..Hooks::NONE };

/// Its labels say which service a slice belongs to: a change of them is a new generation, too.
fn update(_: &Context, _: Part<'_>, new: &mut Object, old: &Object) {
    if metadata(new).labels() != metadata(old).labels() {
        let next = metadata(old).generation().saturating_add(1);
        metadata_mut(new).insert("generation".to_owned(), next.into());
    }
}
