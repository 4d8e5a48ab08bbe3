use concord_meta::UserInfo;
use concord_server::RequestInfo;
use serde_json::{Value, json};

use super::*;

const WAIT: Duration = Duration::from_secs(15);

fn level(name: &str, shares: u32, response: &Value) -> PriorityLevel {
    let limited =
        json!({"nominalConcurrencyShares": shares, "limitResponse": response, "borrowingLimitPercent": 0});
    let object = json!({"metadata": {"name": name, "uid": format!("{name}-level")}, "spec": {
        "type": "Limited", "limited": limited,
    }});
    PriorityLevel::read(object.to_string().as_bytes()).expect("a level")
}

fn exempt() -> PriorityLevel {
    let object = json!({"metadata": {"name": "exempt", "uid": "exempt-level"}, "spec": {"type": "Exempt"}});
    PriorityLevel::read(object.to_string().as_bytes()).expect("a level")
}

fn schema(name: &str, level: &str, precedence: u32, group: &str) -> FlowSchema {
    let rule = json!({
        "subjects": [{"kind": "Group", "group": {"name": group}}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true}],
    });
    let object = json!({"metadata": {"name": name, "uid": format!("{name}-schema")}, "spec": {
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence,
        "distinguisherMethod": {"type": "ByUser"}, "rules": [rule],
    }});
    FlowSchema::read(object.to_string().as_bytes()).expect("a schema")
}

fn queue() -> Value {
    json!({"type": "Queue", "queuing": {"queues": 4, "handSize": 2, "queueLengthLimit": 1}})
}

/// Two seats for users, who wait in queues, and two for the rest.
fn controller() -> FlowController {
    let controller = FlowController::new(Limits { seats: 4, wait: WAIT }, Arc::default());
    let levels = [exempt(), level("users", 5, &queue()), level("catch-all", 5, &json!({"type": "Reject"}))];
    let schemas = [
        schema("catch-all", "catch-all", 10_000, "nobody"),
        schema("users", "users", 500, "users"),
        schema("dangling", "missing", 1, "users"),
        schema("masters", "exempt", 2, "system:masters"),
    ];
    controller.configure(levels, schemas);
    controller
}

async fn admit(controller: &FlowController, user: &str, group: &str) -> Admission {
    let user = UserInfo { name: user.to_owned(), groups: vec![group.to_owned()], ..UserInfo::default() };
    let uri = "/api/v1/pods".parse().expect("a URI");
    let info = RequestInfo::new(&http::Method::GET, &uri).expect("readable");
    controller.admit(&Attributes { user: &user, request: &info }, Deadline::NONE).await
}

#[tokio::test]
async fn requests_belong_to_the_first_schema_that_matches() {
    let controller = controller();
    for (group, schema, level, limited) in [
        ("users", "users-schema", "users-level", true),
        ("system:masters", "masters-schema", "exempt-level", false),
        ("others", "catch-all-schema", "catch-all-level", true),
    ] {
        let Admission { flow_schema, priority_level, seat } = admit(&controller, "x", group).await;
        assert_eq!(
            (flow_schema, priority_level),
            (schema.parse().expect("text"), level.parse().expect("text"))
        );
        assert_eq!(seat.expect("there is room").is_limited(), limited, "{group}");
    }
}

#[tokio::test]
async fn before_there_are_objects_all_share_all_seats() {
    let controller = FlowController::new(Limits { seats: 2, wait: WAIT }, Arc::default());
    let one = admit(&controller, "x", "users").await.seat;
    let other = admit(&controller, "x", "system:masters").await.seat;
    assert!(one.is_some() && other.is_some());
    assert!(admit(&controller, "x", "users").await.seat.is_none());
    drop(one);
    assert!(admit(&controller, "x", "users").await.seat.is_some());
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_a_seat_or_is_sent_away_in_time() {
    let controller = Arc::new(controller());
    let seats = [admit(&controller, "a", "users").await.seat, admit(&controller, "a", "users").await.seat];
    let begun = Instant::now();
    assert!(admit(&controller, "a", "users").await.seat.is_none());
    assert_eq!(begun.elapsed(), WAIT);
    let same = controller.clone();
    let waiting = tokio::spawn(async move { admit(&same, "b", "users").await.seat.is_some() });
    tokio::task::yield_now().await;
    drop(seats);
    assert!(waiting.await.expect("no panic"));
}

#[tokio::test]
async fn a_place_that_is_given_up_is_free() {
    let controller = controller();
    let seats = [admit(&controller, "a", "users").await.seat, admit(&controller, "a", "users").await.seat];
    for _ in 0..100 {
        // Polled once, and dropped while it waits.
        let gone = tokio::select! {
            biased;
            _ = admit(&controller, "a", "users") => false,
            () = std::future::ready(()) => true,
        };
        assert!(gone);
    }
    let level = controller.shared.known.lock()["users"];
    assert_eq!(controller.shared.scheduler.lock().load(level), (2, 0));
    drop(seats);
    assert_eq!(controller.shared.scheduler.lock().load(level), (0, 0));
}

#[tokio::test]
async fn who_waits_in_a_level_that_is_removed_runs() {
    let controller = Arc::new(controller());
    let seats = [admit(&controller, "a", "users").await.seat, admit(&controller, "a", "users").await.seat];
    let same = controller.clone();
    let waiting = tokio::spawn(async move { admit(&same, "b", "users").await.seat.is_some() });
    let level = controller.shared.known.lock()["users"];
    while controller.shared.scheduler.lock().load(level).1 == 0 {
        tokio::task::yield_now().await;
    }
    controller.configure([exempt()], []);
    assert!(waiting.await.expect("no panic"));
    assert_eq!(controller.shared.scheduler.lock().load(level).0, 2, "who runs there is still counted");
    drop(seats);
    assert_eq!(controller.shared.scheduler.lock().load(level), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn levels_that_come_and_go_leave_nothing_behind_and_send_nobody_away() {
    let controller = Arc::new(controller());
    let (same, done) = (controller.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let ends = done.clone();
    let asking = tokio::spawn(async move {
        while !ends.load(std::sync::atomic::Ordering::Relaxed) {
            assert!(admit(&same, "a", "users").await.seat.is_some(), "its level was just removed");
        }
    });
    for round in 0..2000 {
        let name = format!("level-{round}");
        let levels = [exempt(), level(&name, 5, &queue())];
        controller.configure(levels, [schema("users", &name, 500, "users")]);
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    asking.await.expect("no panic");
    controller.configure([exempt()], []);
    let catch_all = BTreeMap::from([("catch-all".to_owned(), controller.shared.known.lock()["catch-all"])]);
    assert_eq!(*controller.shared.known.lock(), catch_all);
    assert_eq!(controller.shared.scheduler.lock().levels(), 1);
}

#[test]
fn seats_are_shared_as_upstream_shares_them() {
    // The default levels, on a server with 600 seats; the numbers are those of kube-apiserver v1.36.4.
    for (shares, lendable, nominal, reserved) in [
        (30, 33, 74, 50),
        (40, 25, 98, 73),
        (10, 0, 25, 25),
        (40, 50, 98, 49),
        (100, 90, 245, 24),
        (20, 50, 49, 24),
        (5, 0, 13, 13),
    ] {
        let level = PriorityLevel { shares, lendable_percent: lendable, ..PriorityLevel::default() };
        let limits = limits(&level, 245, 600);
        assert_eq!((limits.nominal, limits.reserved), (nominal, reserved), "{shares} {lendable}");
    }
}
