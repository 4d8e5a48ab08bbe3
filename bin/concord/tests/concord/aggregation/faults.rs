//! Servers that do everything wrong keep nobody waiting but those who ask for what they have.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use concord_server::test_client::{Protocol, TestClient};
use concord_testing::webhook::{Asked, Certificate, Reply, WebhookServer};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{API_SERVICES, condition, parse, until};
use crate::support::{Program, send};

const NAME: &str = "v1.fault.io";
const LEAF: &str = "/openapi/v3/apis/fault.io/v1";
const THINGS: &str = "/apis/fault.io/v1/things";
/// What a third server has.
const CALM_LEAF: &str = "/openapi/v3/apis/calm.io/v1";
const CALM: &str = "/apis/calm.io/v1/things";
/// Stands for the group of somebody else in what a server says.
const VICTIM: &str = "victim.invalid";
/// How many times as long as while the other server was good any answer may take, and what is no delay on a busy machine,
/// whatever it took then. What documents of other servers (20 seconds) and requests to them (60 seconds) may take is far more.
const FACTOR: u32 = 50;
const UNNOTICED: Duration = Duration::from_secs(5);
/// The same for the answer in the middle, which a busy machine delays less: it is as it was, in the best of so many tries.
const TRIES: usize = 5;
const MIDDLE_FACTOR: u32 = 4;
const MIDDLE_UNNOTICED: Duration = Duration::from_millis(50);
/// How often everything is asked for.
const ROUNDS: usize = 7;
/// What is asked for meanwhile: this server's own, what it knows of the other, and what a third one has.
const OTHERS: [&str; 9] = [
    "/api/v1/namespaces",
    "/apis",
    "/apis/apps/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    LEAF,
    CALM_LEAF,
    CALM,
];

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Good,
    /// Publishes documents of version 2 only.
    Legacy,
    Hangs,
    Drips,
    DiesInTheMiddle,
    HangsUp,
    Garbage,
    Fails,
    Redirects,
    /// Shows a certificate that nobody should believe.
    Impostor,
    /// Says that everything is a picture.
    OtherType,
    /// Has documents of 100 MB.
    Huge,
}

struct World {
    admin: TestClient,
    program: Arc<Program>,
    remote: WebhookServer,
    _calm: WebhookServer,
    mode: Arc<Mutex<Mode>>,
    /// How long each of [`OTHERS`] took while all was good.
    usual: Vec<Duration>,
    _data: TempDir,
}

/// What a good server answers, which has the things of this group.
fn good(path: &str, group: &str, legacy: bool) -> Reply {
    match document(&path.replace(group, "fault.io"), legacy) {
        Some(document) => {
            let victim = if group == "fault.io" { "calm.io" } else { "fault.io" };
            let text = document.to_string().replace("fault.io", group).replace(VICTIM, victim);
            Reply::new("200 OK\r\ncontent-type: application/json", &text)
        }
        None => Reply::new("404 Not Found", ""),
    }
}

fn document(path: &str, legacy: bool) -> Option<Value> {
    let leaf = json!({
        "openapi": "3.0.0", "info": {"title": "Faults", "version": "1"},
        "paths": {THINGS: {}, "/apis/apps/v1/deployments": {"description": "not theirs"}, format!("/apis/{VICTIM}/v1/things"): {}},
    });
    let swagger = json!({
        "swagger": "2.0", "info": {"title": "Faults", "version": "1"},
        "paths": {THINGS: {"get": {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}}}}},
        "definitions": {"Thing": {"type": "object"}},
    });
    let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "fault.io/v1", "resources": [
        {"name": "things", "singularName": "thing", "namespaced": false, "kind": "Thing", "verbs": ["list"]},
    ]});
    let urls = |key: &str| json!({"serverRelativeURL": format!("/openapi/v3/{key}?hash=A")});
    let index = json!({"paths": {
        "apis/fault.io/v1": urls("apis/fault.io/v1"), "apis/apps/v1": urls("apis/apps/v1"), "version": urls("version"),
        "../x": urls("../x"), format!("apis/{VICTIM}/v1"): json!({"serverRelativeURL": "/stolen"}),
    }});
    let body = match path.split('?').next().unwrap_or_default() {
        "/openapi/v3" if !legacy => index,
        LEAF if !legacy => leaf,
        "/stolen" => json!({"openapi": "3.0.0", "info": {"title": "Stolen", "version": "1"}, "paths": {}}),
        "/openapi/v2" => swagger,
        "/apis/fault.io/v1" => resources,
        THINGS => json!({"kind": "ThingList", "items": []}),
        _ => return None,
    };
    Some(body)
}

fn path(asked: &Asked) -> &str {
    asked.line.split(' ').nth(1).unwrap_or_default()
}

fn reply(mode: Mode, asked: &Asked) -> Reply {
    let path = path(asked);
    match mode {
        Mode::Legacy => good(path, "fault.io", true),
        Mode::Hangs => Reply::never(),
        Mode::Drips => Reply::endless(),
        Mode::DiesInTheMiddle => Reply::cut(),
        Mode::HangsUp => Reply::hang_up(),
        Mode::Garbage => Reply::ok(&"\u{1}garbage".repeat(256 << 10)),
        Mode::Fails => Reply::new("500 Internal Server Error", "boom"),
        Mode::Redirects => Reply::new("302 Found\r\nlocation: https://127.0.0.1:1/elsewhere", ""),
        Mode::OtherType => Reply::new("200 OK\r\ncontent-type: image/png", "\u{89}PNG"),
        Mode::Huge if path.starts_with("/openapi") => Reply::ok(&"x".repeat(100_000_000)),
        Mode::Good | Mode::Impostor | Mode::Huge => good(path, "fault.io", false),
    }
}

/// Registers a server, and waits until it is known.
async fn register(admin: &mut TestClient, group: &str, name: &str, remote: &WebhookServer) {
    let service = json!({
        "metadata": {"name": format!("v1.{group}")},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "service": {"namespace": "ns", "name": name}, "caBundle": STANDARD.encode(&remote.authority),
        },
    });
    let (status, answer, _) = send(admin, Method::POST, API_SERVICES, &service).await;
    assert_eq!(status, 201, "{answer}");
    condition(admin, &format!("v1.{group}"), "True", "Passed").await;
    let leaf = format!("/openapi/v3/apis/{group}/v1");
    until(admin, &leaf, "its document is published", |status, _| status == 200).await;
}

impl World {
    /// A server, and behind it one that is good at first.
    async fn start() -> Self {
        let mode = Arc::new(Mutex::new(Mode::Good));
        let now = mode.clone();
        let remote =
            WebhookServer::start(Certificate::For("remote.ns.svc"), move |asked| reply(*now.lock(), asked));
        let remote = remote.await.expect("a server");
        let calm = WebhookServer::start(Certificate::For("calm.ns.svc"), |asked| {
            good(path(asked), "calm.io", false)
        });
        let calm = calm.await.expect("a server");
        let data = tempdir().expect("a directory");
        let address = |name: &str, port: u16| format!("--service-address=ns/{name}=127.0.0.1:{port}");
        let flags = [address("remote", remote.port), address("calm", calm.port)];
        let program = Program::start_with(data.path(), &[flags[0].as_str(), flags[1].as_str()]).await;
        program.ready(200).await;
        let mut admin = program.admin(Protocol::Http2).await;
        register(&mut admin, "fault.io", "remote", &remote).await;
        register(&mut admin, "calm.io", "calm", &calm).await;
        let program = Arc::new(program);
        let mut world = Self { admin, program, remote, _calm: calm, mode, usual: Vec::new(), _data: data };
        for path in OTHERS {
            // Documents are made when first asked for, which takes its time.
            world.admin.get(path).await.expect("an answer");
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let begin = Instant::now();
                world.admin.get(path).await.expect("an answer");
                times.push(begin.elapsed());
            }
            world.usual.push(middle(times));
        }
        world
    }

    /// Everything is asked for anew, as when an APIService is changed.
    async fn again(&mut self, authority: &str) {
        let patch = json!({"spec": {"caBundle": STANDARD.encode(authority)}});
        let path = format!("{API_SERVICES}/{NAME}");
        assert_eq!(send(&mut self.admin, Method::PATCH, &path, &patch).await.0, 200);
    }

    /// What is this server's is answered at once, and the last good document of the other is still there.
    async fn others_are_served(&mut self, mode: Mode) {
        let mut slow = Vec::new();
        for _ in 0..TRIES {
            slow = self.slow_ones(mode).await;
            if slow.is_empty() {
                return;
            }
        }
        panic!("{mode:?} {slow:?}");
    }

    /// What takes longer than usual, with how long it took and takes.
    async fn slow_ones(&mut self, mode: Mode) -> Vec<(&'static str, Duration, Duration)> {
        let mut times = vec![Vec::new(); OTHERS.len()];
        for _ in 0..ROUNDS {
            for (at, path) in OTHERS.into_iter().enumerate() {
                let begin = Instant::now();
                let answer = self.admin.get(path).await.expect("an answer");
                assert_eq!(answer.status, 200, "{mode:?} {path}: {}", answer.body);
                let (took, usual) = (begin.elapsed(), self.usual[at]);
                assert!(
                    took < UNNOTICED.max(usual * FACTOR),
                    "{mode:?} {path} took {took:?} instead of {usual:?}"
                );
                times[at].push(took);
            }
        }
        let all = times.into_iter().zip(OTHERS).zip(&self.usual);
        let all = all.map(|((times, path), usual)| (path, *usual, middle(times)));
        all.filter(|(_, usual, took)| *took >= MIDDLE_UNNOTICED.max(*usual * MIDDLE_FACTOR)).collect()
    }
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test]
async fn whatever_a_server_does_wrong_keeps_nobody_else_waiting() {
    let mut world = World::start().await;
    let authority = world.remote.authority.clone();
    let modes = [
        Mode::Hangs,
        Mode::Drips,
        Mode::DiesInTheMiddle,
        Mode::HangsUp,
        Mode::Garbage,
        Mode::Fails,
        Mode::Redirects,
        Mode::Impostor,
        Mode::OtherType,
        Mode::Huge,
    ];
    let other = WebhookServer::start(Certificate::For("remote.ns.svc"), |_| Reply::ok("")).await;
    let other = other.expect("a server").authority.clone();
    for (round, mode) in modes.into_iter().enumerate() {
        *world.mode.lock() = mode;
        // Another bundle of the same content makes it look at everything again.
        let believed = if mode == Mode::Impostor { &other } else { &authority };
        world.again(&format!("{believed}{}", "\n".repeat(round + 1))).await;
        let program = world.program.clone();
        let waiting = tokio::spawn(async move {
            let mut clients = Vec::new();
            for _ in 0..4 {
                let mut client = program.admin(Protocol::Http2).await;
                clients
                    .push(tokio::spawn(async move { client.get(THINGS).await.map(|answer| answer.status) }));
            }
            clients
        });
        world.others_are_served(mode).await;
        for client in waiting.await.expect("they ask") {
            client.abort();
        }
    }
    *world.mode.lock() = Mode::Good;
    world.again(&authority).await;
    condition(&mut world.admin, NAME, "True", "Passed").await;
    until(&mut world.admin, THINGS, "it is served again", |status, _| status == 200).await;
}

#[tokio::test]
async fn what_is_wrong_is_told_in_upstreams_words() {
    let mut world = World::start().await;
    let authority = world.remote.authority.clone();
    let url = format!("https://127.0.0.1:{}/apis/fault.io/v1", world.remote.port);
    *world.mode.lock() = Mode::Redirects;
    let answer = world.admin.get(THINGS).await.expect("an answer");
    let refusal = "the backend attempted to redirect this request, which is not permitted";
    assert_eq!((answer.status, answer.body.as_str()), (502, refusal));

    *world.mode.lock() = Mode::Fails;
    world.again(&format!("{authority}\n")).await;
    let message = condition(&mut world.admin, NAME, "False", "FailedDiscoveryCheck").await;
    assert_eq!(message, format!("failing or missing response from {url}: bad status from {url}: 500"));

    *world.mode.lock() = Mode::Good;
    let other =
        WebhookServer::start(Certificate::For("remote.ns.svc"), |_| Reply::ok("")).await.expect("a server");
    world.again(&authority).await;
    condition(&mut world.admin, NAME, "True", "Passed").await;
    world.again(&other.authority).await;
    let message = condition(&mut world.admin, NAME, "False", "FailedDiscoveryCheck").await;
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert_eq!(message, format!("failing or missing response from {url}: Get \"{url}\": {why}"));
    let answer = world.admin.get(THINGS).await.expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (503, "service unavailable\n"));

    let missing = json!({
        "metadata": {"name": "v1.missing.io"},
        "spec": {
            "group": "missing.io", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "service": {"namespace": "ns", "name": "missing"}, "insecureSkipTLSVerify": true,
        },
    });
    assert_eq!(send(&mut world.admin, Method::POST, API_SERVICES, &missing).await.0, 201);
    let message = condition(&mut world.admin, "v1.missing.io", "False", "ServiceNotFound").await;
    assert_eq!(message, "service/missing in \"ns\" is not present");
    // It becomes this server's own, which has nothing of the kind.
    let patch = json!({"spec": {"service": null, "insecureSkipTLSVerify": null}});
    let path = format!("{API_SERVICES}/v1.missing.io");
    assert_eq!(send(&mut world.admin, Method::PATCH, &path, &patch).await.0, 200);
    condition(&mut world.admin, "v1.missing.io", "True", "Local").await;
}

#[tokio::test]
async fn a_server_speaks_for_itself_alone_and_may_speak_version_2_only() {
    let mut world = World::start().await;
    let index = parse(&world.admin.get("/openapi/v3").await.expect("an answer").body);
    let keys: Vec<&String> = index["paths"].as_object().expect("paths").keys().collect();
    assert!(keys.iter().all(|key| !key.contains("..")), "{keys:?}");
    let apps = parse(&world.admin.get("/openapi/v3/apis/apps/v1").await.expect("an answer").body);
    assert_ne!(apps["info"]["title"], "Faults");
    let leaf = parse(&world.admin.get(LEAF).await.expect("an answer").body);
    assert_eq!(leaf["paths"], json!({THINGS: {}}));
    let calm = parse(&world.admin.get(CALM_LEAF).await.expect("an answer").body);
    assert_eq!((&calm["info"]["title"], &calm["paths"]), (&"Faults".into(), &json!({CALM: {}})));

    let authority = world.remote.authority.clone();
    *world.mode.lock() = Mode::Legacy;
    world.again(&format!("{authority}\n")).await;
    let is_converted = |_, body: &str| !parse(body)["info"]["x-converted-from"].is_null();
    let leaf = parse(&until(&mut world.admin, LEAF, "it is converted", is_converted).await);
    assert_eq!(leaf["components"]["schemas"], json!({"Thing": {"type": "object"}}));
    let everything = parse(&world.admin.get("/openapi/v2").await.expect("an answer").body);
    assert!(everything["paths"].get(THINGS).is_some());

    *world.mode.lock() = Mode::Good;
    world.again(&authority).await;
    let is_upgraded = |_, body: &str| parse(body)["info"]["x-converted-from"].is_null();
    until(&mut world.admin, LEAF, "its upgrade is noticed", is_upgraded).await;
}

#[tokio::test]
async fn a_server_that_flaps_is_followed_and_disturbs_nobody() {
    let mut world = World::start().await;
    let (mode, end) = (world.mode.clone(), Arc::new(AtomicBool::new(false)));
    let ended = end.clone();
    let flapping = tokio::spawn(async move {
        while !ended.load(Ordering::Relaxed) {
            for next in [Mode::HangsUp, Mode::Good] {
                *mode.lock() = next;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    });
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        let answer = world.admin.get(THINGS).await.expect("an answer");
        assert!([200, 503].contains(&answer.status), "{}", answer.status);
        world.others_are_served(Mode::HangsUp).await;
    }
    end.store(true, Ordering::Relaxed);
    flapping.await.expect("it ends");
    *world.mode.lock() = Mode::Good;
    condition(&mut world.admin, NAME, "True", "Passed").await;
    until(&mut world.admin, THINGS, "it is served again", |status, _| status == 200).await;
    let answer: Value = parse(&world.admin.get(THINGS).await.expect("an answer").body);
    assert_eq!(answer["kind"], "ThingList");
}
