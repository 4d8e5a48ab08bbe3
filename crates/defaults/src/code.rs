//! What tables cannot say.

mod images;
mod pods;
mod resources;

use serde_json::{Value, json};

use crate::Object;

/// Code that a table names.
pub(crate) type Code = fn(&mut Object);

/// The code of a name.
pub(crate) fn named(name: &str) -> Option<Code> {
    let code: Code = match name {
        "drop_init_container_annotations" => pods::drop_init_container_annotations,
        "empty_dir" => pods::empty_dir,
        "image_pull_policy" => images::image_pull_policy,
        "image_volume_pull_policy" => images::image_volume_pull_policy,
        "namespace_label" => namespace_label,
        "pod_cidrs" => pod_cidrs,
        "pod_ips" => pods::pod_ips,
        "pod_level_resources" => resources::pod_level_resources,
        "positive_grace_period" => pods::positive_grace_period,
        "round_up" => resources::round_up,
        "service_account_alias" => pods::service_account_alias,
        _ => return None,
    };
    Some(code)
}

/// The text of a field; empty if there is none.
fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Every namespace can be selected by its name, as soon as it has one.
fn namespace_label(namespace: &mut Object) {
    let Some(Value::Object(metadata)) = namespace.get_mut("metadata") else { return };
    let name = text(metadata, "name").to_owned();
    if name.is_empty() {
        return;
    }
    let labels = metadata.entry("labels").or_insert(Value::Null);
    if !labels.is_object() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

/// `podCIDR` is the first of `podCIDRs`, and says what they are where they differ.
fn pod_cidrs(node: &mut Object) {
    let Some(Value::Object(spec)) = node.get_mut("spec") else { return };
    same_first(spec, "podCIDR", "podCIDRs", |range| range.as_str(), |range| range.into());
}

/// Keeps a field and the first item of a list the same. The field is the older one and wins: who writes it may not know
/// the list.
fn same_first(
    object: &mut Object,
    single: &str,
    list: &str,
    read: fn(&Value) -> Option<&str>,
    write: fn(&str) -> Value,
) {
    let first = object.get(list).and_then(|items| items.get(0)).and_then(read).unwrap_or_default();
    let own = text(object, single);
    if own == first {
        return;
    }
    if own.is_empty() {
        let first = Value::from(first);
        object.insert(single.to_owned(), first);
    } else {
        let only = write(own);
        object.insert(list.to_owned(), Value::Array(vec![only]));
    }
}
