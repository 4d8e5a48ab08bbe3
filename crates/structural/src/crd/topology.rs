//! Lists and maps as server-side apply takes them: `x-kubernetes-list-type` and its relatives.

use std::collections::BTreeSet;

use concord_meta::field::{BadValue, Error, Path};

use super::{internal, openapi::Walk, structural::typed_error};
use crate::props::{Items, Props};

impl Walk<'_> {
    pub(super) fn topology(&mut self, schema: Props<'_>, path: &Path) {
        let (kind, path_of_type) = (schema.kind(), path.child("type"));
        if schema.optional_flag("x-kubernetes-preserve-unknown-fields") == Some(false) {
            let path = path.child("x-kubernetes-preserve-unknown-fields");
            self.errors.push(Error::invalid(&path, false, "must be true or undefined"));
        }
        if let Some(map_type) = schema.optional_text("x-kubernetes-map-type") {
            if kind != "object" {
                let detail = "must be object if x-kubernetes-map-type is specified";
                self.errors.push(typed_error(&path_of_type, kind, detail));
            }
            if !["atomic", "granular"].contains(&map_type) {
                let path = path.child("x-kubernetes-map-type");
                self.errors.push(Error::not_supported(&path, map_type, &["atomic", "granular"]));
            }
        }
        let Some(list_type) = schema.optional_text("x-kubernetes-list-type") else { return };
        if kind != "array" {
            let detail = "must be array if x-kubernetes-list-type is specified";
            self.errors.push(typed_error(&path_of_type, kind, detail));
        } else if self.options.atomic_set_type && is_set_of_granular(schema) {
            let items = schema
                .item()
                .map_or((None, ""), |items| (items.optional_text("x-kubernetes-list-type"), items.kind()));
            let name = if items.1 == "array" { "x-kubernetes-list-type" } else { "x-kubernetes-map-type" };
            let shown = items.0.map_or(BadValue::verbatim("null"), BadValue::named);
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            self.errors.push(Error::invalid(&path.child("items").child(name), shown, detail));
        }
        if !["atomic", "set", "map"].contains(&list_type) {
            let path = path.child("x-kubernetes-list-type");
            self.errors.push(Error::not_supported(&path, list_type, &["atomic", "set", "map"]));
        }
    }

    pub(super) fn list_type(&mut self, schema: Props<'_>, path: &Path) {
        let list_type = schema.optional_text("x-kubernetes-list-type");
        let (type_path, keys_path) =
            (path.child("x-kubernetes-list-type"), path.child("x-kubernetes-list-map-keys"));
        if schema.has("x-kubernetes-list-map-keys") && list_type != Some("map") {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(match list_type {
                None => Error::required(&type_path, detail),
                Some(list_type) => Error::invalid(&type_path, list_type, detail),
            });
        }
        if list_type != Some("map") {
            return;
        }
        if !schema.has("x-kubernetes-list-map-keys") {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(Error::required(&keys_path, detail));
        }
        let path = path.child("items");
        match schema.items() {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                self.errors.push(Error::required(&path, detail));
            }
            Some(Items::Many(_)) => {
                let shown = BadValue::verbatim(internal::items(schema));
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                self.errors.push(Error::invalid(&path, shown, detail));
            }
            Some(Items::One(items)) if items.kind() != "object" => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                self.errors.push(Error::invalid(&path.child("type"), items.kind(), detail));
            }
            Some(Items::One(items)) => self.keys(schema, items, &path, &keys_path),
        }
    }

    fn keys(&mut self, schema: Props<'_>, items: Props<'_>, path: &Path, keys_path: &Path) {
        let keys: Vec<_> = schema.texts("x-kubernetes-list-map-keys").collect();
        let mut seen = BTreeSet::new();
        for key in &keys {
            match items.property(key) {
                None => {
                    let detail = "entries must all be names of item properties";
                    self.errors.push(Error::invalid(keys_path, BadValue::strings(&keys), detail));
                }
                Some(property) if matches!(property.kind(), "array" | "object") => {
                    let path = path.child("properties").key(key).child("type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.errors.push(Error::invalid(&path, items.kind(), detail));
                }
                Some(_) => {}
            }
            if !seen.insert(*key) {
                let detail = "must not contain duplicate entries";
                self.errors.push(Error::invalid(keys_path, BadValue::strings(&keys), detail));
            }
        }
    }
}

/// Whether a node is a set whose items have more than one owner.
pub(super) fn is_set_of_granular(schema: Props<'_>) -> bool {
    if schema.text("x-kubernetes-list-type") != "set" {
        return false;
    }
    schema.item().is_some_and(|items| match items.kind() {
        "array" => {
            items.optional_text("x-kubernetes-list-type").is_some_and(|list_type| list_type != "atomic")
        }
        "object" => items.optional_text("x-kubernetes-map-type") != Some("atomic"),
        _ => false,
    })
}

/// Whether the keys of a list map may be missing or null.
pub(super) fn has_bad_map_keys(schema: Props<'_>) -> bool {
    !map_key_errors(schema, &Path::nil()).is_empty()
}

pub(super) fn map_key_errors(schema: Props<'_>, path: &Path) -> Vec<Error> {
    let list_type = schema.text("x-kubernetes-list-type");
    let Some(items) = schema.item().filter(|_| matches!(list_type, "set" | "map")) else { return Vec::new() };
    let path = path.child("items");
    let mut errors = Vec::new();
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(Error::forbidden(&path.child("nullable"), detail));
    }
    if list_type == "set" {
        return errors;
    }
    for key in schema.texts("x-kubernetes-list-map-keys") {
        let Some(property) = items.property(key) else { continue };
        let path = path.child("properties").key(key);
        let is_required = items.texts("required").any(|name| name == key);
        if !is_required && property.value("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.push(Error::required(&path.child("default"), detail));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(Error::forbidden(&path.child("nullable"), detail));
        }
    }
    errors
}
