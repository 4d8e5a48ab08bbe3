//! How a pod is doing.

use super::*;

const POD: Kind = ("", "v1", "Pod");

/// The cells Ready, Status and Restarts.
#[track_caller]
fn check_state(pod: Value, expected: [&str; 3]) {
    let cells = row(POD, pod.clone()).cells;
    assert_eq!(cells[1..4], expected, "{pod}");
}

/// A pod with containers and init containers of these names; a name with `!` is a sidecar's.
fn pod(containers: &[&str], init_containers: &[&str], status: Value) -> Value {
    let container = |name: &&str| match name.strip_suffix('!') {
        Some(name) => json!({"name": name, "restartPolicy": "Always"}),
        None => json!({"name": name}),
    };
    let all = |names: &[&str]| names.iter().map(container).collect::<Vec<_>>();
    json!({"spec": {"containers": all(containers), "initContainers": all(init_containers)}, "status": status})
}

fn running(name: &str) -> Value {
    json!({"name": name, "ready": true, "started": true, "state": {"running": {}}})
}

fn waiting(name: &str, reason: &str) -> Value {
    json!({"name": name, "state": {"waiting": {"reason": reason}}})
}

fn ended(name: &str, exit_code: i32, reason: &str) -> Value {
    json!({"name": name, "state": {"terminated": {"exitCode": exit_code, "reason": reason}}})
}

#[test]
fn everything_about_a_pod() {
    let pod = json!({
        "spec": {
            "containers": [{"name": "a"}],
            "nodeName": "n1",
            "readinessGates": [{"conditionType": "gate"}, {"conditionType": "other"}],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.2",
            "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}],
            "nominatedNodeName": "n2",
            "conditions": [{"type": "gate", "status": "True"}],
            "containerStatuses": [running("a")],
        },
    });
    check(POD, pod, json!(["x", "1/1", "Running", "0", "2d5h", "10.0.0.2", "n1", "n2", "1/2"]));
    let cells = json!(["x", "0/0", "", "0", "2d5h", "<none>", "<none>", "<none>", "<none>"]);
    check(POD, json!({}), cells);
}

#[test]
fn a_pod_ip_outweighs_a_list_that_differs() {
    let ip = |status| cell(POD, 5, json!({"status": status}));
    assert_eq!(ip(json!({"podIP": "a", "podIPs": [{"ip": "b"}]})), "a");
    assert_eq!(ip(json!({"podIPs": [{"ip": "b"}]})), "b");
    assert_eq!(ip(json!({"podIPs": [{}]})), "<none>");
}

#[test]
fn the_phase_is_the_least_that_is_known() {
    check_state(pod(&["a"], &[], json!({"phase": "Pending"})), ["0/1", "Pending", "0"]);
    check_state(pod(&["a"], &[], json!({"phase": "Failed", "reason": "Evicted"})), ["0/1", "Evicted", "0"]);
    let gated = json!({"phase": "Pending", "reason": "x",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]});
    check_state(pod(&["a"], &[], gated), ["0/1", "SchedulingGated", "0"]);
}

#[test]
fn the_first_container_in_trouble_gives_the_reason() {
    let state =
        |statuses: Value| pod(&["a", "b"], &[], json!({"phase": "Running", "containerStatuses": statuses}));
    check_state(
        state(json!([running("a"), waiting("b", "CrashLoopBackOff")])),
        ["1/2", "CrashLoopBackOff", "0"],
    );
    check_state(
        state(json!([waiting("a", "ErrImagePull"), ended("b", 1, "Error")])),
        ["0/2", "ErrImagePull", "0"],
    );
    check_state(state(json!([running("a"), ended("b", 3, "")])), ["1/2", "ExitCode:3", "0"]);
    let killed = json!({"name": "b", "state": {"terminated": {"exitCode": 137, "signal": 9}}});
    check_state(state(json!([running("a"), killed])), ["1/2", "Signal:9", "0"]);
    // Waiting without a reason says nothing.
    check_state(state(json!([running("a"), waiting("b", "")])), ["1/2", "Running", "0"]);
}

#[test]
fn a_pod_is_completed_when_all_its_containers_are() {
    let state = |ready: &str, statuses: Value| {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let status = json!({"phase": "Running", "conditions": conditions, "containerStatuses": statuses});
        pod(&["a", "b"], &[], status)
    };
    let done = ended("a", 0, "Completed");
    check_state(state("True", json!([done, running("b")])), ["1/2", "Running", "0"]);
    check_state(state("False", json!([done, running("b")])), ["1/2", "NotReady", "0"]);
    check_state(state("False", json!([done, ended("b", 1, "Error")])), ["0/2", "Error", "0"]);
    check_state(state("False", json!([done, ended("b", 0, "Completed")])), ["0/2", "Completed", "0"]);
}

#[test]
fn initialization_is_shown_while_it_lasts() {
    let state = |statuses: Value| {
        let status = json!({"phase": "Pending", "initContainerStatuses": statuses,
            "containerStatuses": [waiting("c", "PodInitializing")]});
        pod(&["c"], &["a", "b"], status)
    };
    check_state(state(json!([waiting("a", "PodInitializing")])), ["0/1", "Init:0/2", "0"]);
    check_state(state(json!([ended("a", 0, "Completed"), running("b")])), ["0/1", "Init:1/2", "0"]);
    check_state(state(json!([ended("a", 1, "Error")])), ["0/1", "Init:Error", "0"]);
    check_state(state(json!([ended("a", 1, "")])), ["0/1", "Init:ExitCode:1", "0"]);
    check_state(state(json!([waiting("a", "ImagePullBackOff")])), ["0/1", "Init:ImagePullBackOff", "0"]);
    let killed = json!({"name": "a", "state": {"terminated": {"exitCode": 137, "signal": 9}}});
    check_state(state(json!([killed])), ["0/1", "Init:Signal:9", "0"]);
    let done = json!([ended("a", 0, "Completed"), ended("b", 0, "Completed")]);
    check_state(state(done), ["0/1", "PodInitializing", "0"]);
}

#[test]
fn sidecars_count_among_the_containers() {
    let state = |sidecar: Value| {
        let status = json!({"phase": "Running", "initContainerStatuses": [sidecar],
            "containerStatuses": [running("a")]});
        pod(&["a"], &["s!"], status)
    };
    check_state(state(running("s")), ["2/2", "Running", "0"]);
    let started = json!({"name": "s", "started": true, "ready": false, "state": {"running": {}}});
    check_state(state(started), ["1/2", "Running", "0"]);
    let starting = json!({"name": "s", "started": false, "state": {"running": {}}});
    check_state(state(starting), ["0/2", "Init:0/1", "0"]);
}

#[test]
fn an_initialized_pod_does_not_go_back() {
    let status = json!({"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
        "initContainerStatuses": [waiting("s", "CrashLoopBackOff")], "containerStatuses": [running("a")]});
    check_state(pod(&["a"], &["s!"], status), ["1/2", "Init:CrashLoopBackOff", "0"]);
}

#[test]
fn restarts_are_counted_and_dated() {
    let restarted = |name: &str, count: i32, finished: &str| {
        let mut status = running(name);
        status["restartCount"] = count.into();
        status["lastState"] = json!({"terminated": {"exitCode": 1, "finishedAt": finished}});
        status
    };
    let (earlier, later) = ("2026-01-03T04:00:00Z", "2026-01-03T04:54:30Z");
    let statuses = json!([restarted("a", 2, earlier), restarted("b", 3, later)]);
    let status = json!({"phase": "Running", "containerStatuses": statuses});
    check_state(pod(&["a", "b"], &[], status), ["2/2", "Running", "5 (5m30s ago)"]);

    // Of init containers only sidecars still count when the others are done.
    let mut done = restarted("i", 7, later);
    done["state"] = json!({"terminated": {"exitCode": 0}});
    let status = json!({"phase": "Running", "initContainerStatuses": [done, restarted("s", 1, earlier)],
        "containerStatuses": [running("a")]});
    check_state(pod(&["a"], &["i", "s!"], status), ["2/2", "Running", "1 (60m ago)"]);

    let mut failing = restarted("i", 7, later);
    failing["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let status = json!({"phase": "Pending", "initContainerStatuses": [failing]});
    check_state(pod(&["a"], &["i"], status), ["0/1", "Init:CrashLoopBackOff", "7 (5m30s ago)"]);

    let status = json!({"containerStatuses": [{"restartCount": i64::MAX}, {"restartCount": i64::MAX}]});
    check_state(pod(&["a", "b"], &[], status), ["0/2", "", "9223372036854775807"]);
}

#[test]
fn deletion_outweighs_all_but_the_end() {
    let deleted = |status: Value| {
        let metadata = json!({"deletionTimestamp": "2026-01-03T04:59:00Z"});
        json!({"metadata": metadata, "spec": {"containers": [{"name": "a"}]}, "status": status})
    };
    check_state(deleted(json!({"phase": "Running"})), ["0/1", "Terminating", "0"]);
    check_state(deleted(json!({"phase": "Succeeded"})), ["0/1", "Succeeded", "0"]);
    check_state(deleted(json!({"phase": "Failed", "reason": "NodeLost"})), ["0/1", "Unknown", "0"]);
}

#[test]
fn pods_that_ended_say_so_in_a_condition() {
    let reasons = |phase: &str| {
        let row = row(POD, json!({"status": {"phase": phase}}));
        row.conditions.iter().map(|condition| condition.reason).collect::<Vec<_>>()
    };
    assert_eq!(reasons("Succeeded"), ["Succeeded"]);
    assert_eq!(reasons("Failed"), ["Failed"]);
    assert!(reasons("Running").is_empty());
}
