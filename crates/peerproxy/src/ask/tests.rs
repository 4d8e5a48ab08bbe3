use std::{
    pin::Pin,
    task::{Context, Poll},
};

use concord_server::{BoxError, with_body};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use serde_json::json;

use super::*;
use crate::{
    document::{Has, Wanted},
    fake::Fake,
    tracker::tests_support::question,
    transport::SendError,
};

fn list(group: &str, resource: &str) -> Bytes {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
        {"metadata": {"name": group}, "versions": [{"version": "v1", "resources": [
            {"resource": resource, "verbs": ["get"]}]}]}]})
    .to_string()
    .into()
}

fn tagged(body: Bytes, tag: &'static str) -> Response {
    let mut response = with_body(StatusCode::OK, "application/json", body);
    response.headers_mut().insert(header::ETAG, HeaderValue::from_static(tag));
    response
}

fn healthy(request: &Request) -> Response {
    let known = request.headers().get(header::IF_NONE_MATCH).is_some();
    match request.uri().path() {
        _ if known => {
            let mut response = Response::new(full(""));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        "/api" => tagged(list("", "pods"), "\"A\""),
        "/apis" => tagged(list("batch", "jobs"), "\"B\""),
        _ => tagged(
            Bytes::from_static(
                br#"{"paths":{"apis/batch/v1":{"serverRelativeURL":"/openapi/v3/apis/batch/v1?hash=1"},
                    "evil":{"serverRelativeURL":"https://example.com/"}}}"#,
            ),
            "\"C\"",
        ),
    }
}

/// A body without an end.
struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b' '; 1 << 20])))))
    }
}

fn jobs() -> Wanted<'static> {
    Wanted { group: "batch", version: "v1", resource: "jobs", subresource: "", verb: "get" }
}

#[tokio::test]
async fn a_server_says_what_it_serves_and_need_not_say_it_twice() {
    let transport = Fake::new(|_, request: Request| {
        assert!(request.headers()["accept"].to_str().expect("text").contains("profile=nopeer"));
        Box::pin(async move { Ok(healthy(&request)) })
    });
    let metrics = Metrics::new();
    let first = ask(&transport, &metrics, &question(None)).await.expect("an answer");
    assert_eq!(first.document.has(&jobs()), Has::Everything);
    let pods = Wanted { group: "", resource: "pods", ..jobs() };
    assert_eq!(first.document.has(&pods), Has::Everything);
    let address = "/openapi/v3/apis/batch/v1?hash=1".to_owned();
    assert_eq!(*first.openapi, [("apis/batch/v1".to_owned(), address)].into());
    let second = ask(&transport, &metrics, &question(Some(first.clone()))).await.expect("an answer");
    assert!(Arc::ptr_eq(&first.document, &second.document));
    assert!(Arc::ptr_eq(&first.openapi, &second.openapi));
    assert!(transport.sent.lock().iter().all(|(_, user)| user == "system:apiserver"));
}

#[tokio::test]
async fn one_half_may_be_new() {
    let transport = Fake::new(|_, request: Request| {
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/apis" => tagged(list("apps", "deployments"), "\"B2\""),
                _ => healthy(&request),
            })
        })
    });
    let groups = parse_groups(&list("batch", "jobs")).expect("readable");
    let core = parse_groups(&list("", "pods")).expect("readable");
    let before = Told {
        document: Arc::new(Document::new(core, groups)),
        tags: ["\"A\"".into(), "\"B\"".into(), "\"C\"".into()],
        ..Told::default()
    };
    let told = ask(&transport, &Metrics::new(), &question(Some(Arc::new(before)))).await.expect("an answer");
    assert_eq!(told.document.has(&jobs()), Has::Nothing);
    let pods = Wanted { group: "", resource: "pods", ..jobs() };
    assert_eq!(told.document.has(&pods), Has::Everything);
    assert_eq!(told.tags[1], "\"B2\"");
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_is_none_and_nobody_is_waited_for_long() {
    for (what, complaint) in [
        ("refuses", "/api: refused"),
        ("hangs", "within 5 seconds"),
        ("drips", "within 5 seconds"),
        ("endless", "more than 16777216 bytes"),
        ("401", "the answer is 401 Unauthorized"),
        ("legacy", "is a APIVersions"),
        ("html", "is not JSON"),
        ("deep", "is not JSON"),
    ] {
        let transport = Fake::new(move |_, request: Request| {
            Box::pin(async move {
                if request.uri().path() != "/api" {
                    return Ok(healthy(&request));
                }
                let text = |status, text: &'static str| {
                    Ok(with_body(status, "text/plain", Bytes::from_static(text.as_bytes())))
                };
                match what {
                    "refuses" => Err(SendError::Broken("refused".to_owned())),
                    "hangs" => std::future::pending().await,
                    "drips" => {
                        let never = http_body_util::StreamBody::new(futures_util::stream::pending());
                        Ok(Response::new(never.boxed_unsync()))
                    }
                    "endless" => Ok(Response::new(Endless.boxed_unsync())),
                    "401" => text(StatusCode::UNAUTHORIZED, ""),
                    "legacy" => {
                        text(StatusCode::OK, r#"{"kind":"APIVersions","apiVersion":"v1","versions":["v1"]}"#)
                    }
                    "deep" => Ok(with_body(StatusCode::OK, "text/plain", "[".repeat(1 << 20).into())),
                    _ => text(StatusCode::OK, "<html>"),
                }
            })
        });
        let error = ask(&transport, &Metrics::new(), &question(None)).await.expect_err(what).to_string();
        assert!(error.contains(complaint), "{what}: {error}");
    }
}

#[tokio::test]
async fn schemas_may_be_missing() {
    let transport = Fake::new(|_, request: Request| {
        Box::pin(async move {
            match request.uri().path() {
                "/openapi/v3" => Ok(with_body(StatusCode::NOT_FOUND, "text/plain", Bytes::new())),
                _ => Ok(healthy(&request)),
            }
        })
    });
    let told = ask(&transport, &Metrics::new(), &question(None)).await.expect("an answer");
    assert!(told.openapi.is_empty());
    assert_eq!(told.document.has(&jobs()), Has::Everything);
}
