use serde_json::json;

use super::*;
use crate::printer;

fn tables(kind: &str, options: TableOptions) -> Tables<'static> {
    let now = "2026-01-01T00:02:00Z".parse().expect("a time");
    Tables { printer: printer("", "v1", kind), options, now }
}

fn object(name: &str) -> Map<String, Value> {
    let metadata = json!({"name": name, "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"});
    Map::from_iter([("metadata".to_owned(), metadata), ("kind".to_owned(), "ServiceAccount".into())])
}

#[test]
fn a_list_has_a_row_for_each_object() {
    let metadata = ListMeta {
        resource_version: "9".to_owned(),
        continue_token: "next".to_owned(),
        remaining_item_count: Some(3),
    };
    let list = tables("ServiceAccount", TableOptions::default());
    let table = list.list(&metadata, vec![object("a"), object("b")]);
    let partial = |name: &str| {
        let metadata = &object(name)["metadata"];
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
    };
    let column = |name: &str, format: &str, description: &str| {
        json!({
            "name": name, "type": "string", "format": format, "description": description, "priority": 0,
        })
    };
    let expected = json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9", "continue": "next", "remainingItemCount": 3},
        "columnDefinitions": [
            column("Name", "name", "Name of the object."),
            column("Age", "", "Time since the object was created."),
        ],
        "rows": [
            {"cells": ["a", "2m"], "object": partial("a")},
            {"cells": ["b", "2m"], "object": partial("b")},
        ],
    });
    assert_eq!(Value::Object(table), expected);
}

#[test]
fn columns_are_serialized_in_the_order_of_the_api() {
    let columns = printer("", "v1", "ServiceAccount").columns();
    let text = serde_json::to_string(&columns[0]).expect("no map with other keys than strings");
    let expected =
        r#"{"name":"Name","type":"string","format":"name","description":"Name of the object.","priority":0}"#;
    assert_eq!(text, expected);
}

#[test]
fn an_empty_list_has_empty_rows_or_null() {
    let rows = |kind| {
        let mut table = tables(kind, TableOptions::default()).list(&ListMeta::default(), Vec::new());
        assert_eq!(table["metadata"], json!({}));
        table.remove("rows").expect("rows")
    };
    assert_eq!(rows("ServiceAccount"), json!([]));
    assert_eq!(rows("LimitRange"), Value::Null);
}

#[test]
fn later_events_of_a_watch_have_no_columns() {
    let options = TableOptions { no_headers: true, version: MetaVersion::V1Beta1, ..TableOptions::default() };
    let table = tables("ServiceAccount", options).object(object("a"));
    assert_eq!(table["columnDefinitions"], Value::Null);
    assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
    assert_eq!(table["rows"][0]["object"]["apiVersion"], "meta.k8s.io/v1beta1");
}

#[test]
fn the_client_chooses_what_stands_beside_the_cells() {
    let shown = |include_object, object: Map<String, Value>| {
        let options = TableOptions { include_object, ..TableOptions::default() };
        tables("ServiceAccount", options).object(object)["rows"][0]["object"].clone()
    };
    assert_eq!(shown(IncludeObject::Object, object("a")), Value::Object(object("a")));
    assert_eq!(shown(IncludeObject::None, object("a")), Value::Null);
    let nothing = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {}});
    assert_eq!(shown(IncludeObject::Metadata, Map::new()), nothing);
}

#[test]
fn the_end_of_initial_events_is_always_shown() {
    let metadata = json!({"resourceVersion": "9", "annotations": {INITIAL_EVENTS_END: "true"}});
    let bookmark = Map::from_iter([("metadata".to_owned(), metadata.clone())]);
    let options = TableOptions { include_object: IncludeObject::None, ..TableOptions::default() };
    let table = tables("Pod", options).object(bookmark);
    assert_eq!(table["rows"][0]["object"]["metadata"], metadata);
}

#[test]
fn a_completed_pod_has_a_condition() {
    let pod = json!({"status": {"phase": "Failed"}}).as_object().expect("an object").clone();
    let table = tables("Pod", TableOptions::default()).object(pod);
    let expected =
        json!([{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}]);
    assert_eq!(table["rows"][0]["conditions"], expected);
}

#[test]
fn include_object_is_one_of_three() {
    assert_eq!(IncludeObject::parse(""), Ok(IncludeObject::Metadata));
    assert_eq!(IncludeObject::parse("Metadata"), Ok(IncludeObject::Metadata));
    assert_eq!(IncludeObject::parse("None"), Ok(IncludeObject::None));
    assert_eq!(IncludeObject::parse("Object"), Ok(IncludeObject::Object));
    let status = IncludeObject::parse("none").expect_err("case counts");
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"none\": \
                   must be 'Metadata', 'Object', 'None', or empty";
    assert_eq!((status.code, status.message.as_str()), (400, message));
}

#[test]
fn versions_have_names() {
    assert_eq!(MetaVersion::parse("v1"), Some(MetaVersion::V1));
    assert_eq!(MetaVersion::parse("v1beta1"), Some(MetaVersion::V1Beta1));
    assert_eq!(MetaVersion::parse("v1alpha1"), None);
}
