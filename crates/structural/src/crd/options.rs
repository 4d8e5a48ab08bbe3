//! Which rules a definition is held to.

use std::{collections::HashSet, sync::Arc};

use super::{
    MAX_SELECTABLE_FIELDS, conversion, defaults, openapi,
    spec::{Spec, Version},
    structural, topology,
};
use crate::{props::Props, schema::Schema};

/// Rules that an update is held to only if the stored definition keeps them, and what it may keep doing wrong.
#[derive(Clone)]
pub(super) struct Options<'a> {
    pub(super) recognized_review_version: bool,
    pub(super) immutable_names: bool,
    pub(super) open_api_schema: bool,
    pub(super) valid_property_type: bool,
    pub(super) structural_schema: bool,
    pub(super) pruned_defaults: bool,
    pub(super) atomic_set_type: bool,
    pub(super) map_list_keys: bool,
    pub(super) invalid_ca_bundle: bool,
    /// The versions that may have more selectable fields than are allowed; the empty name is all versions.
    pub(super) too_many_selectable: HashSet<&'a str>,
    /// Whether expressions may cost more than is allowed.
    pub(super) any_expression_cost: bool,
    /// The versions whose schema did not change.
    unchanged: HashSet<&'a str>,
    pub(super) stored: Arc<StoredExpressions>,
}

/// The expressions of the stored definition: they are compiled with everything the server knows, new ones only with
/// what the release before knows too.
#[derive(Debug, Default)]
pub(super) struct StoredExpressions {
    pub(super) rules: HashSet<String>,
    pub(super) messages: HashSet<String>,
}

impl<'a> Options<'a> {
    pub(super) fn for_create() -> Self {
        Self {
            recognized_review_version: true,
            immutable_names: false,
            open_api_schema: true,
            valid_property_type: true,
            structural_schema: true,
            pruned_defaults: true,
            atomic_set_type: true,
            map_list_keys: true,
            invalid_ca_bundle: true,
            too_many_selectable: HashSet::new(),
            any_expression_cost: false,
            unchanged: HashSet::new(),
            stored: Arc::default(),
        }
    }

    pub(super) fn for_update(spec: &Spec<'a>, old: &Spec<'a>, is_established: bool) -> Self {
        Self {
            recognized_review_version: conversion::has_good_review_versions(old.conversion()),
            immutable_names: is_established,
            open_api_schema: has_all_schemas(old),
            valid_property_type: !old.any_schema(openapi::has_invalid_type),
            structural_schema: old.schemas().all(is_structural),
            pruned_defaults: old.schemas().all(defaults::are_pruned),
            atomic_set_type: !old.any_schema(topology::is_set_of_granular),
            map_list_keys: !old.any_schema(topology::has_bad_map_keys),
            invalid_ca_bundle: !is_established || has_invalid_ca_bundle(old.conversion()),
            too_many_selectable: too_many_selectable(spec, old),
            any_expression_cost: false,
            unchanged: unchanged(spec, old),
            stored: Arc::new(stored_expressions(old)),
        }
    }

    /// The options for the schema of a version: what did not change may go on costing too much.
    pub(super) fn for_version(&self, version: &str) -> Self {
        let mut options = self.clone();
        options.any_expression_cost |= self.unchanged.contains(version);
        options
    }
}

fn has_all_schemas(spec: &Spec<'_>) -> bool {
    spec.common.open_api_schema().is_some()
        || spec.versions.iter().all(|version| version.parts.open_api_schema().is_some())
}

fn is_structural(schema: Props<'_>) -> bool {
    Schema::of(schema).is_ok() && structural::validate(schema, &concord_meta::field::Path::nil()).is_empty()
}

pub(super) fn has_invalid_ca_bundle(conversion: Option<Props<'_>>) -> bool {
    let config = conversion.and_then(|conversion| conversion.schema("webhook")?.schema("clientConfig"));
    let bundle = config.map_or("", |config| config.text("caBundle"));
    !bundle.is_empty() && !conversion::is_ca_bundle(bundle)
}

fn too_many_selectable<'a>(spec: &Spec<'a>, old: &Spec<'a>) -> HashSet<&'a str> {
    let many = |fields: Option<&[serde_json::Value]>| {
        fields.is_some_and(|fields| fields.len() > MAX_SELECTABLE_FIELDS)
    };
    let mut allowed = HashSet::new();
    if many(old.common.selectable) && old.common.selectable == spec.common.selectable {
        allowed.insert("");
    }
    for (version, old) in pairs(spec, old) {
        if many(old.parts.selectable) && old.parts.selectable == version.parts.selectable {
            allowed.insert(version.props.text("name"));
        }
    }
    allowed
}

fn unchanged<'a>(spec: &Spec<'a>, old: &Spec<'a>) -> HashSet<&'a str> {
    let same = pairs(spec, old).filter(|(version, before)| spec.schema_of(version) == old.schema_of(before));
    same.map(|(version, _)| version.props.text("name")).collect()
}

/// The versions that both specs have.
fn pairs<'s, 'a>(
    spec: &'s Spec<'a>,
    old: &'s Spec<'a>,
) -> impl Iterator<Item = (&'s Version<'a>, &'s Version<'a>)> {
    spec.versions.iter().filter_map(|version| {
        let name = version.props.text("name");
        let before = old.versions.iter().find(|before| before.props.text("name") == name)?;
        Some((version, before))
    })
}

fn stored_expressions(old: &Spec<'_>) -> StoredExpressions {
    let stored = std::cell::RefCell::new(StoredExpressions::default());
    old.any_schema(|props| {
        let mut stored = stored.borrow_mut();
        for rule in props.schemas("x-kubernetes-validations") {
            stored.rules.insert(rule.text("rule").to_owned());
            let message = rule.text("messageExpression");
            if !message.is_empty() {
                stored.messages.insert(message.to_owned());
            }
        }
        false
    });
    stored.into_inner()
}
