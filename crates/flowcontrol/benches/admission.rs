//! What a request pays for flow control while there is room: finding its flow, taking a seat and giving it back.

use std::{sync::Arc, time::Duration};

use concord_flowcontrol::{FlowController, FlowSchema, Limits, PriorityLevel};
use concord_meta::UserInfo;
use concord_server::{Attributes, Deadline, FlowControl as _, RequestInfo};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// As many schemas and levels as every cluster has; the last one matches.
fn controller() -> FlowController {
    let level = |name: &str| {
        let queuing = json!({"queues": 128, "handSize": 6, "queueLengthLimit": 50});
        let limited =
            json!({"nominalConcurrencyShares": 20, "limitResponse": {"type": "Queue", "queuing": queuing}});
        let object =
            json!({"metadata": {"name": name, "uid": name}, "spec": {"type": "Limited", "limited": limited}});
        PriorityLevel::read(object.to_string().as_bytes()).expect("a level")
    };
    let schema = |name: &str, precedence: u32, subjects: Value| {
        let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true}]);
        let object = json!({"metadata": {"name": name, "uid": name}, "spec": {
            "priorityLevelConfiguration": {"name": "level"}, "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": subjects, "resourceRules": everything}],
        }});
        FlowSchema::read(object.to_string().as_bytes()).expect("a schema")
    };
    let group = |name: &str| json!([{"kind": "Group", "group": {"name": name}}]);
    let mut schemas: Vec<FlowSchema> = (0..9)
        .map(|number| schema(&format!("other-{number}"), number, group(&format!("group-{number}"))))
        .collect();
    schemas.push(schema("mine", 100, group("system:authenticated")));
    let controller =
        FlowController::new(Limits { seats: 600, wait: Duration::from_secs(15) }, Arc::default());
    controller.configure([level("level")], schemas);
    controller
}

#[divan::bench(threads = [1, 2])]
fn a_seat_while_there_is_room(bencher: divan::Bencher<'_, '_>) {
    let controller = controller();
    let groups = vec!["developers".to_owned(), UserInfo::AUTHENTICATED.to_owned()];
    let user = UserInfo { name: "alice".to_owned(), groups, ..UserInfo::default() };
    let uri = "/api/v1/namespaces/default/configmaps/a".parse().expect("a URI");
    let request = RequestInfo::new(&http::Method::GET, &uri).expect("readable");
    bencher.bench(|| {
        let attributes = Attributes { user: &user, request: &request };
        let mut admission = controller.admit(&attributes, Deadline::NONE);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match admission.as_mut().poll(&mut context) {
            std::task::Poll::Ready(admission) => assert!(admission.seat.is_some()),
            std::task::Poll::Pending => unreachable!("there is room"),
        }
    });
}
