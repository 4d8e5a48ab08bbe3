use std::time::Duration;

use async_trait::async_trait;
use concord_audit::{Event, Policy};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::*;
use crate::{
    Accept, UserInfo, full,
    http::{
        Handler,
        testing::{read, request},
        text, with_body,
    },
    respond_status,
};

/// Answers by the path.
struct Answers;

#[async_trait]
impl Handler for Answers {
    async fn handle(&self, request: Request) -> Response {
        match request.uri().path() {
            "/missing" => {
                let pods = concord_meta::GroupResource::new("", "pods");
                respond_status(&Status::not_found(&pods, "x"), &Accept::of(&request))
            }
            "/panic" => panic!("on purpose"),
            "/never" => std::future::pending().await,
            "/large" => with_body(StatusCode::OK, "application/json", vec![b'x'; MAX_OBJECT + 1].into()),
            "/pretty" => {
                let body = "{\n  \"kind\": \"Pod\",\n  \"metadata\": {\"managedFields\": []}\n}\n";
                with_body(StatusCode::OK, "application/json", body.into())
            }
            "/text" => text(StatusCode::OK, "words"),
            _ => {
                let captured = request.audit().is_some_and(AuditHandle::wants_response);
                assert!(!(captured && request.headers().contains_key(ACCEPT_ENCODING)));
                if let Some(audit) = request.audit() {
                    let object = json!({"kind": "Pod", "metadata": {"name": "sent", "uid": "u"}});
                    audit.request_object(object.as_object().expect("an object"));
                    audit.annotate("a", "first");
                    audit.annotate("a", "second");
                }
                let mut response = with_body(StatusCode::CREATED, "application/json", Bytes::new());
                *response.body_mut() = full("{\"kind\":\"Pod\"}\n");
                response
            }
        }
    }
}

struct Run {
    filter: Audit<Answers>,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Run {
    fn new(rules: &str) -> Self {
        let text = format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{rules}]}}");
        let policy = Policy::parse(text.as_bytes(), |_| {}).expect("a policy");
        let events = Arc::new(Mutex::default());
        let kept: Arc<Mutex<Vec<Value>>> = events.clone();
        let sink = Arc::new(move |event: &Event| {
            kept.lock().push(serde_json::from_slice(&event.to_json()).expect("JSON"));
        });
        let auditing = Some(Arc::new(Auditing { policy, sink }));
        Self { filter: Audit { inner: Answers, auditing, metrics: Arc::default() }, events }
    }

    async fn ask(&self, method: &str, uri: &str) -> (u16, String) {
        let mut request = request(method, uri);
        let user = UserInfo { name: "alice".to_owned(), ..UserInfo::default() };
        request.extensions_mut().insert(Arc::new(user));
        request.headers_mut().insert("audit-id", HeaderValue::from_static("id"));
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        read(self.filter.call(request.into()).await).await
    }

    fn stages(&self) -> Vec<String> {
        let events = self.events.lock();
        events.iter().map(|event| event["stage"].as_str().expect("a stage").to_owned()).collect()
    }

    fn last(&self) -> Value {
        self.events.lock().last().expect("an event").clone()
    }
}

#[tokio::test]
async fn each_level_has_what_it_should() {
    for (level, requested, responded) in
        [("Metadata", false, false), ("Request", true, false), ("RequestResponse", true, true)]
    {
        let run = Run::new(&format!("{{level: {level}}}"));
        assert_eq!(run.ask("POST", "/api/v1/namespaces/n/pods?x=1").await.0, 201);
        assert_eq!(run.stages(), ["RequestReceived", "ResponseComplete"], "{level}");
        let event = run.last();
        assert_eq!(event["level"], level);
        assert_eq!((&event["auditID"], &event["verb"]), (&json!("id"), &json!("create")));
        assert_eq!(event["requestURI"], "/api/v1/namespaces/n/pods?x=1");
        assert_eq!(event["user"], json!({"username": "alice"}));
        let object =
            json!({"resource": "pods", "namespace": "n", "name": "sent", "uid": "u", "apiVersion": "v1"});
        assert_eq!(event["objectRef"], object);
        assert_eq!(event["responseStatus"], json!({"metadata": {}, "code": 201}));
        assert_eq!(event["annotations"], json!({"a": "first"}));
        assert_eq!(event["requestObject"]["metadata"]["name"] == "sent", requested, "{event}");
        assert_eq!(event["responseObject"] == json!({"kind": "Pod"}), responded, "{event}");
    }
}

#[tokio::test]
async fn what_no_rule_wants_is_not_written_down() {
    let run = Run::new("{level: None, users: [alice]}, {level: Metadata}");
    run.ask("GET", "/api/v1/pods").await;
    assert!(run.stages().is_empty());
    let run = Run::new("{level: Metadata, omitStages: [RequestReceived]}");
    run.ask("GET", "/api/v1/pods").await;
    assert_eq!(run.stages(), ["ResponseComplete"]);
}

#[tokio::test]
async fn a_status_is_told_at_every_level() {
    let run = Run::new("{level: Metadata}");
    run.ask("GET", "/missing").await;
    let event = run.last();
    assert_eq!(event["responseStatus"]["reason"], "NotFound");
    assert_eq!(event["responseStatus"]["message"], "pods \"x\" not found");
    assert_eq!(event.get("responseObject"), None);
    let run = Run::new("{level: RequestResponse}");
    run.ask("GET", "/missing").await;
    assert_eq!(run.last()["responseObject"]["kind"], "Status");
}

#[tokio::test]
async fn a_watch_has_a_beginning_and_an_end() {
    let run = Run::new("{level: RequestResponse}");
    run.ask("GET", "/api/v1/pods?watch=1").await;
    assert_eq!(run.stages(), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    assert_eq!(run.last().get("responseObject"), None, "what lasts is not written down");
}

#[tokio::test]
async fn answers_are_one_line_or_left_out() {
    let run = Run::new("{level: RequestResponse, omitManagedFields: true}");
    run.ask("GET", "/pretty").await;
    assert_eq!(run.last()["responseObject"], json!({"kind": "Pod", "metadata": {}}));
    run.ask("GET", "/text").await;
    assert_eq!(run.last().get("responseObject"), None);
    run.ask("GET", "/large").await;
    let event = run.last();
    assert_eq!(event.get("responseObject"), None);
    assert_eq!(event["annotations"], json!({"audit.k8s.io/truncated": "true"}));
}

#[tokio::test]
async fn a_panic_is_told_and_goes_on() {
    let run = Run::new("{level: Metadata}");
    let panicked = AssertUnwindSafe(run.ask("GET", "/panic")).catch_unwind().await;
    assert!(panicked.is_err());
    assert_eq!(run.stages(), ["RequestReceived", "Panic"]);
    let status = &run.last()["responseStatus"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(500), &json!("InternalError")));
    assert_eq!(status["message"], "APIServer panic'd: on purpose");
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_unanswered_is_told() {
    let run = Run::new("{level: Metadata}");
    assert!(timeout(Duration::from_secs(1), run.ask("GET", "/never")).await.is_err());
    assert_eq!(run.stages(), ["RequestReceived", "ResponseComplete"]);
    assert_eq!(run.last()["responseStatus"]["message"], "Connection closed early");

    let mut late = request("GET", "/never");
    late.extensions_mut().insert(Deadline::at(Instant::now() + Duration::from_secs(1)));
    assert!(timeout(Duration::from_secs(2), run.filter.call(late.into())).await.is_err());
    assert_eq!(run.last()["responseStatus"]["code"], 504);
}

#[tokio::test]
async fn wrong_credentials_are_told_of_nobody() {
    let run = Run::new("{level: None, users: [alice]}, {level: Metadata}");
    let auditing = run.filter.auditing.clone().expect("auditing");
    let parts = request("GET", "/api").into_parts().0;
    refused(&auditing, &run.filter.metrics, &parts, &Status::unauthorized());
    assert_eq!(run.stages(), ["ResponseStarted"]);
    let event = run.last();
    assert_eq!((&event["user"], &event["responseStatus"]["code"]), (&json!({}), &json!(401)));
}
