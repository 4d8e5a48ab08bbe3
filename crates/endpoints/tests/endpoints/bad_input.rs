//! Whatever is sent, there is an answer, and it is upstream's.

use serde_json::json;

use crate::support::{Server, WIDGETS, widget};

#[tokio::test]
async fn names_that_no_object_can_have() {
    let server = Server::new().await;
    for (name, code, message) in [
        ("a%00b", 404, r#"widgets.example.com "a\x00b" not found"#),
        ("a%25b", 400, r#"Name parameter invalid: "a%b": may not contain '%'"#),
        ("..", 400, r#"Name parameter invalid: "..": may not be '..'"#),
        (".", 400, r#"Name parameter invalid: ".": may not be '.'"#),
        ("a%2Fb", 404, "the server could not find the requested resource"),
    ] {
        let answer = server.get(&format!("{WIDGETS}/{name}")).await;
        assert_eq!((answer.code, answer.message().as_str()), (code, message), "{name}");
    }
    assert_eq!(server.get(&format!("{WIDGETS}/%ff")).await.code, 404);
    assert_eq!(server.get(&format!("{WIDGETS}/{}", "x".repeat(10_000))).await.code, 404);
}

#[tokio::test]
async fn names_and_namespaces_that_do_not_fit() {
    let server = Server::new().await;
    server.create("x", "").await;
    for (method, uri, body, message) in [
        (
            "PUT",
            "/x",
            json!({"metadata": {"name": "y"}}),
            "the name of the object (y) does not match the name on the URL (x)",
        ),
        (
            "PUT",
            "/x",
            json!({"metadata": {}}),
            "the name of the object (x based on URL) was undeterminable: name must be provided",
        ),
        (
            "POST",
            "",
            json!({"metadata": {"name": "a", "namespace": "y"}}),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "POST",
            "/x/echo",
            json!({"metadata": {"name": "a", "namespace": "y"}}),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ] {
        let answer = server.json(method, &format!("{WIDGETS}{uri}"), &body).await;
        assert_eq!((answer.code, answer.message().as_str()), (400, message), "{method} {uri} {body}");
    }
}

#[tokio::test]
async fn bodies_in_a_form_that_nobody_reads() {
    let server = Server::new().await;
    let body = widget("a", "x").to_string();
    let unknown = "the body of the request was in an unknown format - accepted media types include: \
                   application/json, application/yaml";
    for (method, uri, content_type, message) in [
        ("POST", "", "text/plain", unknown),
        ("POST", "", "application/vnd.kubernetes.protobuf", unknown),
        ("PUT", "/a", "text/plain", unknown),
        ("DELETE", "/a", "text/plain", unknown),
        ("PATCH", "/a", "application/json", "415: Unsupported Media Type"),
        ("PATCH", "/a", "", "415: Unsupported Media Type"),
    ] {
        let headers = [("content-type", content_type)];
        let answer = server.ask(method, &format!("{WIDGETS}{uri}"), &headers, body.as_bytes()).await;
        assert_eq!((answer.code, answer.message().as_str()), (415, message), "{method} {content_type}");
    }
    let custom = "/apis/custom.io/v1/namespaces/ns/gadgets/a";
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    let answer = server.ask("PATCH", custom, &headers, b"{}").await;
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    assert_eq!((answer.code, answer.message().as_str()), (415, message));
}

#[tokio::test]
async fn a_body_that_is_cut_anywhere_is_refused() {
    let server = Server::new().await;
    let body = widget("a", "x").to_string();
    let headers = [("content-type", "application/json")];
    for length in 1..body.len() {
        let answer = server.ask("POST", WIDGETS, &headers, &body.as_bytes()[..length]).await;
        assert_eq!(answer.code, 400, "{}", &body[..length]);
        let answer =
            server.ask("DELETE", &format!("{WIDGETS}/a"), &headers, &body.as_bytes()[..length]).await;
        assert_eq!(answer.code, 400, "{}", &body[..length]);
    }
    let long = vec![b' '; 4 * 1024 * 1024];
    let answer = server.ask("POST", WIDGETS, &headers, &long).await;
    assert_eq!((answer.code, answer.message().as_str()), (413, "Request entity too large: limit is 3145728"));
    let deep = [vec![b'['; 10_000], vec![b']'; 10_000]].concat();
    assert_eq!(server.ask("POST", WIDGETS, &headers, &deep).await.code, 400);
}

#[tokio::test]
async fn absurd_parameters() {
    let server = Server::new().await;
    server.create("a", "x").await;
    for (uri, code) in [
        ("/a?resourceVersion=abc", 500),
        ("/a?export=1", 400),
        ("/a?export=0", 200),
        ("/a?%00=%ff&=&&a=b=c", 200),
        ("/a?watch=true", 200),
        ("?limit=99999999999999999999", 400),
        ("?limit=-1", 200),
        ("?limit=1&limit=x", 200),
        ("?fieldSelector=%00%3D%ff", 400),
        ("?labelSelector=%ff", 400),
        ("?watch=1&timeoutSeconds=-1", 200),
        ("?watch=1&timeoutSeconds=x", 400),
    ] {
        let answer = server.get(&format!("{WIDGETS}{uri}")).await;
        assert_eq!(answer.code, code, "{uri}: {}", answer.text());
    }
    let message = server.get(&format!("{WIDGETS}/a?resourceVersion=abc")).await.message();
    assert_eq!(
        message,
        r#"resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#
    );
    for (query, code) in [("dryRun=None", 422), ("fieldManager=%01", 422), ("fieldValidation=x", 422)] {
        let answer = server.json("POST", &format!("{WIDGETS}?{query}"), &widget("b", "x")).await;
        assert_eq!(
            (answer.code, &answer.json()["details"]["kind"]),
            (code, &json!("CreateOptions")),
            "{query}"
        );
    }
}
