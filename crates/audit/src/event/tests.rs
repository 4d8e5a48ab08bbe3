use serde_json::json;

use super::*;

fn user(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    UserInfo { name: name.to_owned(), groups, ..UserInfo::default() }
}

fn event() -> Event {
    let time = |text: &str| text.parse::<Timestamp>().expect("a time");
    Event {
        level: Level::RequestResponse,
        audit_id: "a-1".to_owned(),
        stage: Stage::ResponseComplete,
        request_uri: "/api/v1/namespaces/n/configmaps?a=1&b=2".to_owned(),
        verb: "create".to_owned(),
        user: Some(UserInfo { uid: "u".to_owned(), ..user("alice", &["devs", "system:authenticated"]) }),
        impersonated: None,
        source_ips: vec!["127.0.0.1".to_owned()],
        user_agent: "curl".to_owned(),
        object: Some(ObjectReference {
            resource: "configmaps".to_owned(),
            namespace: "n".to_owned(),
            name: "c".to_owned(),
            api_version: "v1".to_owned(),
            ..ObjectReference::default()
        }),
        response_status: Some(ResponseStatus::code(201)),
        request_object: Some(br#"{"kind":"ConfigMap"}"#.to_vec()),
        response_object: None,
        received: time("2026-11-16T06:43:39.237555Z"),
        stage_time: time("2026-11-16T06:43:39.245Z"),
        annotations: [("authorization.k8s.io/decision".to_owned(), "allow".to_owned())].into(),
    }
}

fn json(event: &Event) -> String {
    String::from_utf8(event.to_json()).expect("text")
}

/// The lines are those of kube-apiserver v1.36.4 about the same requests.
#[test]
fn members_are_in_upstreams_order() {
    let expected = concat!(
        r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"a-1","#,
        r#""stage":"ResponseComplete","requestURI":"/api/v1/namespaces/n/configmaps?a=1\u0026b=2","verb":"create","#,
        r#""user":{"username":"alice","uid":"u","groups":["devs","system:authenticated"]},"sourceIPs":["127.0.0.1"],"#,
        r#""userAgent":"curl","objectRef":{"resource":"configmaps","namespace":"n","name":"c","apiVersion":"v1"},"#,
        r#""responseStatus":{"metadata":{},"code":201},"requestObject":{"kind":"ConfigMap"},"#,
        r#""requestReceivedTimestamp":"2026-11-16T06:43:39.237555Z","stageTimestamp":"2026-11-16T06:43:39.245000Z","#,
        r#""annotations":{"authorization.k8s.io/decision":"allow"}}"#,
        "\n"
    );
    assert_eq!(json(&event()), expected);
}

#[test]
fn what_is_not_known_is_left_out() {
    let mut event = event();
    (event.user, event.object, event.response_status, event.request_object) = (None, None, None, None);
    event.annotations.clear();
    event.source_ips.clear();
    let line = json(&event);
    assert!(line.contains(r#""user":{},"userAgent":"curl","requestReceivedTimestamp""#), "{line}");
    assert!(line.ends_with("245000Z\"}\n"), "{line}");
}

#[test]
fn impersonation_and_failures_are_told() {
    let mut event = event();
    let constraint = "impersonate:user-info".to_owned();
    event.impersonated = Some(Impersonated { user: user("bob", &["dev"]), constraint });
    let forbidden = Status::not_found(&concord_meta::GroupResource::new("", "pods"), "x<y");
    event.response_status = Some(ResponseStatus::of(&forbidden, 404));
    let line = json(&event);
    let expected = concat!(
        r#""impersonatedUser":{"username":"bob","groups":["dev"]},"#,
        r#""authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},"sourceIPs""#
    );
    assert!(line.contains(expected), "{line}");
    let expected = concat!(
        r#""responseStatus":{"metadata":{},"status":"Failure","message":"pods \"x\u003cy\" not found","#,
        r#""reason":"NotFound","details":{"kind":"pods","name":"x\u003cy"},"code":404}"#
    );
    assert!(line.contains(expected), "{line}");
}

#[test]
fn a_client_cannot_make_a_line_long_or_two_of_one() {
    let mut event = event();
    event.user_agent = "ü".repeat(2000);
    event.request_uri = "/a\nb".to_owned();
    for line in [event.to_json(), event.to_legacy()] {
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert!(line.len() < 2500, "{}", line.len());
    }
}

#[test]
fn the_older_form_is_upstreams() {
    let mut event = event();
    event.impersonated = Some(Impersonated { user: user("bob", &[]), constraint: String::new() });
    let expected = concat!(
        r#"2026-11-16T06:43:39.237555Z AUDIT: id="a-1" stage="ResponseComplete" ip="127.0.0.1" method="create" "#,
        r#"user="alice" groups="\"devs\",\"system:authenticated\"" as="bob" asgroups="<lookup>" user-agent="curl" "#,
        r#"namespace="n" uri="/api/v1/namespaces/n/configmaps?a=1&b=2" response="201""#,
        "\n"
    );
    assert_eq!(String::from_utf8(event.to_legacy()).expect("text"), expected);
}

#[test]
fn managed_fields_can_be_left_out_of_everything() {
    let object = || json!({"metadata": {"name": "a", "managedFields": [1]}});
    let bare = || json!({"metadata": {"name": "a"}});
    assert_eq!(without_managed_fields(object()), bare());
    assert_eq!(without_managed_fields(json!({"items": [object()]})), json!({"items": [bare()]}));
    let table = without_managed_fields(json!({"rows": [{"object": object()}, {}]}));
    assert_eq!(table, json!({"rows": [{"object": bare()}, {}]}));
}
