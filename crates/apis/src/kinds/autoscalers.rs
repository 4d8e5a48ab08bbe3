use super::Hooks;

/// What upstream's reading makes of it: the metric that v1 means if it names none, and no annotation that keeps the
/// fields of another version, unless it can be read.
pub(super) const HOOKS: Hooks = Hooks { default: Some(concord_conversion::settle), ..Hooks::NONE };
