//! Which path and method means what.

use crate::support::Server;

const NO_RESOURCE: &str = "the server could not find the requested resource";
const NO_METHOD: &str = "the server does not allow this method on the requested resource";

#[tokio::test]
async fn what_is_not_there_is_answered_as_upstream_does() {
    let server = Server::new().await;
    let of = "/apis/example.com/v1";
    let table = [
        ("GET", "/api/v1/nothing".to_owned(), 404, NO_RESOURCE),
        ("GET", "/api/v2/namespaces".to_owned(), 404, NO_RESOURCE),
        ("GET", format!("{of}/widgets/a"), 404, NO_RESOURCE),
        ("PUT", format!("{of}/widgets/a"), 404, NO_RESOURCE),
        ("GET", "/api/v1/namespaces/ns/olds".to_owned(), 404, NO_RESOURCE),
        ("GET", "/api/v1/namespaces/ns/namespaces/other".to_owned(), 404, NO_RESOURCE),
        ("GET", format!("{of}/namespaces/ns/widgets/a/other"), 404, NO_RESOURCE),
        ("GET", format!("{of}/namespaces/ns/widgets/a/status/more"), 404, NO_RESOURCE),
        ("POST", format!("{of}/widgets"), 405, NO_METHOD),
        ("DELETE", format!("{of}/widgets"), 405, NO_METHOD),
        ("POST", format!("{of}/namespaces/ns/widgets/a"), 405, NO_METHOD),
        ("OPTIONS", format!("{of}/namespaces/ns/widgets"), 405, NO_METHOD),
        ("FOO", format!("{of}/namespaces/ns/widgets"), 405, NO_METHOD),
        ("HEAD", format!("{of}/namespaces/ns/widgets"), 405, NO_METHOD),
        ("HEAD", format!("{of}/namespaces/ns/widgets/a"), 405, NO_METHOD),
        ("DELETE", "/api/v1/namespaces".to_owned(), 405, NO_METHOD),
        ("GET", format!("{of}/namespaces/ns/widgets/a/echo"), 405, NO_METHOD),
        ("GET", "/api/v1/namespaces/ns/finalize".to_owned(), 405, NO_METHOD),
        ("GET", format!("{of}/reviews"), 405, NO_METHOD),
        ("POST", format!("{of}/localreviews"), 404, NO_RESOURCE),
        ("POST", format!("{of}/watch/widgets"), 405, NO_METHOD),
        ("GET", "/api/v1/watch/olds".to_owned(), 404, NO_RESOURCE),
        ("GET", format!("{of}/watch/reviews"), 404, NO_RESOURCE),
        ("GET", "/api/v1/proxy/namespaces/a".to_owned(), 404, NO_RESOURCE),
        (
            "GET",
            "/api/v1/olds?watch=1".to_owned(),
            405,
            r#"watch is not supported on resources of kind "olds""#,
        ),
        // Custom resources have no table of paths.
        (
            "GET",
            "/apis/custom.io/v1/namespaces/ns/gadgets/a/other".to_owned(),
            404,
            r#"gadgets.custom.io "a" not found"#,
        ),
        (
            "FOO",
            "/apis/custom.io/v1/namespaces/ns/gadgets/a".to_owned(),
            405,
            r#" is not supported on resources of kind "gadgets.custom.io""#,
        ),
        ("PUT", "/apis/custom.io/v1/namespaces/ns/gadgets".to_owned(), 400, "name must be provided"),
    ];
    for (method, uri, code, message) in table {
        let answer = server.ask(method, &uri, &[], b"").await;
        assert_eq!((answer.code, answer.message().as_str()), (code, message), "{method} {uri}");
    }
}

#[tokio::test]
async fn what_nobody_knows_is_answered_in_plain_text() {
    let server = Server::new().await;
    for uri in [
        "/apis/other.com/v1/widgets",
        "/apis/other.com",
        "/apis/custom.io/v2/namespaces/ns/gadgets",
        "/apis/custom.io/v1/namespaces/ns/others",
        "/apis/custom.io/v2",
        "/apis/custom.io/v1/gadgets/a",
        "/apix",
        "//api",
    ] {
        let answer = server.get(uri).await;
        assert_eq!((answer.code, answer.text()), (404, "404 page not found\n"), "{uri}");
    }
}

#[tokio::test]
async fn a_slash_at_the_end_means_nothing_and_a_missing_namespace_all() {
    let server = Server::new().await;
    server.create("a", "x").await;
    for uri in [
        "/apis/example.com/v1/namespaces/ns/widgets/",
        "/apis/example.com/v1/widgets",
        "/apis/example.com/v1/namespaces//widgets",
    ] {
        let list = server.get(uri).await.json();
        assert_eq!(list["items"][0]["metadata"]["name"], "a", "{uri}");
    }
    assert_eq!(server.get("/apis/example.com/v1/namespaces/ns/widgets/a/").await.code, 200);
    assert_eq!(
        server.get("/apis/example.com/v1/namespaces/other/widgets").await.json()["items"],
        serde_json::json!([])
    );
}

#[tokio::test]
async fn nobody_is_reached_through_the_server() {
    let server = Server::new().await;
    server.create("a", "x").await;
    let of = "/apis/example.com/v1/namespaces/ns/widgets";
    for (uri, code, message) in [
        ("b/exec", 404, r#"widgets.example.com "b" not found"#),
        ("a/exec", 400, "nobody is there"),
        ("a/exec?dryRun=All", 400, "dryRun is not supported"),
        ("a/proxy/some/path", 400, "nobody is there"),
        ("a/exec/more", 404, NO_RESOURCE),
    ] {
        let answer = server.get(&format!("{of}/{uri}")).await;
        assert_eq!((answer.code, answer.message().as_str()), (code, message), "{uri}");
    }
    assert_eq!(server.ask("PUT", &format!("{of}/a/exec"), &[], b"").await.message(), NO_METHOD);
}
