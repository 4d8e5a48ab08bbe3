use serde_json::json;

use super::*;

fn object(value: &Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn definition(group: &str, schema: &Value) -> Object {
    let mut definition = object(&json!({
        "metadata": {"name": format!("foos.{group}"), "resourceVersion": "1"},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    }));
    set_defaults(&mut definition);
    prepare_create(&mut definition);
    definition
}

#[test]
fn what_is_not_said_is_filled_in() {
    let definition = definition("example.com", &json!({"type": "object"}));
    assert_eq!(definition["spec"]["names"]["singular"], "foo");
    assert_eq!(definition["spec"]["names"]["listKind"], "FooList");
    assert_eq!(definition["spec"]["conversion"], json!({"strategy": "None"}));
    let unknown = json!({"plural": "", "kind": ""});
    assert_eq!(
        definition["status"],
        json!({"storedVersions": ["v1"], "acceptedNames": unknown, "conditions": null})
    );
    assert_eq!(definition["metadata"]["generation"], 1);
}

#[test]
fn an_update_keeps_the_status_and_counts_changes() {
    let old = definition("example.com", &json!({"type": "object"}));
    let mut same = old.clone();
    same.remove("status");
    prepare_update(&mut same, &old);
    assert_eq!(same, old);
    let mut changed = old.clone();
    changed["spec"]["versions"] = json!([{"name": "v1"}, {"name": "v2", "storage": true}]);
    prepare_update(&mut changed, &old);
    assert_eq!(changed["metadata"]["generation"], 2);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
}

#[test]
fn an_update_may_keep_what_was_wrong_before() {
    let wrong = definition(
        "a.k8s.io",
        &json!({"type": "object", "properties": {"l": {
            "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"},
        }}}),
    );
    let errors = texts(&validate_create(&wrong, &NoCel));
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(texts(&validate_update(&wrong, &wrong, &NoCel)), Vec::<String>::new());
}

#[test]
fn names_are_fixed_once_the_definition_is_established() {
    let mut old = definition("example.com", &json!({"type": "object"}));
    let mut new = old.clone();
    new["spec"]["names"]["kind"] = "Bar".into();
    new["spec"]["scope"] = "Cluster".into();
    assert_eq!(texts(&validate_update(&new, &old, &NoCel)), Vec::<String>::new());
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    assert_eq!(
        texts(&validate_update(&new, &old, &NoCel)),
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"Bar\": field is immutable",
        ]
    );
}

#[test]
fn a_stored_version_must_remain() {
    let old = definition("example.com", &json!({"type": "object"}));
    let mut new = old.clone();
    new["status"]["storedVersions"] = json!(["v0", "v1"]);
    let errors = texts(&validate_update(&new, &old, &NoCel));
    assert!(
        errors[0].starts_with(
            "status.storedVersions[0]: Invalid value: \"v0\": missing from spec.versions; v0 was"
        )
    );
    new["status"]["acceptedNames"] = json!({"plural": "Bad", "kind": "Foo", "listKind": "Foo"});
    assert_eq!(validate_status_update(&new, &old).len(), 2);
}

#[test]
fn formats_that_nothing_checks_are_warned_about_once() {
    let strange = definition(
        "example.com",
        &json!({"type": "object", "properties": {
            "a": {"type": "string", "format": "odd"}, "b": {"type": "integer", "format": "date"},
            "c": {"type": "string", "format": "date"},
        }}),
    );
    let warnings = ["unrecognized format \"odd\"", "unrecognized format \"date\""];
    assert_eq!(warnings_on_create(&strange, 35), warnings);
    assert_eq!(warnings_on_update(&strange, &strange, 35), Vec::<String>::new());
}

/// Says the same of every rule.
struct Fake(CompiledRule);

impl CelCompiler for Fake {
    fn compile(&self, place: &RulePlace<'_>) -> Result<Vec<CompiledRule>, String> {
        Ok(place.node.rules().iter().map(|_| self.0.clone()).collect())
    }

    fn validate_default(&self, _: &RulePlace<'_>, _: &Value, path: &Path, _: i64) -> (Vec<Error>, i64) {
        (vec![Error::invalid(path, "", "failed rule")], 0)
    }
}

#[test]
fn rules_have_costs_in_proportion_to_how_often_they_are_asked() {
    let rule = json!([{"rule": "self > 0"}]);
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 30, "items":
        {"type": "integer", "x-kubernetes-validations": rule}}}});
    let place = "spec.validation.openAPIV3Schema.properties[l].items.x-kubernetes-validations[0].rule";
    let advice = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                  strings are declared)";
    let cost = |max_cost: u64| {
        let fake = Fake(CompiledRule { max_cost, max_cardinality: 5, ..CompiledRule::default() });
        texts(&validate_create(&definition("example.com", &schema), &fake))
    };
    assert_eq!(cost(300_000), Vec::<String>::new());
    assert_eq!(
        cost(1_000_000),
        [format!("{place}: Forbidden: estimated rule cost exceeds budget by factor of 3.0x {advice}")]
    );
    let errors = cost(10_000_000);
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[1].contains("contributed to estimated rule cost total exceeding cost limit"));
    assert!(errors[2].contains("for entire OpenAPIv3 schema exceeds budget by factor of 3.0x"));
}

#[test]
fn what_the_compiler_says_is_told_where_the_rule_is() {
    let schema =
        json!({"type": "object", "x-kubernetes-validations": [{"rule": "x", "messageExpression": "y"}]});
    let fake = Fake(CompiledRule {
        error: Some(RuleError::Invalid("compilation failed".to_owned())),
        message_cost: Some(Err("no text".to_owned())),
        ..CompiledRule::default()
    });
    let shown = r#"{"Rule":"x","Message":"","MessageExpression":"y","Reason":null,"FieldPath":"","OptionalOldSelf":null}"#;
    let place = "spec.validation.openAPIV3Schema.x-kubernetes-validations[0]";
    assert_eq!(
        texts(&validate_create(&definition("example.com", &schema), &fake)),
        [
            format!("{place}.rule: Invalid value: {shown}: compilation failed"),
            format!("{place}.messageExpression: Invalid value: {shown}: no text"),
        ]
    );
    let schema = json!({"type": "object", "properties":
        {"a": {"type": "string", "default": "x", "x-kubernetes-validations": [{"rule": "false"}]}}});
    let errors = texts(&validate_create(&definition("example.com", &schema), &fake));
    assert_eq!(
        errors,
        ["spec.validation.openAPIV3Schema.properties[a].default: Invalid value: \"\": failed rule"]
    );
}
