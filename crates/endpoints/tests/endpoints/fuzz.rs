//! Requests put together at random from parts that are nearly right: every one of them gets an answer that is one.
//!
//! A run is short, and its seed is printed when it fails. `CONCORD_FUZZ_SECONDS` makes it longer, `CONCORD_FUZZ_SEED`
//! repeats it.

use std::{
    env,
    time::{Duration, Instant},
};

use concord_server::{Handler as _, full};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;

use crate::support::Server;

const METHODS: [&str; 9] = ["GET", "GET", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "ODD"];
const PATHS: [&str; 20] = [
    "/api",
    "/apis",
    "/api/v1",
    "/apis/example.com/v1",
    "/api/v1/namespaces",
    "/api/v1/namespaces/ns",
    "/api/v1/namespaces/ns/finalize",
    "/api/v1/olds",
    "/apis/example.com/v1/widgets",
    "/apis/example.com/v1/namespaces/ns/widgets",
    "/apis/example.com/v1/namespaces/ns/widgets/a",
    "/apis/example.com/v1/namespaces/ns/widgets/b",
    "/apis/example.com/v1/namespaces/ns/widgets/a/status",
    "/apis/example.com/v1/namespaces/ns/widgets/a/scale",
    "/apis/example.com/v1/namespaces/ns/widgets/a/proxy/x",
    "/apis/example.com/v1/watch/namespaces/ns/widgets/a",
    "/apis/example.com/v1/reviews",
    "/apis/custom.io/v1/namespaces/ns/gadgets",
    "/apis/custom.io/v1/namespaces/ns/gadgets/g",
    "/apis/custom.io/v1/namespaces/ns/gadgets/g/status",
];
const PARAMETERS: [&str; 16] = [
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "watch",
    "timeoutSeconds",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "propagationPolicy",
    "pretty",
];
const VALUES: [&str; 28] = [
    "",
    "0",
    "1",
    "-1",
    "true",
    "false",
    "All",
    "Strict",
    "Warn",
    "Ignore",
    "Exact",
    "NotOlderThan",
    "Orphan",
    "me",
    "abc",
    "99999999999999999999",
    "a=b",
    "a in (b,c)",
    "!a",
    "a!=b,c",
    "a>5",
    "metadata.name=a",
    "metadata.name!=a",
    "%00",
    "%ff",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "\u{e9}",
    "((((",
];
const ACCEPT: [&str; 10] = [
    "",
    "*/*",
    "application/json",
    "application/yaml",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "text/html;q=0.1,application/json;q=x",
    ";;,,/",
];
const CONTENT_TYPES: [&str; 9] = [
    "",
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain; a=\"b",
];
const BODIES: [&str; 14] = [
    "",
    "{}",
    "null",
    "[]",
    r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"text":"x","replicas":1}}"#,
    r#"{"metadata":{"name":"b","finalizers":["a.io/b"],"ownerReferences":[{"uid":"1"}]},"spec":{"replicas":2147483648}}"#,
    r#"{"kind":"Gadget","apiVersion":"custom.io/v1","metadata":{"name":"g","generateName":"g-"},"spec":{"text":"é\n😀"}}"#,
    r#"[{"op":"add","path":"/metadata/labels","value":{"x":"y"}},{"op":"copy","from":"/spec","path":"/status"}]"#,
    r#"[{"op":"test","path":"/spec/text","value":"x"},{"op":"move","from":"/spec/text","path":"/spec/a~1b~0c"}]"#,
    r#"{"metadata":{"labels":{"a":null},"$deleteFromPrimitiveList/finalizers":["a.io/b"],"managedFields":[{}]},"$patch":"replace"}"#,
    r#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Orphan","preconditions":{"uid":"x","resourceVersion":"1"}}"#,
    "kind: Widget\napiVersion: example.com/v1\nmetadata:\n  name: a\n  annotations: {a: &x \"1\", b: *x}\nspec:\n  text: |\n    lines\n",
    "k8s\0\u{a}\u{18}\u{a}\u{e}example.com/v1\u{12}\u{6}Widget\u{12}\u{2}\u{a}\0",
    r#"{"metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Apply","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:text":{},"k:{\"a\":1}":{".":{}},"v:1":{}}}}]}}"#,
];
/// What is put in where it does not belong.
const SCRAPS: [&[u8]; 24] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\xe2\x82",
    b"1e999",
    b"-",
    b"null",
    b"\n",
    b"\t",
    b"&a",
    b"*a",
    b"---\n",
    b"/",
    b"..",
    b"%2f",
];
/// Refusals that are upstream's although they are called server errors.
const UPSTREAMS_500: [&str; 7] = [
    "Too large resource version",
    "resourceVersion should not be set on objects to be created",
    "strconv.ParseUint",
    "failed to create typed patch object",
    "failed to convert",
    "metadata.managedFields",
    "errors:",
];

fn pick<'a, T: ?Sized>(random: &mut StdRng, from: &[&'a T]) -> &'a T {
    from[random.random_range(0..from.len())]
}

/// A copy with nothing, or a few things, wrong.
fn spoil(random: &mut StdRng, text: &[u8]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..[0, 0, 1, 1, 2, 5][random.random_range(0..6)] {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..8)).min(bytes.len());
        match random.random_range(0..5) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, pick(random, &SCRAPS).iter().copied())),
            2 => drop(bytes.splice(at..end, pick(random, &SCRAPS).iter().copied())),
            3 => bytes.extend_from_within(at..end),
            _ => bytes.truncate(end.max(1)),
        }
    }
    bytes
}

/// One of these texts, spoiled.
fn one_of(random: &mut StdRng, texts: &[&str]) -> Vec<u8> {
    let text = pick(random, texts);
    spoil(random, text.as_bytes())
}

/// A target as it can stand on a request line.
fn target(random: &mut StdRng) -> String {
    let mut target = String::new();
    let escape = |bytes: &[u8], kept: &[u8], to: &mut String| {
        for byte in bytes {
            match byte.is_ascii_alphanumeric() || kept.contains(byte) {
                true => to.push(char::from(*byte)),
                false => to.push_str(&format!("%{byte:02x}")),
            }
        }
    };
    escape(&one_of(random, &PATHS), b"/%.-", &mut target);
    for number in 0..random.random_range(0..4) {
        target.push(if number == 0 { '?' } else { '&' });
        escape(&one_of(random, &PARAMETERS), b"%;+", &mut target);
        target.push('=');
        escape(&one_of(random, &VALUES), b"%;+", &mut target);
    }
    target
}

fn request(random: &mut StdRng) -> Option<(String, Request<concord_server::Body>)> {
    let (method, target) = (pick(random, &METHODS), target(random));
    let body = one_of(random, &BODIES);
    let mut request = Request::builder().method(method).uri(target.as_str());
    for (name, values) in [("accept", &ACCEPT[..]), ("content-type", &CONTENT_TYPES[..])] {
        let value = one_of(random, values);
        if !value.is_empty() {
            request = request.header(name, value);
        }
    }
    let told = format!("{method} {target} {:?} {}", request.headers_ref(), String::from_utf8_lossy(&body));
    Some((told, request.body(full(body)).ok()?))
}

/// What is wrong with an answer.
fn complaint(status: StatusCode, content_type: &str, body: &[u8]) -> Option<String> {
    // YAML breaks long lines.
    let text = String::from_utf8_lossy(body).split_whitespace().collect::<Vec<_>>().join(" ");
    let known = text.is_empty() || UPSTREAMS_500.iter().any(|known| text.contains(known));
    if status.is_server_error() && !known {
        return Some("a server error".to_owned());
    }
    if content_type != "application/json" || body.is_empty() {
        return None;
    }
    let answer: Value = match serde_json::from_slice(body) {
        Ok(answer) => answer,
        Err(error) => return Some(format!("not JSON: {error}")),
    };
    let is_status = answer["kind"] == "Status" && answer["code"] == status.as_u16();
    (status.is_client_error() && !is_status).then(|| "a refusal that is no Status".to_owned())
}

#[tokio::test]
async fn whatever_is_asked_is_answered() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("CONCORD_FUZZ_SEED").unwrap_or_else(rand::random);
    let time = Duration::from_secs(number("CONCORD_FUZZ_SECONDS").unwrap_or(3));
    let mut random = StdRng::seed_from_u64(seed);
    let (server, begun, mut count) = (Server::new().await, Instant::now(), 0_u64);
    while begun.elapsed() < time {
        let Some((told, request)) = request(&mut random) else { continue };
        count += 1;
        let answer = async {
            let (parts, body) = server.apis.handle(request).await.into_parts();
            // A watch goes on; that it began is enough.
            let goes_on = told.contains("watch") && parts.status == StatusCode::OK;
            let body = if goes_on { None } else { body.collect().await.ok() };
            (parts, body.map(|body| body.to_bytes()).unwrap_or_default())
        };
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        let (parts, body) = answer.unwrap_or_else(|_| panic!("no answer, seed {seed}: {told}"));
        let content_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
        let wrong = complaint(parts.status, content_type.unwrap_or_default(), &body);
        assert!(
            wrong.is_none(),
            "{} (seed {seed})\n{told}\n{}",
            wrong.unwrap_or_default(),
            String::from_utf8_lossy(&body)
        );
    }
    assert!(count > 100, "only {count} requests in {time:?}");
}
