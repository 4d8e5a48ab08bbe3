//! The table of default roles and bindings; its form is described at its top.

use concord_meta::GroupResource;
use serde_json::{Value, json};

use crate::{PolicyRule, RoleRef, Subject, object::GROUP, reconcile::AUTO_UPDATE};

const TABLE: &str = include_str!("../facts/bootstrap-policy.txt");

/// An object that is to be there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    /// The resource.
    pub(crate) plural: &'static str,
    /// Empty for what is everywhere.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Group and plural of what has to be served; `None` if it is there in any case.
    pub(crate) when: Option<GroupResource>,
    /// The object but for what the server fills in.
    pub(crate) object: Value,
}

impl Wanted {
    /// Whether it grants something, rather than saying what can be granted.
    pub(crate) fn is_binding(&self) -> bool {
        self.plural.ends_with("bindings")
    }
}

/// All of the table, in its order.
pub(crate) fn wanted() -> Vec<Wanted> {
    read(TABLE).expect("the table is part of the program, and tested")
}

/// Reads a table.
///
/// # Errors
///
/// The line that makes no sense.
fn read(table: &str) -> Result<Vec<Wanted>, String> {
    let mut all: Vec<Wanted> = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let read = match line.starts_with(' ') {
            false => begin(&words).map(|wanted| all.push(wanted)),
            true => all.last_mut().and_then(|wanted| add(wanted, &words)),
        };
        read.ok_or_else(|| line.to_owned())?;
    }
    Ok(all)
}

/// The line that begins an object.
fn begin(words: &[&str]) -> Option<Wanted> {
    let (&kind, &name) = (words.first()?, words.get(1)?);
    let (plural, namespaced) = match kind {
        "clusterrole" => ("clusterroles", false),
        "clusterrolebinding" => ("clusterrolebindings", false),
        "role" => ("roles", true),
        "rolebinding" => ("rolebindings", true),
        _ => return None,
    };
    let (namespace, name) = if namespaced { name.split_once('/')? } else { ("", name) };
    let mut object = json!({"metadata": {
        "annotations": {AUTO_UPDATE: "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "name": name,
    }});
    if namespaced {
        object["metadata"]["namespace"] = namespace.into();
    }
    if plural.ends_with("bindings") {
        let role = RoleRef {
            api_group: GROUP.to_owned(),
            kind: if namespaced { "Role" } else { "ClusterRole" }.to_owned(),
            name: (*words.get(2).unwrap_or(&name)).to_owned(),
        };
        object["roleRef"] = json!(role);
    }
    Some(Wanted { plural, namespace: namespace.to_owned(), name: name.to_owned(), when: None, object })
}

/// A line about the object that was begun.
fn add(wanted: &mut Wanted, words: &[&str]) -> Option<()> {
    let object = &mut wanted.object;
    match *words {
        ["when", resource] => {
            let (group, plural) = resource.split_once('/')?;
            wanted.when = Some(GroupResource::new(group, plural));
        }
        ["label", label] => {
            let (key, value) = label.split_once('=')?;
            object["metadata"]["labels"][key] = value.into();
        }
        ["aggregates", label] => {
            let (key, value) = label.split_once('=')?;
            let selector = json!({"matchLabels": {key: value}});
            push(&mut object["aggregationRule"]["clusterRoleSelectors"], selector);
        }
        [kind @ ("user" | "group" | "serviceaccount"), name] if wanted.plural.ends_with("bindings") => {
            push(&mut object["subjects"], json!(subject(kind, name)?));
        }
        [verbs, groups, things, ref names @ ..] if names.len() < 2 => {
            push(&mut object["rules"], json!(rule(verbs, groups, things, names.first().copied())));
        }
        _ => return None,
    }
    Some(())
}

fn rule(verbs: &str, groups: &str, things: &str, names: Option<&str>) -> PolicyRule {
    let list = |text: &str| text.split(',').map(ToOwned::to_owned).collect::<Vec<String>>();
    let verbs = list(verbs);
    if groups == "url" {
        return PolicyRule { verbs, non_resource_urls: list(things), ..PolicyRule::default() };
    }
    let group = |name: &str| if name == "core" { String::new() } else { name.to_owned() };
    PolicyRule {
        verbs,
        api_groups: groups.split(',').map(group).collect(),
        resources: list(things),
        resource_names: names.map(list).unwrap_or_default(),
        ..PolicyRule::default()
    }
}

fn subject(kind: &str, name: &str) -> Option<Subject> {
    let (kind, group) = match kind {
        "user" => ("User", GROUP),
        "group" => ("Group", GROUP),
        _ => ("ServiceAccount", ""),
    };
    let (namespace, name) = if group.is_empty() { name.split_once('/')? } else { ("", name) };
    let owned = ToOwned::to_owned;
    Some(Subject {
        kind: owned(kind),
        api_group: owned(group),
        name: owned(name),
        namespace: owned(namespace),
    })
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        list => *list = json!([item]),
    }
}

#[cfg(test)]
mod tests;
