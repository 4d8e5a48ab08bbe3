//! StorageVersions.

use std::collections::{BTreeMap, BTreeSet};

use concord_builtins::FeatureGates;
use concord_meta::{
    field,
    names::{dns1035_label, dns1123_subdomain, qualified_name},
};
use concord_registry::{Object, Part, metadata};
use concord_storageversion::{Condition, Entry, Status, common_encoding_version};

use super::Hooks;

pub(super) const HOOKS: Hooks =
    Hooks { validate_create: Some(validate_create), validate_update: Some(validate_update), ..Hooks::NONE };

/// A new one has no status.
fn validate_create(_: &FeatureGates, object: &Object) -> Vec<field::Error> {
    let is = metadata(object);
    let path = field::Path::new("metadata");
    let named = [("generateName", is.text("generateName")), ("name", is.name())];
    let mut errors = Vec::new();
    for (member, name) in named.into_iter().filter(|(_, name)| !name.is_empty()) {
        let invalid = |problem: String| field::Error::invalid(&path.child(member), name, problem);
        errors.extend(name_problems(name).into_iter().map(invalid));
    }
    errors.extend(concord_validation::finalizers(object));
    errors
}

fn name_problems(name: &str) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let group = dns1123_subdomain(group).into_iter().map(|problem| format!("the group segment {problem}"));
    let resource =
        dns1035_label(resource).into_iter().map(|problem| format!("the resource segment {problem}"));
    group.chain(resource).collect()
}

/// There is nothing in it but its status.
fn validate_update(_: &FeatureGates, part: Part<'_>, new: &Object, _: &Object) -> Vec<field::Error> {
    match part {
        Part::Main => Vec::new(),
        Part::Sub(_) => status_errors(&Status::of(new)),
    }
}

fn status_errors(status: &Status) -> Vec<field::Error> {
    let path = field::Path::new("status");
    let (mut errors, mut ids) = (Vec::new(), BTreeSet::new());
    for (at, entry) in status.storage_versions.iter().enumerate() {
        let path = path.child("storageVersions").index(at);
        let id = entry.api_server_id.as_str();
        if !ids.insert(id) {
            errors.push(field::Error::duplicate(&path.child("apiServerID"), id));
        }
        entry_errors(entry, &path, &mut errors);
    }
    errors.extend(common_error(status, &path));
    condition_errors(&status.conditions, &path, &mut errors);
    errors
}

fn entry_errors(entry: &Entry, path: &field::Path, errors: &mut Vec<field::Error>) {
    let id = entry.api_server_id.as_str();
    for problem in dns1123_subdomain(id) {
        errors.push(field::Error::invalid(&path.child("apiServerID"), id, problem));
    }
    let check = |path: &field::Path, version: &str, errors: &mut Vec<field::Error>| {
        let problems = api_version_problems(version);
        if !problems.is_empty() {
            errors.push(field::Error::invalid(path, version, problems.join(",")));
        }
    };
    let (encoding, decodable) = (&entry.encoding_version, &entry.decodable_versions);
    check(&path.child("encodingVersion"), encoding, errors);
    let place = path.child("decodableVersions");
    for (at, version) in decodable.iter().enumerate() {
        check(&place.index(at), version, errors);
    }
    if !decodable.contains(encoding) {
        let why = format!("decodableVersions must include encodingVersion {encoding}");
        errors.push(field::Error::invalid(&place, field::BadValue::strings(decodable), why));
    }
    for (at, version) in entry.served_versions.iter().enumerate() {
        let path = path.child("servedVersions").index(at);
        check(&path, version, errors);
        if !decodable.contains(version) {
            let all = decodable.join(" ");
            let why = format!(
                "individual served version : {version} must be included in decodableVersions : [{all}]"
            );
            errors.push(field::Error::invalid(&path, version.as_str(), why));
        }
    }
}

/// Whoever writes a status says what follows from it, and is checked.
fn common_error(status: &Status, path: &field::Path) -> Option<field::Error> {
    let path = path.child("commonEncodingVersion");
    let (is, said) =
        (common_encoding_version(&status.storage_versions), status.common_encoding_version.as_deref());
    let why = match (is, said) {
        (None, Some(_)) => {
            "should be nil if servers do not agree on the same encoding version, or if there is no server \
             reporting the supported versions yet"
                .to_owned()
        }
        (Some(is), None) => format!("the common encoding version is {is}"),
        (Some(is), Some(said)) if is != said => format!("the actual common encoding version is {is}"),
        _ => return None,
    };
    Some(match said {
        Some(said) => field::Error::invalid(&path, said, why),
        None => field::Error::invalid(&path, &serde_json::Value::Null, why),
    })
}

/// As upstream's, errors are said to be in the status itself and not in its conditions.
fn condition_errors(conditions: &[Condition], path: &field::Path, errors: &mut Vec<field::Error>) {
    let mut seen = BTreeMap::new();
    for (at, condition) in conditions.iter().enumerate() {
        let path = path.index(at);
        let kind = condition.kind.as_str();
        if let Some(first) = seen.insert(kind, at) {
            let why =
                format!("the type of the condition is not unique, it also appears in conditions[{first}]");
            errors.push(field::Error::invalid(&path.child("type"), kind, why));
        }
        for (member, value) in [("type", kind), ("status", condition.status.as_str())] {
            let invalid = |problem: String| field::Error::invalid(&path.child(member), value, problem);
            errors.extend(qualified_name(value).into_iter().map(invalid));
        }
        for (member, value) in [("reason", &condition.reason), ("message", &condition.message)] {
            if value.is_empty() {
                errors.push(field::Error::required(&path.child(member), ""));
            }
        }
    }
}

/// An `apiVersion` is a version, with a group before it if it is not of the core group.
fn api_version_problems(api_version: &str) -> Vec<String> {
    let parts: Vec<&str> = api_version.split('/').collect();
    let part = |name: &str, text: &str, check: fn(&str) -> Vec<String>| -> Vec<String> {
        let problems = if text.is_empty() { vec!["must be non-empty".to_owned()] } else { check(text) };
        problems.into_iter().map(|problem| format!("{name} part: {problem}")).collect()
    };
    match parts.as_slice() {
        [version] => part("version", version, dns1035_label),
        [group, version] => {
            let mut problems = part("group", group, dns1123_subdomain);
            problems.extend(part("version", version, dns1035_label));
            problems
        }
        _ => vec![
            "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', \
             start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
             'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain \
             prefix and '/' (e.g. 'example.com/MyVersion')"
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests;
