use concord_meta::names;
use concord_registry::{Context, Object, Part, metadata, metadata_mut};
use serde_json::Value;

use super::Hooks;
use crate::generation::{differ, is_changed};

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), update: Some(update), ..Hooks::NONE };

const TOPOLOGY: &str = "deprecatedTopology";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// v1beta1 could write the topology of endpoints, which v1 only shows.
fn create(_: &Context, object: &mut Object) {
    drop_topology(object, &[]);
}

/// Its labels say which service a slice belongs to: a change of them is a new generation, too. As upstream's, one that
/// tries to write a topology counts as changed, though nothing of it stays.
fn update(_: &Context, _: Part<'_>, new: &mut Object, old: &Object) {
    if is_changed(new, old) || metadata(new).labels() != metadata(old).labels() {
        let next = metadata(old).generation().saturating_add(1);
        metadata_mut(new).insert("generation".to_owned(), next.into());
    }
    if differ(new.get("endpoints"), old.get("endpoints")) {
        let nodes: Vec<&str> = endpoints(old).filter_map(node_of_topology).collect();
        drop_topology(new, &nodes);
    }
}

fn endpoints(object: &Object) -> impl Iterator<Item = &Value> {
    object.get("endpoints").and_then(Value::as_array).into_iter().flatten()
}

/// The node that is told in the topology alone.
fn node_of_topology(endpoint: &Value) -> Option<&str> {
    endpoint.get(TOPOLOGY)?.get(HOSTNAME)?.as_str().filter(|node| !node.is_empty())
}

/// Takes topologies away. A node that was told there before is told in its own field from now on.
fn drop_topology(object: &mut Object, known: &[&str]) {
    let all = object.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in all.into_iter().flatten() {
        let node = node_of_topology(endpoint).map(str::to_owned);
        let Some(endpoint) = endpoint.as_object_mut() else { continue };
        endpoint.remove(TOPOLOGY);
        if let Some(node) = node
            && endpoint.get("nodeName").is_none_or(Value::is_null)
            && known.contains(&node.as_str())
            && names::dns1123_subdomain(&node).is_empty()
        {
            endpoint.insert("nodeName".to_owned(), node.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use concord_merge::apply::Time;
    use serde_json::json;

    use super::*;

    fn slice(endpoint: &Value) -> Object {
        let slice = json!({"metadata": {"generation": 1}, "endpoints": [endpoint]});
        slice.as_object().expect("an object").clone()
    }

    #[test]
    fn topologies_are_not_written_but_nodes_that_were_told_there_stay() {
        let context = Context::of_the_server(Time { unix: 0 });
        let on = |node: &str| json!({"addresses": ["a"], TOPOLOGY: {HOSTNAME: node}});
        let plain = json!({"addresses": ["a"]});
        let mut new = slice(&on("n"));
        create(&context, &mut new);
        assert_eq!(new, slice(&plain));
        for (old, new, kept, generation) in [
            (&plain, &on("n"), &plain, 2),
            (&on("n"), &on("n"), &on("n"), 1),
            (
                &on("n"),
                &json!({"addresses": ["b"], TOPOLOGY: {HOSTNAME: "n"}}),
                &json!({"addresses": ["b"], "nodeName": "n"}),
                2,
            ),
            (&on("n"), &on("m"), &plain, 2),
            (
                &on("A B"),
                &json!({"addresses": ["b"], TOPOLOGY: {HOSTNAME: "A B"}}),
                &json!({"addresses": ["b"]}),
                2,
            ),
            (&plain, &plain, &plain, 1),
        ] {
            let mut new = slice(new);
            update(&context, Part::Main, &mut new, &slice(old));
            assert_eq!(new["endpoints"][0], *kept);
            assert_eq!(metadata(&new).generation(), generation);
        }
    }

    #[test]
    fn a_change_of_labels_is_a_new_generation() {
        let context = Context::of_the_server(Time { unix: 0 });
        let (old, mut new) = (slice(&json!({})), slice(&json!({})));
        metadata_mut(&mut new).insert("labels".to_owned(), json!({"a": "b"}));
        update(&context, Part::Main, &mut new, &old);
        assert_eq!(metadata(&new).generation(), 2);
    }
}
