//! What servers behind this one see of its certificate.

use std::{path::Path, time::SystemTime};

use concord_pki::{AdminPki, FrontProxyPki};
use x509_parser::{parse_x509_certificate, pem::parse_x509_pem};

fn open(directory: &Path) -> FrontProxyPki {
    FrontProxyPki::open_or_create(directory, SystemTime::now()).expect("opened")
}

#[test]
fn it_is_made_once_by_an_authority_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let admin = AdminPki::open_or_create(directory.path(), SystemTime::now()).expect("opened");
    let (first, again) = (open(directory.path()), open(directory.path()));
    assert!(first.issued && !again.issued && first.pair == again.pair);
    assert_ne!(first.ca, admin.ca);
    for file in
        ["front-proxy-ca.crt", "front-proxy-ca.key", "front-proxy-client.crt", "front-proxy-client.key"]
    {
        assert!(directory.path().join(file).exists(), "{file}");
    }
}

#[test]
fn it_names_the_proxy_and_no_group() {
    let directory = tempfile::tempdir().expect("a directory");
    let proxy = open(directory.path());
    let (_, pem) = parse_x509_pem(proxy.pair.certificate.as_bytes()).expect("PEM");
    let (_, certificate) = parse_x509_certificate(&pem.contents).expect("a certificate");
    assert_eq!(certificate.subject().to_string(), "CN=front-proxy-client");
}
