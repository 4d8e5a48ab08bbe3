//! Certificates are replaced while servers run, and nothing but "try again" is ever heard of it.

use std::{fs, path::Path, time::SystemTime};

use concord_pki::{FrontProxyPki, ServingNames, ServingPki};
use tempfile::tempdir;

use super::{Fleet, Member, agreed, eventually};

const JOBS: &str = "/apis/batch/v1/jobs";
const PEER_CA: &str = "--peer-ca-file";
const CLIENT_CA: &str = "--requestheader-client-ca-file";

fn copy(from: &Path, to: &Path) {
    // As a secret's volume does it: a file is there as a whole or not at all.
    let aside = to.with_extension("new");
    fs::copy(from, &aside).expect("copied");
    fs::rename(aside, to).expect("replaced");
}

fn bundle(files: &[&Path], to: &Path) {
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).expect("text")).collect();
    let aside = to.with_extension("new");
    fs::write(&aside, texts.concat()).expect("written");
    fs::rename(aside, to).expect("replaced");
}

/// How often a server has read a file again, by its own word.
fn reads(member: &Member, flag: &str) -> usize {
    let (log, flag) = (member.program.log(), format!("flag=\"{flag}\""));
    log.lines().filter(|line| line.contains("was read again") && line.contains(&flag)).count()
}

/// Replaces files, and waits until servers have read them.
async fn replaced(readers: &[(&Member, &str)], replace: impl FnOnce()) {
    let before: Vec<usize> = readers.iter().map(|(member, flag)| reads(member, flag)).collect();
    replace();
    for ((member, flag), before) in readers.iter().zip(before) {
        eventually(flag, || async { (reads(member, flag) > before).then_some(()) }).await;
    }
}

async fn served(member: &Member, what: &str) {
    eventually(what, || async {
        let answer = member.get(JOBS).await;
        assert!(matches!(answer.status, 200 | 503), "{what}: {} {}", answer.status, answer.body);
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_and_certificates_are_replaced_one_after_the_other() {
    let mut fleet = Fleet::new().await;
    // The first start makes the PKI.
    fleet.start("apiserver-first", &[]).await.stop("TERM").await;
    let (files, next) = (tempdir().expect("a directory"), tempdir().expect("a directory"));
    let now = SystemTime::now();
    FrontProxyPki::open_or_create(next.path(), now).expect("a PKI");
    let names = ServingNames::loopback().with_dns("kubernetes.default.svc");
    ServingPki::open_or_create(next.path(), &names, now).expect("a PKI");
    let (old, new) = (|name: &str| fleet.pki.path().join(name), |name: &str| next.path().join(name));
    let at = |name: &str| files.path().join(name);
    for name in ["ca.crt", "apiserver.crt", "apiserver.key", "front-proxy-ca.crt", "front-proxy-client.crt"] {
        copy(&old(name), &at(name));
    }
    copy(&old("front-proxy-client.key"), &at("front-proxy-client.key"));
    let flag = |flag: &str, file: &str| format!("--{flag}={}", at(file).display());
    let client = [
        flag("proxy-client-cert-file", "front-proxy-client.crt"),
        flag("proxy-client-key-file", "front-proxy-client.key"),
        flag("requestheader-client-ca-file", "front-proxy-ca.crt"),
    ];
    let headers = [
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ];
    let serving = [flag("tls-cert-file", "apiserver.crt"), flag("tls-private-key-file", "apiserver.key")];
    let common: Vec<&str> = client.iter().map(String::as_str).chain(headers).collect();
    let (peer_ca, both) = (at("ca.crt"), [old("ca.crt"), new("ca.crt")]);
    let fronts = [old("front-proxy-ca.crt"), new("front-proxy-ca.crt")];
    let sources = ["apiserver.crt", "apiserver.key", "front-proxy-client.crt", "front-proxy-client.key"]
        .map(|name| (new(name), at(name)));
    fleet.peer_ca = peer_ca;
    let far = fleet.start("apiserver-a", &[&["--runtime-config=batch/v1=false"], &common[..]].concat()).await;
    let own: Vec<&str> = common.iter().copied().chain(serving.iter().map(String::as_str)).collect();
    let near = fleet.start("apiserver-b", &own).await;
    agreed(&[&far, &near]).await;
    served(&far, "before").await;

    // First everybody believes both authorities, then everybody shows a certificate of the new one, then the old one goes.
    let authorities = [(&far, PEER_CA), (&near, PEER_CA), (&far, CLIENT_CA), (&near, CLIENT_CA)];
    replaced(&authorities, || {
        bundle(&both.each_ref().map(|file| file.as_path()), &fleet.peer_ca);
        bundle(&fronts.each_ref().map(|file| file.as_path()), &at("front-proxy-ca.crt"));
    })
    .await;
    served(&far, "both are believed").await;
    let shown = [(&far, "--proxy-client-cert-file"), (&far, PEER_CA), (&near, "--tls-cert-file")];
    replaced(&shown, || sources.iter().for_each(|(from, to)| copy(from, to))).await;
    served(&far, "the new certificates are shown").await;
    replaced(&authorities, || {
        bundle(&[&both[1]], &fleet.peer_ca);
        bundle(&[&fronts[1]], &at("front-proxy-ca.crt"));
    })
    .await;
    // With what was shown before nobody would be believed any more, on either side.
    served(&far, "the old authority is gone").await;
    // And if the old certificate were shown again, nobody would believe it.
    copy(&fleet.pki.path().join("front-proxy-client.crt"), &at("front-proxy-client.crt"));
    copy(&fleet.pki.path().join("front-proxy-client.key"), &at("front-proxy-client.key"));
    eventually("who is not believed is told to try again", || async {
        let answer = far.get(JOBS).await;
        assert!(matches!(answer.status, 200 | 503), "{} {}", answer.status, answer.body);
        (answer.status == 503).then_some(())
    })
    .await;
}
