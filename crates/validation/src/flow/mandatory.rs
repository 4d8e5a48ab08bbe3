//! The flow schemas and priority levels without which requests could not be told apart, and which nobody changes.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::{
    internal,
    node::{Node, Root},
    rules::same,
};

/// What the names stand for, as the server makes them itself when it starts.
struct Fixed {
    exempt_schema: Value,
    catch_all_schema: Value,
    exempt_level: Value,
    catch_all_level: Value,
}

static FIXED: LazyLock<Fixed> = LazyLock::new(|| Fixed {
    exempt_schema: schema("exempt", 1, None, &["system:masters"]),
    catch_all_schema: schema(
        "catch-all",
        10_000,
        Some("ByUser"),
        &["system:unauthenticated", "system:authenticated"],
    ),
    exempt_level: json!({"type": "Exempt"}),
    catch_all_level: json!({
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 5,
            "lendablePercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    }),
});

fn schema(level: &str, precedence: i64, distinguished: Option<&str>, groups: &[&str]) -> Value {
    let group = |name: &&str| json!({"kind": "Group", "group": {"name": name}});
    let subjects: Vec<Value> = groups.iter().map(group).collect();
    let resources = json!({
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"],
    });
    let others = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    let rule = json!({"subjects": subjects, "resourceRules": [resources], "nonResourceRules": [others]});
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rule],
    });
    if let Some(distinguished) = distinguished {
        spec["distinguisherMethod"] = json!({"type": distinguished});
    }
    spec
}

/// A flow schema of this name is what it always is.
pub(super) fn flow_schema(root: Root<'_>, spec: Node<'_>) {
    let fixed = match root.name() {
        "exempt" => &FIXED.exempt_schema,
        "catch-all" => &FIXED.catch_all_schema,
        _ => return,
    };
    if !same(spec.value(), Some(fixed)) {
        let detail = format!("spec of '{}' must equal the fixed value", root.name());
        spec.invalid(internal::shown("FlowSchemaSpec", spec.value()), detail);
    }
}

/// And so is a priority level, but for the shares of the one that is exempt.
pub(super) fn priority_level(root: Root<'_>, spec: Node<'_>) {
    let (fixed, except) = match root.name() {
        "exempt" => (&FIXED.exempt_level, " except the 'spec.exempt' field"),
        "catch-all" => (&FIXED.catch_all_level, ""),
        _ => return,
    };
    let mut compared: Map<String, Value> = spec.object().cloned().unwrap_or_default();
    if !except.is_empty() {
        compared.remove("exempt");
    }
    if !same(Some(&Value::Object(compared)), Some(fixed)) {
        let detail = format!("spec of '{}'{except} must equal the fixed value", root.name());
        spec.invalid(internal::shown("PriorityLevelConfigurationSpec", spec.value()), detail);
    }
}
