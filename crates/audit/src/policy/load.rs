//! Reads a policy.

use concord_codec::{Options, decode_yaml};
use concord_meta::{
    field::{BadValue, Error, Path},
    names,
};
use serde::Deserialize;
use serde_json::Value;

use super::{GroupResources, Policy, PolicyError, Rule};
use crate::{Level, Stage, Stages};

/// A policy as it is written.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Written {
    api_version: String,
    kind: String,
    rules: Vec<WrittenRule>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WrittenRule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<WrittenResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WrittenResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

const POLICY: [&str; 6] = ["apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"];
const RULE: [&str; 9] = [
    "level",
    "users",
    "userGroups",
    "verbs",
    "resources",
    "namespaces",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
];
const RESOURCES: [&str; 3] = ["group", "resources", "resourceNames"];

pub(super) fn policy(text: &[u8], mut warn: impl FnMut(&str)) -> Result<Policy, PolicyError> {
    let decoded = decode_yaml(text, &Options::default());
    let decoded = decoded.map_err(|error| PolicyError::Decode(error.to_string()))?;
    let object = Value::Object(decoded.object);
    for unknown in unknown_fields(&object) {
        warn(&unknown);
    }
    let nulls = without_nulls(object);
    let written: Written =
        serde_json::from_value(nulls).map_err(|error| PolicyError::Decode(error.to_string()))?;
    if (written.api_version.as_str(), written.kind.as_str()) != ("audit.k8s.io/v1", "Policy") {
        return Err(PolicyError::Kind(format!("{}, Kind={}", written.api_version, written.kind)));
    }
    let mut errors = Vec::new();
    let omit_stages = stages(&written.omit_stages, &Path::new("omitStages"), &mut errors);
    let rules = written.rules.into_iter().enumerate();
    let rules: Vec<Rule> =
        rules.map(|(index, written)| rule(written, &Path::new("rules").index(index), &mut errors)).collect();
    match (errors.is_empty(), rules.is_empty()) {
        (false, _) => Err(PolicyError::Invalid(errors)),
        (true, true) => Err(PolicyError::Empty),
        _ => Ok(Policy { rules, omit_stages, omit_managed_fields: written.omit_managed_fields }),
    }
}

/// Members that are null are as good as missing, as for Go.
fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        members.retain(|_, member| !member.is_null());
        for rule in members.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
            *rule = without_nulls(rule.take());
        }
    }
    value
}

/// Members that upstream does not know; most are typing mistakes.
fn unknown_fields(policy: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut look = |path: &str, value: &Value, known: &[&str]| {
        let names = value.as_object().into_iter().flat_map(|members| members.keys());
        let strange = names.filter(|name| !known.contains(&name.as_str()));
        unknown.extend(strange.map(|name| format!("unknown field \"{path}{name}\"")));
    };
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    look("", policy, &POLICY);
    for (index, rule) in list(policy, "rules").iter().enumerate() {
        look(&format!("rules[{index}]."), rule, &RULE);
        for (number, resources) in list(rule, "resources").iter().enumerate() {
            look(&format!("rules[{index}].resources[{number}]."), resources, &RESOURCES);
        }
    }
    unknown
}

fn rule(written: WrittenRule, path: &Path, errors: &mut Vec<Error>) -> Rule {
    let level = level(&written.level, &path.child("level"), errors);
    urls(&written.non_resource_urls, &path.child("nonResourceURLs"), errors);
    for resources in &written.resources {
        check_resources(resources, &path.child("resources"), errors);
    }
    let omit_stages = stages(&written.omit_stages, &path.child("omitStages"), errors);
    let about_resources = !written.resources.is_empty() || !written.namespaces.is_empty();
    if about_resources && !written.non_resource_urls.is_empty() {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        let bad = BadValue::strings(&written.non_resource_urls);
        errors.push(Error::invalid(&path.child("nonResourceURLs"), bad, why));
    }
    let resources = written.resources.into_iter().map(|written| GroupResources {
        group: written.group,
        resources: written.resources,
        names: written.resource_names,
    });
    Rule {
        level,
        users: written.users,
        groups: written.user_groups,
        verbs: written.verbs,
        resources: resources.collect(),
        namespaces: written.namespaces,
        non_resource_urls: written.non_resource_urls,
        omit_stages,
        omit_managed_fields: written.omit_managed_fields,
    }
}

fn level(text: &str, path: &Path, errors: &mut Vec<Error>) -> Level {
    text.parse().unwrap_or_else(|_| {
        errors.push(match text {
            "" => Error::required(path, ""),
            _ => Error::not_supported(path, text, &Level::ALL.map(Level::as_str)),
        });
        Level::None
    })
}

fn stages(texts: &[String], path: &Path, errors: &mut Vec<Error>) -> Stages {
    let mut stage = |(index, text): (usize, &String)| {
        let stage = text.parse::<Stage>();
        if stage.is_err() {
            let allowed = Stage::ALL.map(Stage::as_str).join(",");
            let why = format!("allowed stages are {allowed}");
            errors.push(Error::invalid(&path.index(index), text.as_str(), why));
        }
        stage.ok()
    };
    texts.iter().enumerate().filter_map(&mut stage).collect()
}

fn urls(urls: &[String], path: &Path, errors: &mut Vec<Error>) {
    for (index, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
        let path = path.index(index);
        if !url.starts_with('/') {
            let why = "non-resource URL rules must begin with a '/' character";
            errors.push(Error::invalid(&path, url.as_str(), why));
        }
        if url.find('*').is_some_and(|star| star + 1 < url.len()) {
            let why = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.push(Error::invalid(&path, url.as_str(), why));
        }
    }
}

fn check_resources(resources: &WrittenResources, path: &Path, errors: &mut Vec<Error>) {
    let group = resources.group.as_str();
    if !group.is_empty() && group != "*" {
        let problems = names::dns1123_subdomain(group);
        if !problems.is_empty() {
            errors.push(Error::invalid(&path.child("group"), group, problems.join(",")));
        }
    }
    if !resources.resource_names.is_empty() && resources.resources.is_empty() {
        let why = "using resourceNames requires at least one resource";
        let bad = BadValue::strings(&resources.resource_names);
        errors.push(Error::invalid(&path.child("resourceNames"), bad, why));
    }
}
