//! What an operator sees of the PKI directory over a server's life.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use concord_pki::{Error, RENEW_BEFORE, ServingNames, ServingPki};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn open(directory: &Path, now: SystemTime) -> Result<ServingPki, Error> {
    ServingPki::open_or_create(directory, &ServingNames::loopback(), now)
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    fs::read(directory.join(name)).expect("the file is there")
}

#[test]
fn a_first_start_makes_everything_and_the_next_one_keeps_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let pki = directory.path().join("deep/pki");
    let now = SystemTime::now();
    assert!(open(&pki, now).expect("made").issued);
    let names = ["ca.crt", "ca.key", "apiserver.crt", "apiserver.key"];
    let before = names.map(|name| read(&pki, name));
    let mode = |name| fs::metadata(pki.join(name)).expect("there").permissions().mode() & 0o777;
    assert_eq!(names.map(mode), [0o644, 0o600, 0o644, 0o600]);

    assert!(!open(&pki, now + DAY).expect("opened").issued);
    assert_eq!(names.map(|name| read(&pki, name)), before);
}

#[test]
fn a_certificate_near_its_end_is_issued_anew_by_the_same_authority() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    open(directory.path(), now).expect("made");
    let ca = read(directory.path(), "ca.crt");
    let late = now + 366 * DAY - RENEW_BEFORE;
    assert!(!open(directory.path(), late - 2 * DAY).expect("opened").issued);
    assert!(open(directory.path(), late).expect("opened").issued);
    assert_eq!(read(directory.path(), "ca.crt"), ca);
}

#[test]
fn a_new_name_needs_a_new_certificate_and_a_dropped_one_does_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    let more = ServingNames::loopback().with_dns("node-1.example").with_ip([10, 0, 0, 7].into());
    assert!(open(directory.path(), now).expect("made").issued);
    assert!(ServingPki::open_or_create(directory.path(), &more, now).expect("opened").issued);
    assert!(!ServingPki::open_or_create(directory.path(), &more, now).expect("opened").issued);
    assert!(!open(directory.path(), now).expect("opened").issued);
}

#[test]
fn whatever_is_wrong_with_the_serving_pair_is_cured_by_issuing_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let other = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    open(directory.path(), now).expect("made");
    open(other.path(), now).expect("made");
    let foreign = read(other.path(), "apiserver.key");
    for (file, content) in [
        ("apiserver.key", &foreign[..]),
        ("apiserver.crt", b"torn"),
        ("apiserver.key", b""),
        ("apiserver.crt", b""),
    ] {
        fs::write(directory.path().join(file), content).expect("written");
        assert!(open(directory.path(), now).expect("cured").issued, "{file} with {} bytes", content.len());
        assert!(!open(directory.path(), now).expect("opened").issued);
    }
    fs::remove_file(directory.path().join("apiserver.key")).expect("removed");
    assert!(open(directory.path(), now).expect("cured").issued);
}

#[test]
fn an_authority_is_never_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    open(directory.path(), now).expect("made");
    let certificate = read(directory.path(), "ca.crt");
    let key = read(directory.path(), "ca.key");

    fs::remove_file(directory.path().join("ca.key")).expect("removed");
    let error = open(directory.path(), now).expect_err("the key is gone");
    assert!(matches!(error, Error::KeyMissing { .. }), "{error}");
    assert!(error.to_string().contains("ca.key") && error.to_string().contains("backup"), "{error}");

    fs::write(directory.path().join("ca.key"), "not a key").expect("written");
    assert!(matches!(open(directory.path(), now), Err(Error::Malformed { what: "private key", .. })));

    fs::write(directory.path().join("ca.key"), key).expect("written");
    fs::write(directory.path().join("ca.crt"), "not a certificate").expect("written");
    assert!(matches!(open(directory.path(), now), Err(Error::Malformed { what: "certificate", .. })));

    fs::write(directory.path().join("ca.crt"), &certificate).expect("written");
    assert!(!open(directory.path(), now).expect("as before").issued);
}

#[test]
fn an_authority_whose_key_is_another_ones_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let other = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    open(directory.path(), now).expect("made");
    open(other.path(), now).expect("made");
    fs::write(directory.path().join("ca.key"), read(other.path(), "ca.key")).expect("written");
    fs::remove_file(directory.path().join("apiserver.crt")).expect("removed");
    let error = open(directory.path(), now).expect_err("no client would accept it");
    assert!(matches!(error, Error::UnusableAuthority { .. }), "{error}");
    assert!(!directory.path().join("apiserver.crt").exists(), "nothing unusable is written");
}

#[test]
fn an_authority_interrupted_before_its_certificate_is_completed() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    open(directory.path(), now).expect("made");
    let key = read(directory.path(), "ca.key");
    fs::remove_file(directory.path().join("ca.crt")).expect("removed");
    assert!(open(directory.path(), now).expect("completed").ca_certificate.exists());
    assert_eq!(read(directory.path(), "ca.key"), key);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    let error = open(&file.join("pki"), SystemTime::now()).expect_err("a file is in the way");
    assert!(error.to_string().contains("file/pki"), "{error}");
}
