//! How requests are queued, as every cluster begins.

use concord_registry::{Object, metadata, metadata_mut};
use serde_json::{Value, json};

use super::writer::Wanted;

const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// The annotation by which a user takes over an object, or gives it back.
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// The objects of these names are never the user's, and always in force.
pub(super) const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

fn wanted(plural: &'static str, name: &str, spec: &Value) -> Wanted {
    Wanted {
        group: "flowcontrol.apiserver.k8s.io",
        version: "v1",
        plural,
        namespace: "",
        name: name.to_owned(),
        manager: MANAGER,
        object: json!({"metadata": {"annotations": {AUTOUPDATE: "true"}}, "spec": spec}),
    }
}

pub(super) fn priority_levels() -> Vec<Wanted> {
    let level = |name: &str, spec: Value| wanted("prioritylevelconfigurations", name, &spec);
    let limited = |name: &str, shares: u32, lendable: u32, queues: u32, hand: u32| {
        let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 50});
        let response = json!({"type": "Queue", "queuing": queuing});
        let limited = json!({"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response});
        level(name, json!({"type": "Limited", "limited": limited}))
    };
    let reject =
        json!({"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}});
    vec![
        level(
            "exempt",
            json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}),
        ),
        level("catch-all", json!({"type": "Limited", "limited": reject})),
        limited("system", 30, 33, 64, 6),
        limited("node-high", 40, 25, 64, 6),
        limited("leader-election", 10, 0, 16, 4),
        limited("workload-high", 40, 50, 128, 6),
        limited("workload-low", 100, 90, 128, 6),
        limited("global-default", 20, 50, 128, 6),
    ]
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "group": {"name": name}})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "user": {"name": name}})
}

/// All service accounts of kube-system.
fn system_accounts() -> Value {
    json!({"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}})
}

/// A rule for every request of some subjects.
fn everything(subjects: &Value) -> Value {
    json!([{
        "subjects": subjects,
        "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"], "clusterScope": true}],
        "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
    }])
}

/// A rule for certain resources.
fn resources(subjects: &Value, rules: &Value) -> Value {
    json!([{"subjects": subjects, "resourceRules": rules}])
}

/// Anybody, known or not.
fn everyone() -> Value {
    json!([group("system:unauthenticated"), group("system:authenticated")])
}

fn probes() -> Value {
    let urls = json!({"nonResourceURLs": ["/healthz", "/readyz", "/livez"], "verbs": ["get"]});
    json!([{"subjects": everyone(), "nonResourceRules": [urls]}])
}

fn elections() -> Value {
    let subjects =
        json!([user("system:kube-controller-manager"), user("system:kube-scheduler"), system_accounts()]);
    let leases = json!({
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"],
        "namespaces": ["*"],
    });
    resources(&subjects, &json!([leases]))
}

fn heartbeats() -> Value {
    let nodes = json!({
        "apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"], "namespaces": ["*"],
        "clusterScope": true,
    });
    let leases = json!({
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"], "namespaces": ["*"],
    });
    resources(&json!([group("system:nodes")]), &json!([nodes, leases]))
}

pub(super) fn flow_schemas() -> Vec<Wanted> {
    let schema = |name: &str, level: &str, precedence: u32, by: Option<&str>, rules: Value| {
        let mut spec = json!({
            "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": rules,
        });
        if let Some(by) = by {
            spec["distinguisherMethod"] = json!({"type": by});
        }
        wanted("flowschemas", name, &spec)
    };
    let of = |subject: Value| everything(&json!([subject]));
    let (by_user, by_namespace) = (Some("ByUser"), Some("ByNamespace"));
    let manager = user("system:kube-controller-manager");
    vec![
        schema("exempt", "exempt", 1, None, of(group("system:masters"))),
        schema("probes", "exempt", 2, None, probes()),
        schema("system-leader-election", "leader-election", 100, by_user, elections()),
        schema("system-node-high", "node-high", 400, by_user, heartbeats()),
        schema("system-nodes", "system", 500, by_user, of(group("system:nodes"))),
        schema("kube-controller-manager", "workload-high", 800, by_namespace, of(manager)),
        schema("kube-scheduler", "workload-high", 800, by_namespace, of(user("system:kube-scheduler"))),
        schema("kube-system-service-accounts", "workload-high", 900, by_namespace, of(system_accounts())),
        schema("service-accounts", "workload-low", 9_000, by_user, of(group("system:serviceaccounts"))),
        schema("global-default", "global-default", 9_900, by_user, everything(&everyone())),
        schema("catch-all", "catch-all", 10_000, by_user, everything(&everyone())),
    ]
}

/// What the object has to become; `None` if it is fine as it is.
pub(super) fn revised(name: &str, current: &Object, wanted: &Object) -> Option<Object> {
    let annotation =
        metadata(current).get("annotations").and_then(|all| all.get(AUTOUPDATE)).and_then(Value::as_str);
    let said = annotation.and_then(boolean);
    // One that says nothing and was never changed is taken for one that is to be kept up to date.
    let update = MANDATORY.contains(&name) || said.unwrap_or_else(|| metadata(current).generation() == 1);
    let spec = current.get("spec");
    let mut to_be = wanted.get("spec").cloned();
    if let ("exempt", Some(limits), Some(to_be)) =
        (name, spec.and_then(|spec| spec.get("exempt")), &mut to_be)
    {
        // How much others may borrow of what is never queued is for the user to say.
        to_be["exempt"] = limits.clone();
    }
    let outdated = update && spec != to_be.as_ref();
    if !outdated && said == Some(update) {
        return None;
    }
    let mut revised = current.clone();
    if let (true, Some(to_be)) = (outdated, to_be) {
        revised.insert("spec".to_owned(), to_be);
    }
    let annotations = metadata_mut(&mut revised).entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        annotations.insert(AUTOUPDATE.to_owned(), update.to_string().into());
    }
    Some(revised)
}

/// What Go takes for a boolean.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(annotation: Option<&str>, generation: i64, shares: i64) -> Object {
        let mut object = json!({"metadata": {"generation": generation}, "spec": {"shares": shares}});
        if let Some(annotation) = annotation {
            object["metadata"]["annotations"] = json!({AUTOUPDATE: annotation});
        }
        object.as_object().expect("an object").clone()
    }

    #[test]
    fn an_object_is_the_users_once_the_annotation_says_so() {
        let wanted = object(Some("true"), 0, 30);
        let becomes = |name: &str, annotation: Option<&str>, generation, shares| {
            revised(name, &object(annotation, generation, shares), &wanted).map(|revised| {
                let annotation =
                    revised["metadata"]["annotations"][AUTOUPDATE].as_str().map(ToOwned::to_owned);
                (annotation.unwrap_or_default(), revised["spec"]["shares"].as_i64().unwrap_or_default())
            })
        };
        let some = |annotation: &str, shares| Some((annotation.to_owned(), shares));
        assert_eq!(becomes("system", Some("true"), 3, 30), None);
        assert_eq!(becomes("system", Some("true"), 3, 31), some("true", 30), "kept up to date");
        assert_eq!(becomes("system", Some("false"), 3, 31), None, "the user's");
        assert_eq!(becomes("system", Some("0"), 3, 31), None);
        assert_eq!(becomes("system", None, 3, 31), some("false", 31), "changed by somebody");
        assert_eq!(becomes("system", None, 1, 31), some("true", 30), "never changed");
        assert_eq!(becomes("system", Some("maybe"), 3, 31), some("false", 31));
        assert_eq!(becomes("catch-all", Some("false"), 3, 31), some("true", 30), "mandatory");
    }

    #[test]
    fn users_may_say_what_can_be_borrowed_of_the_exempt_level() {
        let level = |shares: i64, kind: &str| {
            let object = json!({
                "metadata": {"annotations": {AUTOUPDATE: "true"}},
                "spec": {"type": kind, "exempt": {"nominalConcurrencyShares": shares}},
            });
            object.as_object().expect("an object").clone()
        };
        assert_eq!(revised("exempt", &level(10, "Exempt"), &level(0, "Exempt")), None);
        let revised = revised("exempt", &level(10, "Limited"), &level(0, "Exempt")).expect("another type");
        assert_eq!(
            Value::Object(revised)["spec"],
            json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 10}})
        );
    }

    #[test]
    fn every_flow_schema_has_its_priority_level() {
        let levels: Vec<String> = priority_levels().into_iter().map(|level| level.name).collect();
        for schema in flow_schemas() {
            let level = schema.object["spec"]["priorityLevelConfiguration"]["name"].as_str().expect("a name");
            assert!(levels.iter().any(|known| known == level), "{level}");
        }
        assert_eq!((levels.len(), flow_schemas().len()), (8, 11));
    }
}
