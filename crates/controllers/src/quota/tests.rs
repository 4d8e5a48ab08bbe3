use concord_meta::GroupResource;
use serde_json::json;

use super::*;

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn used(group: &str, plural: &str, value: &Value) -> String {
    let about = GroupResource::new(group, plural);
    let usage = Measure::of(&about).usage(&about, &object(value), 100);
    usage.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_objects_use() {
    let pod = json!({"spec": {
        "overhead": {"cpu": "100m"},
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"cpu": "2"}}},
            {"name": "b", "resources": {"requests": {"memory": "1Gi", "hugepages-2Mi": "4Mi"}}},
        ],
    }});
    assert_eq!(
        used("", "pods", &pod),
        "count/pods=1 cpu=1100m hugepages-2Mi=4Mi limits.cpu=2100m memory=1Gi pods=1 requests.cpu=1100m \
         requests.example.com/gpu=2 requests.hugepages-2Mi=4Mi requests.memory=1Gi"
    );
    let over = |more: Value| {
        let mut pod = pod.clone();
        pod["status"] = json!({"phase": "Running"});
        for (name, value) in more.as_object().expect("an object") {
            pod[name] = value.clone();
        }
        used("", "pods", &pod)
    };
    assert_eq!(over(json!({"status": {"phase": "Succeeded"}})), "count/pods=1");
    let deleted = |grace: i64| json!({"metadata": {"deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": grace}});
    assert_eq!(over(deleted(30)), "count/pods=1");
    assert_ne!(over(deleted(40)), "count/pods=1");
    let claim = json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1.5"}}}});
    assert_eq!(
        used("", "persistentvolumeclaims", &claim),
        "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 \
         gold.storageclass.storage.k8s.io/requests.storage=2 persistentvolumeclaims=1 requests.storage=2"
    );
    assert_eq!(used("", "secrets", &json!({})), "count/secrets=1 secrets=1");
    assert_eq!(used("apps", "deployments", &json!({})), "count/deployments.apps=1");
}

#[test]
fn what_services_use() {
    for (spec, expected) in [
        (json!({"type": "ClusterIP", "ports": [{}]}), (0, 0)),
        (json!({"type": "NodePort", "ports": [{}, {}]}), (0, 2)),
        (json!({"type": "LoadBalancer", "ports": [{}, {}]}), (1, 2)),
        (
            json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{}, {"nodePort": 30000}]}),
            (1, 1),
        ),
    ] {
        let (balancers, ports) = expected;
        assert_eq!(
            used("", "services", &json!({"spec": spec})),
            format!(
                "count/services=1 services=1 services.loadbalancers={balancers} services.nodeports={ports}"
            )
        );
    }
}

#[test]
fn names_belong_to_one_kind() {
    for (name, group, plural) in [
        ("pods", "", "pods"),
        ("requests.cpu", "", "pods"),
        ("requests.example.com/gpu", "", "pods"),
        ("hugepages-2Mi", "", "pods"),
        ("services.nodeports", "", "services"),
        ("requests.storage", "", "persistentvolumeclaims"),
        ("gold.storageclass.storage.k8s.io/requests.storage", "", "persistentvolumeclaims"),
        ("secrets", "", "secrets"),
        ("count/secrets", "", "secrets"),
        ("count/widgets.example.com", "example.com", "widgets"),
    ] {
        let kinds = [
            ("", "pods"),
            ("", "services"),
            ("", "persistentvolumeclaims"),
            ("", "secrets"),
            ("", "configmaps"),
            ("example.com", "widgets"),
            ("apps", "secrets"),
        ];
        let owners: Vec<(&str, &str)> = kinds
            .into_iter()
            .filter(|(group, plural)| {
                let about = GroupResource::new(*group, *plural);
                Measure::of(&about).counts(&about, name)
            })
            .collect();
        assert_eq!(owners, [(group, plural)], "{name}");
    }
}

#[test]
fn quotas_of_compute_demand_that_pods_say_what_they_need() {
    let asks = |resources: Value| {
        object(
            &json!({"spec": {"containers": [{"name": "c", "resources": resources}], "initContainers": [{"name": "b"}]}}),
        )
    };
    let names = ["requests.cpu", "limits.memory", "pods"];
    let check = |pod: &Object| Measure::Pods.constraints(names.into_iter(), pod);
    assert_eq!(
        check(&asks(json!({"requests": {"cpu": "1"}}))),
        Err("must specify limits.memory for: b,c; requests.cpu for: b".to_owned())
    );
    let mut whole = asks(json!({}));
    whole["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    assert_eq!(check(&whole), Ok(()));
}

#[test]
fn scopes_say_which_pods_count() {
    let matches = |spec: Value, pod: Value| {
        scope::matches(&object(&json!({"spec": spec})), Measure::Pods, &object(&pod))
    };
    let ends = json!({"spec": {"activeDeadlineSeconds": 5}});
    assert!(matches(json!({"scopes": ["Terminating"]}), ends.clone()));
    assert!(!matches(json!({"scopes": ["NotTerminating"]}), ends));
    let best = json!({"status": {"qosClass": "BestEffort"}});
    assert!(matches(json!({"scopes": ["BestEffort", "NotTerminating"]}), best.clone()));
    assert!(!matches(json!({"scopes": ["NotBestEffort"]}), best));
    let class = |operator: &str, values: &[&str]| json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}});
    let high = json!({"spec": {"priorityClassName": "high"}});
    for (operator, values, with, without) in [
        ("Exists", &[][..], true, false),
        ("DoesNotExist", &[][..], false, true),
        ("In", &["high"][..], true, false),
        ("In", &["low"][..], false, false),
        ("NotIn", &["high"][..], false, true),
        ("NotIn", &["low"][..], true, true),
    ] {
        assert_eq!(matches(class(operator, values), high.clone()), with, "{operator} {values:?}");
        assert_eq!(matches(class(operator, values), json!({})), without, "{operator} {values:?}");
    }
    let elsewhere = json!({"spec": {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"podAffinityTerm": {"namespaces": ["other"]}},
    ]}}}});
    assert!(matches(json!({"scopes": ["CrossNamespacePodAffinity"]}), elsewhere));
    let about = |measure| {
        scope::matches(&object(&json!({"spec": {"scopes": ["Terminating"]}})), measure, &Object::new())
    };
    assert!(!about(Measure::Count), "what has no scope is in none");
}
