use concord_meta::UserInfo;
use concord_server::RequestInfo;
use serde_json::{Value, json};

use super::*;

fn schema(rules: &Value) -> FlowSchema {
    let object = json!({"metadata": {"name": "s", "uid": "u-1"}, "spec": {
        "priorityLevelConfiguration": {"name": "low"}, "matchingPrecedence": 7,
        "distinguisherMethod": {"type": "ByUser"}, "rules": rules,
    }});
    FlowSchema::read(object.to_string().as_bytes()).expect("a schema")
}

/// `user groups method uri`
fn matches(schema: &FlowSchema, request: &str) -> bool {
    let words: Vec<&str> = request.split(' ').collect();
    let groups = words[1].split(',').map(str::to_owned).collect();
    let user = UserInfo { name: words[0].to_owned(), groups, ..UserInfo::default() };
    let method = words[2].parse().expect("a method");
    let info = RequestInfo::new(&method, &words[3].parse().expect("a URI")).expect("readable");
    schema.matches(&Attributes { user: &user, request: &info })
}

#[test]
fn subjects_are_users_groups_and_accounts() {
    let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true}]);
    let user = json!({"kind": "User", "user": {"name": "alice"}});
    let group = json!({"kind": "Group", "group": {"name": "nodes"}});
    let account =
        json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}});
    let one = json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "b"}});
    let strange = json!({"kind": "Planet", "planet": {"name": "*"}});
    let schema =
        schema(&json!([{"subjects": [user, group, account, one, strange], "resourceRules": everything}]));
    assert_eq!((&*schema.name, &*schema.uid, &*schema.level), ("s", "u-1", "low"));
    assert_eq!((schema.precedence, schema.distinguisher), (7, Distinguisher::ByUser));
    for (request, expected) in [
        ("alice g GET /api/v1/pods", true),
        ("bob g GET /api/v1/pods", false),
        ("bob g,nodes GET /api/v1/pods", true),
        ("system:serviceaccount:kube-system:x g GET /api/v1/pods", true),
        ("system:serviceaccount:kube-public:x g GET /api/v1/pods", false),
        ("system:serviceaccount:a:b g GET /api/v1/pods", true),
        ("system:serviceaccount:a:c g GET /api/v1/pods", false),
        ("alice g GET /version", false),
    ] {
        assert_eq!(matches(&schema, request), expected, "{request}");
    }
}

#[test]
fn rules_are_about_resources_or_paths() {
    let everybody = json!([{"kind": "Group", "group": {"name": "*"}}]);
    let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/scale", "nodes/status"], "namespaces": ["a"]});
    let cluster = json!({"verbs": ["*"], "apiGroups": [""], "resources": ["nodes"], "namespaces": ["*"], "clusterScope": true});
    let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]});
    let schema = schema(&json!([
        {"subjects": everybody, "resourceRules": [pods, cluster]}, {"subjects": everybody, "nonResourceRules": [paths]},
    ]));
    for (request, expected) in [
        ("x g GET /api/v1/namespaces/a/pods", true),
        ("x g GET /api/v1/namespaces/b/pods", false),
        ("x g GET /api/v1/pods", false),
        ("x g DELETE /api/v1/namespaces/a/pods/x", false),
        ("x g GET /api/v1/namespaces/a/pods/x/log", false),
        ("x g GET /api/v1/namespaces/a/things/x/scale", true),
        ("x g GET /apis/apps/v1/namespaces/a/deployments/x/scale", false),
        ("x g DELETE /api/v1/nodes/n", true),
        ("x g GET /healthz", true),
        ("x g GET /healthz/ping", false),
        ("x g GET /apis/apps", true),
        ("x g POST /healthz", false),
    ] {
        assert_eq!(matches(&schema, request), expected, "{request}");
    }
}

#[test]
fn levels_are_read_as_they_are_stored() {
    let read = |spec: Value| {
        let object = json!({"metadata": {"name": "l", "uid": "u"}, "spec": spec});
        PriorityLevel::read(object.to_string().as_bytes()).expect("a level")
    };
    let level = read(json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": 20, "lendablePercent": 50, "borrowingLimitPercent": 10,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}},
    }}));
    let queuing = Some(Queuing { queues: 128, hand_size: 6, queue_length_limit: 50 });
    assert_eq!((level.shares, level.lendable_percent, level.borrowing_limit_percent), (20, 50, Some(10)));
    assert_eq!((level.queuing, level.exempt), (queuing, false));
    let level = read(json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}));
    assert_eq!((level.shares, level.queuing), (30, None));
    let level =
        read(json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}));
    assert_eq!((level.exempt, level.shares), (true, 0));
    for nonsense in ["", "{}", "null", "{\"metadata\":{\"name\":3},\"spec\":{\"type\":\"Exempt\"}}"] {
        assert_eq!(PriorityLevel::read(nonsense.as_bytes()), None, "{nonsense}");
        assert_eq!(FlowSchema::read(nonsense.as_bytes()), None, "{nonsense}");
    }
}
