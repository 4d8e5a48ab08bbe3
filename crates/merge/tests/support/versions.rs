//! A kind in two versions: what v1 calls `.spec.replicas` is `.spec.count` in v2.

use concord_merge::{
    apply::{ApplyError, ApplyRequest, ConvertError, FieldManager, ResetFields, Time, Versions},
    fields::{FieldSet, Path},
};
use concord_meta::GroupVersionKind;
use serde_json::{Value, json};

use super::{Schema, map, map_list, number, object, text, thing};

#[derive(Clone, Debug)]
pub struct Things {
    pub version: &'static str,
}

impl Versions for Things {
    type Type = Schema;

    fn type_of(&self, api_version: &str) -> Option<Schema> {
        match api_version {
            "example.com/v1" => Some(thing()),
            "example.com/v2" => {
                let metadata = object([("name", text()), ("uid", text()), ("labels", map(text()))]);
                let container = object([("name", text()), ("image", text())]);
                let spec = object([("count", number()), ("containers", map_list(["name"], container))]);
                let fields =
                    [("apiVersion", text()), ("kind", text()), ("metadata", metadata), ("spec", spec)];
                Some(object(fields))
            }
            _ => None,
        }
    }

    fn convert(&self, thing: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let (from, to) = match api_version {
            "example.com/v1" => ("count", "replicas"),
            "example.com/v2" => ("replicas", "count"),
            _ => return Err(ConvertError::MissingVersion),
        };
        let mut thing = thing.clone();
        thing["apiVersion"] = json!(api_version);
        let spec = thing.get_mut("spec").and_then(Value::as_object_mut);
        if let Some(spec) = spec
            && let Some(count) = spec.remove(from)
        {
            spec.insert(to.to_owned(), count);
        }
        Ok(thing)
    }

    fn empty(&self) -> Value {
        json!({"apiVersion": format!("example.com/{}", self.version), "kind": "Thing"})
    }
}

/// The main endpoint of a version.
pub fn manager(version: &'static str) -> FieldManager<Things> {
    let status: FieldSet = [Path::of_fields(["status"])].into_iter().collect();
    FieldManager {
        kind: GroupVersionKind::new("example.com", version, "Thing"),
        subresource: String::new(),
        versions: Things { version },
        reset_fields: ResetFields::none().excluding("example.com/v1", status),
    }
}

/// A thing of v1.
pub fn thing_with(spec: Value) -> Value {
    let mut thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "n"}});
    thing["spec"] = spec;
    thing
}

pub fn at(minute: i64) -> Time {
    Time { unix: 1_700_000_000 + 60 * minute }
}

/// Applies to v1; the result has a uid, as everything stored has.
pub fn apply(live: Option<&Value>, spec: Value, name: &str) -> Result<Value, ApplyError> {
    apply_with(live, spec, name, false)
}

pub fn apply_with(live: Option<&Value>, spec: Value, name: &str, force: bool) -> Result<Value, ApplyError> {
    let config = thing_with(spec);
    let request = ApplyRequest { config: &config, manager: name, force, now: at(1) };
    manager("v1").apply(live, request).map(stored)
}

pub fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("1");
    object
}

/// Who owns what, one line each: `Apply a: .spec.replicas`.
pub fn owners(object: &Value) -> Vec<String> {
    let managed =
        concord_merge::apply::Managed::decode(&object["metadata"]["managedFields"]).expect("our own");
    let line = |(id, owned): (&concord_merge::apply::ManagerId, &concord_merge::apply::Owned)| {
        let paths: Vec<String> = owned.fields.paths().iter().map(ToString::to_string).collect();
        format!("{:?} {}: {}", id.operation, id.manager, paths.join(" "))
    };
    managed.managers.iter().map(line).collect()
}
