//! The rules about one version, and about what is the same in all of them.

use std::collections::BTreeSet;

use concord_meta::{
    field::{BadValue, Error, Path},
    go, names as rules,
};
use serde_json::Value;

use super::{
    CelCompiler, MAX_SELECTABLE_FIELDS, Options, field_path, openapi,
    spec::{Parts, Spec, Version},
};
use crate::{
    props::Props,
    schema::{Kind, Schema},
};

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub(super) fn validate(
    spec: &Spec<'_>,
    version: &Version<'_>,
    path: &Path,
    options: &Options<'_>,
    cel: &dyn CelCompiler,
) -> Vec<Error> {
    let name = version.props.text("name");
    let mut errors = Vec::new();
    let problems = rules::dns1035_label(name);
    if !problems.is_empty() {
        errors.push(Error::invalid(&path.child("name"), name, problems.join(",")));
    }
    errors.extend(deprecation(version.props, path));
    let per_version = spec.versions.iter().any(|version| version.parts.subresources.is_some());
    let parts = if per_version { &version.parts } else { &spec.common };
    let own = options.for_version(name);
    errors.extend(openapi::validate(
        version.parts.schema,
        parts.has_status(),
        &own,
        &path.child("schema"),
        cel,
    ));
    errors.extend(subresources(version.parts.subresources, &path.child("subresources")));
    errors.extend(columns(&version.parts, path));
    errors.extend(own_selectable(version, path, options));
    errors
}

fn own_selectable(version: &Version<'_>, path: &Path, options: &Options<'_>) -> Vec<Error> {
    let Some(fields) = version.parts.selectable.filter(|fields| !fields.is_empty()) else {
        return Vec::new();
    };
    let selectable_path = path.child("selectableFields");
    let Some(schema) = version.parts.open_api_schema() else {
        let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
        return vec![Error::invalid(&selectable_path, "", detail)];
    };
    selectable(fields, schema, &selectable_path, options, version.props.text("name"))
}

fn deprecation(version: Props<'_>, path: &Path) -> Vec<Error> {
    let Some(warning) = version.optional_text("deprecationWarning") else { return Vec::new() };
    let mut problems = Vec::new();
    if version.flag("deprecated") {
        if warning.len() > 256 {
            problems.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            problems.push("must not be an empty string".to_owned());
        }
        let bad = warning.char_indices().find(|(_, c)| !go::is_print(*c));
        problems.extend(bad.map(|(at, _)| {
            format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            )
        }));
    } else {
        problems.push("can only be set for deprecated versions".to_owned());
    }
    let path = path.child("deprecationWarning");
    problems.into_iter().map(|problem| Error::invalid(&path, BadValue::named(warning), problem)).collect()
}

/// What is wrong with the subresources at `path`.
pub(super) fn subresources(subresources: Option<Props<'_>>, path: &Path) -> Vec<Error> {
    let Some(scale) = subresources.and_then(|subresources| subresources.schema("scale")) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for (name, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let (text, path) = (scale.text(name), path.child(&format!("scale.{name}")));
        if text.is_empty() {
            errors.push(Error::required(&path, ""));
        } else if let Some(error) = simple_path(text, &path) {
            errors.push(error);
        } else if !text.starts_with(root) {
            let detail = format!("should be a json path under {}", root.trim_end_matches('.'));
            errors.push(Error::invalid(&path, text, detail));
        }
    }
    let text = scale.text("labelSelectorPath");
    if !text.is_empty() {
        let path = path.child("scale.labelSelectorPath");
        let inside = text.starts_with(".spec.") || text.starts_with(".status.");
        let detail = "should be a json path under either .spec or .status";
        let outside = || (!inside).then(|| Error::invalid(&path, BadValue::named(text), detail));
        errors.extend(simple_path(text, &path).or_else(outside));
    }
    errors
}

fn simple_path(text: &str, path: &Path) -> Option<Error> {
    let detail = "must be a simple json path starting with .";
    (!text.starts_with('.')).then(|| Error::invalid(path, text, detail))
}

/// What is wrong with the printer columns below `path`.
pub(super) fn columns(parts: &Parts<'_>, path: &Path) -> Vec<Error> {
    let path = path.child("additionalPrinterColumns");
    let columns = parts.columns.unwrap_or_default().iter().filter_map(Props::of).enumerate();
    columns.flat_map(|(index, column)| column_errors(column, &path.index(index))).collect()
}

fn column_errors(column: Props<'_>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    if column.text("name").is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    match column.kind() {
        "" => errors.push(Error::required(&path.child("type"), types)),
        kind if !COLUMN_TYPES.contains(&kind) => {
            errors.push(Error::invalid(&path.child("type"), kind, types))
        }
        _ => {}
    }
    let format = column.text("format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(Error::invalid(&path.child("format"), format, detail));
    }
    let json_path = path.child("JSONPath");
    match column.text("jsonPath") {
        "" => errors.push(Error::required(&json_path, "")),
        text => errors.extend(simple_path(text, &json_path)),
    }
    errors
}

/// What is wrong with the selectable fields at `path`.
pub(super) fn selectable(
    fields: &[Value],
    schema: Props<'_>,
    path: &Path,
    options: &Options<'_>,
    version: &str,
) -> Vec<Error> {
    // A schema that cannot be compiled has errors of its own.
    let schema = match Schema::of(schema) {
        Ok(schema) => schema,
        Err(error) => {
            return vec![Error::invalid(&path.child("schema.openAPIV3Schema"), "", error.to_string())];
        }
    };
    let (mut errors, mut seen) = (Vec::new(), BTreeSet::new());
    for (index, field) in fields.iter().filter_map(Props::of).enumerate() {
        let (text, path) = (field.text("jsonPath"), path.index(index).child("jsonPath"));
        if text.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        let found = match field_path::resolve(text, schema.root(), false) {
            Ok(found) => found,
            Err(error) => {
                errors.push(Error::invalid(&path, text, format!("is an invalid path: {error}")));
                continue;
            }
        };
        if found.root == "metadata" {
            errors.push(Error::invalid(&path, text, "must not point to fields in metadata"));
        }
        let kind = found.node.map_or(Kind::Any, |node| node.kind());
        if !matches!(kind, Kind::String | Kind::Boolean | Kind::Integer) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.push(Error::invalid(&path, text, detail));
        }
        if !seen.insert(found.path) {
            errors.push(Error::duplicate(&path, text));
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS && !options.too_many_selectable.contains(version) {
        errors.push(Error::too_many(path, seen.len(), MAX_SELECTABLE_FIELDS));
    }
    errors
}

/// What is wrong with `status.storedVersions`.
pub(super) fn stored(status: Props<'_>, spec: &Spec<'_>) -> Vec<Error> {
    let path = Path::new("status").child("storedVersions");
    let stored: Vec<_> = status.texts("storedVersions").collect();
    if stored.is_empty() {
        let given = status.0.get("storedVersions").is_some_and(Value::is_array);
        let shown = BadValue::verbatim(if given { "[]" } else { "null" });
        return vec![Error::invalid(&path, shown, "must have at least one stored version")];
    }
    let mut errors = Vec::new();
    let names: Vec<_> = spec.versions.iter().map(|version| version.props.text("name")).collect();
    for version in spec.versions.iter().filter(|version| version.props.flag("storage")) {
        let name = version.props.text("name");
        if !stored.contains(&name) {
            let detail = format!("must have the storage version {name}");
            errors.push(Error::invalid(&path, BadValue::strings(&stored), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        // Of equal ones upstream knows the last.
        if !names.contains(name) && !stored[index + 1..].contains(name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                 {name} from status.storedVersions"
            );
            errors.push(Error::invalid(&path.index(index), *name, detail));
        }
    }
    errors
}
