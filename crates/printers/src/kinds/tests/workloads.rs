//! What keeps pods running, and what ends.

use super::*;

/// A template with two containers.
fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "a", "image": "i1"}, {"name": "b", "image": "i2"}],
            "nodeSelector": {"disk": "ssd"},
        },
    })
}

#[test]
fn deployments() {
    let kind = ("apps", "v1", "Deployment");
    let selector = json!({"matchLabels": {"app": "web"}});
    let object = json!({
        "spec": {"replicas": 3, "template": template(), "selector": selector},
        "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
    });
    check(kind, object, json!(["x", "1/3", 2, 1, "2d5h", "a,b", "i1,i2", "app=web"]));
    check(kind, json!({}), json!(["x", "0/1", 0, 0, "2d5h", "", "", ""]));
    let bad = json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "no label"}}}});
    check(kind, bad, json!(["x", "0/0", 0, 0, "2d5h", "", "", "<invalid>"]));
}

#[test]
fn replica_sets_and_their_forerunners() {
    let status = json!({"replicas": 2, "readyReplicas": 1});
    let selector = json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
    let set =
        json!({"spec": {"replicas": 3, "template": template(), "selector": selector}, "status": status});
    check(("apps", "v1", "ReplicaSet"), set, json!(["x", 3, 2, 1, "2d5h", "a,b", "i1,i2", "app"]));
    check(("apps", "v1", "ReplicaSet"), json!({}), json!(["x", 1, 0, 0, "2d5h", "", "", "<none>"]));

    let kind = ("", "v1", "ReplicationController");
    let mut controller =
        json!({"spec": {"template": template(), "selector": {"b": "2", "a": "1"}}, "status": status});
    check(kind, controller.clone(), json!(["x", 1, 2, 1, "2d5h", "a,b", "i1,i2", "a=1,b=2"]));
    controller["spec"]["selector"] = Value::Null;
    assert_eq!(cell(kind, 7, controller), "app=web");
}

#[test]
fn stateful_and_daemon_sets() {
    let kind = ("apps", "v1", "StatefulSet");
    let object = json!({"spec": {"replicas": 2, "template": template()}, "status": {"readyReplicas": 1}});
    check(kind, object, json!(["x", "1/2", "2d5h", "a,b", "i1,i2"]));

    let kind = ("apps", "v1", "DaemonSet");
    let object = json!({
        "spec": {"template": template(), "selector": {"matchLabels": {"app": "web"}}},
        "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                   "updatedNumberScheduled": 2, "numberAvailable": 1},
    });
    check(kind, object, json!(["x", 5, 4, 3, 2, 1, "disk=ssd", "2d5h", "a,b", "i1,i2", "app=web"]));
    check(kind, json!({}), json!(["x", 0, 0, 0, 0, 0, "<none>", "2d5h", "", "", "<none>"]));
}

#[test]
fn templates_and_revisions() {
    check(
        ("", "v1", "PodTemplate"),
        json!({"template": template()}),
        json!(["x", "a,b", "i1,i2", "app=web"]),
    );

    let kind = ("apps", "v1", "ControllerRevision");
    let owned = |api_version: &str, kind: &str| {
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "web", "controller": true});
        json!({"metadata": {"ownerReferences": [{"name": "other"}, owner]}, "revision": 7})
    };
    check(kind, owned("apps/v1", "StatefulSet"), json!(["x", "statefulset.apps/web", 7, "2d5h"]));
    assert_eq!(cell(kind, 1, owned("v1", "Node")), "node/web");
    assert_eq!(cell(kind, 1, owned("", "")), "web");
    assert_eq!(cell(kind, 1, owned("a/b/c", "Node")), "web");
    assert_eq!(cell(kind, 1, json!({})), "<none>");
}

#[test]
fn disruption_budgets() {
    let kind = ("policy", "v1", "PodDisruptionBudget");
    let object = json!({"spec": {"minAvailable": 2}, "status": {"disruptionsAllowed": 1}});
    check(kind, object, json!(["x", "2", "N/A", 1, "2d5h"]));
    check(kind, json!({"spec": {"maxUnavailable": "50%"}}), json!(["x", "N/A", "50%", 0, "2d5h"]));
}

const JOB: Kind = ("batch", "v1", "Job");

#[test]
fn jobs() {
    let object = json!({
        "spec": {"completions": 3, "template": template(), "selector": {"matchLabels": {"job": "x"}}},
        "status": {"succeeded": 1, "startTime": "2026-01-03T04:59:00Z"},
    });
    check(JOB, object, json!(["x", "Running", "1/3", "60s", "2d5h", "a,b", "i1,i2", "job=x"]));
    check(JOB, json!({}), json!(["x", "Running", "0/1", "", "2d5h", "", "", "<none>"]));
    let parallel = json!({"spec": {"parallelism": 4}, "status": {"succeeded": 2}});
    assert_eq!(cell(JOB, 2, parallel), "2/1 of 4");
    let done =
        json!({"status": {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:05:30Z"}});
    assert_eq!(cell(JOB, 3, done), "5m30s");
}

#[test]
fn conditions_say_how_far_a_job_is() {
    let status = |conditions: &[(&str, &str)], deleted: bool| {
        let condition = |(name, status): &(&str, &str)| json!({"type": name, "status": status});
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let time = deleted.then_some("2026-01-03T04:59:00Z");
        let metadata = json!({"deletionTimestamp": time});
        cell(JOB, 1, json!({"metadata": metadata, "status": {"conditions": conditions}}))
    };
    assert_eq!(status(&[("SuccessCriteriaMet", "True"), ("Complete", "True")], true), "Complete");
    assert_eq!(status(&[("FailureTarget", "True"), ("Failed", "True")], true), "Failed");
    assert_eq!(status(&[("Suspended", "True")], true), "Terminating");
    assert_eq!(status(&[("Suspended", "True"), ("FailureTarget", "True")], false), "Suspended");
    assert_eq!(status(&[("SuccessCriteriaMet", "True"), ("FailureTarget", "True")], false), "FailureTarget");
    assert_eq!(status(&[("SuccessCriteriaMet", "True")], false), "SuccessCriteriaMet");
    // The first condition of a type counts.
    assert_eq!(status(&[("Complete", "False"), ("Complete", "True")], false), "Running");
}

#[test]
fn cron_jobs() {
    let kind = ("batch", "v1", "CronJob");
    let object = json!({
        "spec": {"schedule": "* * * * *", "timeZone": "Etc/UTC", "suspend": true,
                 "jobTemplate": {"spec": {"template": template()}}},
        "status": {"active": [{}, {}], "lastScheduleTime": "2026-01-03T04:58:00Z"},
    });
    let cells = json!(["x", "* * * * *", "Etc/UTC", "True", 2, "2m", "2d5h", "a,b", "i1,i2", "<none>"]);
    check(kind, object, cells);
    check(kind, json!({}), json!(["x", "", "<none>", "False", 0, "<none>", "2d5h", "", "", "<none>"]));
}

#[test]
fn priorities_and_groups() {
    let kind = ("scheduling.k8s.io", "v1", "PriorityClass");
    let object = json!({"value": -10, "globalDefault": true, "preemptionPolicy": "Never"});
    check(kind, object, json!(["x", -10, true, "2d5h", "Never"]));
    check(kind, json!({}), json!(["x", 0, false, "2d5h", "PreemptLowerPriority"]));
    check(("scheduling.k8s.io", "v1alpha2", "Workload"), json!({}), json!(["x", "2d5h"]));

    let kind = ("scheduling.k8s.io", "v1alpha2", "PodGroup");
    let object = json!({
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}},
                 "podGroupTemplateRef": {"workload": {"workloadName": "w"}}},
        "status": {"conditions": [{"type": "PodGroupScheduled", "status": "True"}]},
    });
    check(kind, object, json!(["x", "Gang", "w", "Scheduled", "2d5h"]));
    check(kind, json!({}), json!(["x", "Basic", "<none>", "Pending", "2d5h"]));
    let status = |conditions: Value| cell(kind, 3, json!({"status": {"conditions": conditions}}));
    let unscheduled = json!({"type": "PodGroupScheduled", "status": "False"});
    assert_eq!(status(json!([unscheduled])), "Unschedulable");
    let target = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
    assert_eq!(status(json!([target, unscheduled])), "PreemptionByScheduler");
}
