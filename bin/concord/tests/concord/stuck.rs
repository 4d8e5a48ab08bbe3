//! Clients that ask for much and never read: what they cost is bounded, and others are served.

use std::{fs, time::Duration};

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use tempfile::tempdir;

use crate::support::{Program, SOON};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// One object of this size, 25 of them: lists of 20 MB.
const OBJECT: usize = 800 * 1024;
const OBJECTS: usize = 25;
/// How many clients do not read.
const STUCK: usize = 16;
/// How much memory they may cost together. All lists in full would be 320 MB.
const ALLOWED: usize = 100 << 20;

async fn create(admin: &mut TestClient, name: &str, size: usize) {
    let body = json!({"metadata": {"name": name}, "data": {"a": "x".repeat(size)}}).to_string();
    let answer = admin.exchange(Method::POST, MAPS, &[], body.into()).await.expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.body);
}

/// Resident memory of a process in bytes.
fn resident(program: &Program) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", program.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    let kib: usize = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    kib * 1024
}

/// Begins to ask and never reads the answer.
async fn ask(program: &Program, protocol: Protocol, path: &str) -> (TestClient, impl Sized + use<>) {
    let mut client = program.admin(protocol).await;
    let answer = client.send(Method::GET, path, &[], Bytes::new()).await.expect("an answer begins");
    assert_eq!(answer.status(), 200);
    (client, answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_nobody_reads_cost_little() {
    let data = tempdir().expect("a directory");
    let program = Program::start(data.path()).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    for number in 0..OBJECTS {
        create(&mut admin, &format!("large-{number}"), OBJECT).await;
    }
    let before = resident(&program);
    let mut stuck = Vec::new();
    for number in 0..STUCK {
        let protocol = if number % 2 == 0 { Protocol::Http1 } else { Protocol::Http2 };
        let path = if number % 4 < 2 { MAPS.to_owned() } else { format!("{MAPS}?resourceVersion=0") };
        stuck.push(ask(&program, protocol, &path).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cost = resident(&program).saturating_sub(before);
    assert!(cost < ALLOWED, "{STUCK} clients that do not read cost {} MB", cost >> 20);
    let answer = admin.get(&format!("{MAPS}?limit=1")).await.expect("others are served");
    assert_eq!(answer.status, 200);
    drop(stuck);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_nobody_reads_cost_little_and_end() {
    let data = tempdir().expect("a directory");
    let program = Program::start(data.path()).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let path = format!("{MAPS}?watch=1");
    let mut stuck = Vec::new();
    for number in 0..STUCK {
        let protocol = if number % 2 == 0 { Protocol::Http1 } else { Protocol::Http2 };
        stuck.push(ask(&program, protocol, &path).await);
    }
    let before = resident(&program);
    create(&mut admin, "busy", 16).await;
    // 40 MB of changes, of which the store and the history window keep their own share.
    for number in 0..200 {
        let body = json!({"metadata": {"name": "busy"}, "data": {"a": format!("{number}{}", "x".repeat(200 * 1024))}});
        let path = format!("{MAPS}/busy");
        let put = admin.exchange(Method::PUT, &path, &[], body.to_string().into());
        let answer = tokio::time::timeout(SOON, put).await.expect("writes go on").expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let cost = resident(&program).saturating_sub(before);
    assert!(cost < 2 * ALLOWED, "{STUCK} watches that nobody reads cost {} MB", cost >> 20);
    let answer = admin.get(&format!("{MAPS}/busy")).await.expect("others are served");
    assert_eq!(answer.status, 200);
    drop(stuck);
}

/// The connections that a server has open.
fn connections(program: &Program) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", program.pid())).expect("its files");
    let targets = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_nobody_reads_are_let_go() {
    let data = tempdir().expect("a directory");
    let program = Program::start_with(data.path(), &["--request-timeout=2s"]).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    create(&mut admin, "busy", 16).await;
    let before = connections(&program);
    let (mut stuck, busy) = (Vec::new(), format!("{MAPS}/busy"));
    for _ in 0..8 {
        stuck.push(ask(&program, Protocol::Http1, &format!("{MAPS}?watch=1")).await);
    }
    let mut reader = program.admin(Protocol::Http1).await;
    let silent = "/api/v1/namespaces/kube-public/secrets?watch=1";
    let silent = reader.send(Method::GET, silent, &[], Bytes::new()).await.expect("an answer begins");
    let mut silent = silent.into_body();
    // More than the buffers of a connection hold, until the last of them is gone.
    let gone = async {
        for number in 0_usize.. {
            let data = format!("{number}{}", "x".repeat(500 * 1024));
            let body = json!({"metadata": {"name": "busy"}, "data": {"a": data}});
            let put = admin.exchange(Method::PUT, &busy, &[], body.to_string().into());
            assert_eq!(put.await.expect("an answer").status, 200);
            if connections(&program) <= before + 1 {
                break;
            }
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("those who do not read are let go");
    drop(stuck);
    let created = json!({"metadata": {"name": "late"}, "data": {}}).to_string();
    let create = admin.exchange(Method::POST, "/api/v1/namespaces/kube-public/secrets", &[], created.into());
    assert_eq!(create.await.expect("an answer").status, 201);
    let told = tokio::time::timeout(SOON, silent.frame()).await.expect("it is told");
    let told = told.expect("who reads stays, however long nothing was said").expect("it is there");
    assert!(String::from_utf8_lossy(told.data_ref().expect("an event")).contains("\"late\""));
}
