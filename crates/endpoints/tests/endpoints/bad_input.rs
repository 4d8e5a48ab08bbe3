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
async fn a_patch_cannot_make_something_else() {
    let server = Server::new().await;
    server.create("a", "x").await;
    let (merge, json) = ("application/merge-patch+json", "application/json-patch+json");
    let conversion = "converting (v1.Other) to (example.Widget): unknown conversion";
    let version = "no kind \"Widget\" is registered for version \"example.com/v2\" in scheme";
    let string = "json: cannot unmarshal number into Go struct field .kind of type string";
    let namespace = "the namespace of the provided object does not match the namespace sent on the request";
    for (content_type, body, code, message) in [
        (merge, r#"{"kind":"Other"}"#, 422, conversion),
        (json, r#"[{"op":"replace","path":"/kind","value":"Other"}]"#, 422, conversion),
        (merge, r#"{"apiVersion":"example.com/v2"}"#, 422, version),
        (merge, r#"{"kind":5}"#, 422, string),
        (merge, r#"{"metadata":{"namespace":"other"}}"#, 400, namespace),
        (merge, r#"{"kind":null}"#, 200, ""),
        (json, "null", 200, ""),
        ("application/strategic-merge-patch+json", "null", 200, ""),
    ] {
        let uri = format!("{WIDGETS}/a");
        let answer = server.ask("PATCH", &uri, &[("content-type", content_type)], body.as_bytes()).await;
        assert_eq!(answer.code, code, "{body}: {}", answer.text());
        assert!(answer.message().contains(message), "{body}: {}", answer.text());
    }
}

#[tokio::test]
async fn patches_are_read_as_strictly_as_asked() {
    let server = Server::new().await;
    server.create("a", "x").await;
    let (merge, json) = ("application/merge-patch+json", "application/json-patch+json");
    let twice = r#"[{"op":"add","op":"add","path":"/spec/text","value":"y","odd":{"a":1,"a":2}}]"#;
    let odd = r#"{"spec":{"text":"z","text":"x"},"odd":1}"#;
    let uri = |validation: &str| format!("{WIDGETS}/a?dryRun=All&fieldValidation={validation}");
    for (content_type, body, found) in [
        (json, twice, ["json patch duplicate field \"[0].op\"", "json patch unknown field \"[0].odd\""]),
        (merge, odd, ["duplicate field \"spec.text\"", "unknown field \"odd\""]),
        (
            "application/strategic-merge-patch+json",
            odd,
            ["duplicate field \"spec.text\"", "unknown field \"odd\""],
        ),
    ] {
        let headers = [("content-type", content_type)];
        let answer = server.ask("PATCH", &uri("Strict"), &headers, body.as_bytes()).await;
        let message = answer.message();
        let all = format!(": strict decoding error: {}", found.join(", "));
        assert_eq!((answer.code, message.ends_with(&all)), (422, true), "{message}");
        for (validation, warnings) in [("Warn", 2), ("Ignore", 0)] {
            let answer = server.ask("PATCH", &uri(validation), &headers, body.as_bytes()).await;
            let count = answer.headers.get_all("warning").iter().count();
            assert_eq!((answer.code, count), (200, warnings), "{validation} {body}");
        }
    }
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
        // What Go cannot read it leaves out.
        ("?limit=1;limit=x", 200),
        ("?limit=%zz", 200),
        ("?limit=%7", 200),
        ("?limit=%78", 400),
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
