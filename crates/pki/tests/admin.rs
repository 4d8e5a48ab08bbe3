//! What an operator sees of the administrator's certificate and kubeconfig, and what several servers see of one
//! directory.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

use concord_codec::{Options, decode_yaml};
use concord_pki::{AdminPki, Error, Kubeconfig, RENEW_BEFORE, ServingNames, ServingPki, load_identity};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn open(directory: &Path, now: SystemTime) -> AdminPki {
    AdminPki::open_or_create(directory, now).expect("opened")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

#[test]
fn the_certificate_is_made_once_and_renewed_in_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    let first = open(directory.path(), now);
    assert!(first.issued);
    assert_eq!((mode(&first.certificate), mode(&first.key)), (0o644, 0o600));
    let again = open(directory.path(), now + DAY);
    assert!(!again.issued && again.pair == first.pair);
    let late = now + 366 * DAY - RENEW_BEFORE;
    let renewed = open(directory.path(), late);
    assert!(renewed.issued && renewed.pair != first.pair && renewed.ca == first.ca);
}

#[test]
fn whatever_is_wrong_with_the_pair_is_cured_by_issuing_it() {
    let (directory, other) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let now = SystemTime::now();
    open(directory.path(), now);
    let foreign = open(other.path(), now).pair;
    for (file, content) in [
        ("admin.crt", foreign.certificate.as_str()),
        ("admin.key", foreign.key.as_str()),
        ("admin.crt", "torn"),
        ("admin.key", ""),
    ] {
        fs::write(directory.path().join(file), content).expect("written");
        assert!(open(directory.path(), now).issued, "{file}");
        assert!(!open(directory.path(), now).issued);
    }
    // A serving certificate is not an administrator's.
    ServingPki::open_or_create(directory.path(), &ServingNames::loopback(), now).expect("made");
    for (from, to) in [("apiserver.crt", "admin.crt"), ("apiserver.key", "admin.key")] {
        fs::copy(directory.path().join(from), directory.path().join(to)).expect("copied");
    }
    assert!(open(directory.path(), now).issued);
}

#[test]
fn the_kubeconfig_has_everything_and_is_private() {
    let directory = tempfile::tempdir().expect("a directory");
    let admin = open(directory.path(), SystemTime::now());
    let path = directory.path().join("admin.kubeconfig");
    let kubeconfig = Kubeconfig::new("https://[::1]:6443", &admin);
    assert!(kubeconfig.write(&path).expect("written"));
    assert_eq!(mode(&path), 0o600);
    assert!(!kubeconfig.write(&path).expect("the same"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
    assert!(kubeconfig.write(&path).expect("made private again"));
    assert_eq!(mode(&path), 0o600);
    assert!(Kubeconfig::new("https://localhost:1", &admin).write(&path).expect("another address"));

    let value = decode_yaml(kubeconfig.as_str().as_bytes(), &Options::default()).expect("YAML").object;
    assert_eq!((&value["kind"], &value["apiVersion"]), (&"Config".into(), &"v1".into()));
    assert_eq!(value["clusters"][0]["cluster"]["server"], "https://[::1]:6443");
    assert_eq!(value["contexts"][0]["name"], value["current-context"]);
    assert_eq!(value["contexts"][0]["context"]["user"], value["users"][0]["name"]);
    assert_eq!(value["contexts"][0]["context"]["cluster"], value["clusters"][0]["name"]);
    for data in ["client-certificate-data", "client-key-data"] {
        let text = value["users"][0]["user"][data].as_str().expect("text");
        assert!(text.starts_with("LS0tLS1CRUdJTi"), "base64 of a PEM header, not {text}");
    }
}

#[test]
fn servers_that_start_at_once_in_one_directory_agree() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().expect("a directory");
        let pki = directory.path().join("pki");
        let start = || {
            let serving = ServingPki::open_or_create(&pki, &ServingNames::loopback(), SystemTime::now());
            let admin = open(&pki, SystemTime::now());
            (serving.expect("opened").identity.cert.clone(), admin.ca, admin.pair.certificate)
        };
        let found: Vec<_> = thread::scope(|scope| {
            let servers: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            servers.into_iter().map(|server| server.join().expect("no panic")).collect()
        });
        assert!(found.iter().all(|other| *other == found[0]));
    }
}

#[test]
fn a_directory_that_is_complete_may_be_read_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    let first = open(directory.path(), now);
    fs::remove_file(directory.path().join(".lock")).expect("it was there");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).expect("changed");
    let again = open(directory.path(), now);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("changed");
    assert!(!again.issued && again.pair == first.pair);
}

#[test]
fn certificates_of_ones_own_are_loaded_or_explained() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    ServingPki::open_or_create(directory.path(), &ServingNames::loopback(), now).expect("made");
    open(directory.path(), now);
    let file = |name: &str| directory.path().join(name);
    let identity = load_identity(&file("apiserver.crt"), &file("apiserver.key")).expect("usable");
    assert_eq!(identity.cert.len(), 1);
    fs::write(file("empty"), "").expect("written");
    for (certificate, key) in [
        ("apiserver.crt", "admin.key"),
        ("apiserver.crt", "none"),
        ("none", "apiserver.key"),
        ("empty", "apiserver.key"),
        ("apiserver.crt", "empty"),
    ] {
        let error = load_identity(&file(certificate), &file(key)).expect_err("unusable");
        assert!(matches!(error, Error::UnusablePair { .. }));
        let text = error.to_string();
        assert!(text.contains(certificate) && text.contains(key), "{text}");
    }
}
