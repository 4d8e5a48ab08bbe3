//! How connections are secured, and what browsers are told, as flags and a file of flags say it.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use concord_pki::{Authority, ServingNames};
use concord_server::test_client::Protocol;
use http::Method;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::{TLS12, TLS13},
};
use tempfile::tempdir;

use crate::support::{Program, refused};

/// Shakes hands with a server of this name that this authority vouches for.
fn shake_hands(
    address: SocketAddr,
    (name, ca): (&str, &[u8]),
    version: &'static SupportedProtocolVersion,
) -> Result<(ProtocolVersion, CipherSuite), String> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca).map_err(|error| error.to_string())?;
    roots.add(ca).map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| error.to_string())?;
    }
    let suite = connection.negotiated_cipher_suite().expect("a cipher").suite();
    Ok((connection.protocol_version().expect("a version"), suite))
}

/// The files of a certificate for a name, and who vouches for it.
fn certificate(directory: &Path, name: &str) -> (String, String) {
    let (authority, now) = (Authority::generate().expect("an authority"), SystemTime::now());
    let pair = authority.issue_serving(&ServingNames::loopback().with_dns(name), now).expect("issued");
    let file = |kind: &str, text: &str| {
        let path = directory.join(format!("{name}.{kind}"));
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let files = format!("{},{}", file("crt", &pair.certificate), file("key", &pair.key));
    (files, authority.certificate(now).expect("a certificate"))
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_versions_and_ciphers_are_chosen_by_flags() {
    let data = tempdir().expect("a directory");
    let (foo, foo_ca) = certificate(data.path(), "foo.example.com");
    let (bar, bar_ca) = certificate(data.path(), "bar.example.org");
    let file = data.path().join("config.yaml");
    let text = format!(
        "tls-sni-cert-key: ['{foo}:foo.example.com', '{bar}:*.example.org']\n\
         tls-min-version: VersionTLS12\n\
         tls-cipher-suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_RSA_WITH_AES_128_CBC_SHA]\n"
    );
    fs::write(&file, text).expect("written");
    let program = Program::start_with(data.path(), &["--config", &file.display().to_string()]).await;
    program.ready(200).await;
    let own_ca = fs::read(data.path().join("pki/ca.crt")).expect("an authority");
    let chosen = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
    for (name, ca) in [
        ("localhost", &own_ca[..]),
        ("foo.example.com", foo_ca.as_bytes()),
        ("bar.example.org", bar_ca.as_bytes()),
    ] {
        let shaken = shake_hands(program.address, (name, ca), &TLS12);
        assert_eq!(shaken, Ok((ProtocolVersion::TLSv1_2, chosen)), "{name}");
        let (version, _) = shake_hands(program.address, (name, ca), &TLS13).expect(name);
        assert_eq!(version, ProtocolVersion::TLSv1_3, "{name}");
    }
    assert!(shake_hands(program.address, ("localhost", foo_ca.as_bytes()), &TLS13).is_err());
    program.signal("TERM");
    let told = program.ended().await.stderr;
    assert!(told.contains("TLS_RSA_WITH_AES_128_CBC_SHA") && told.contains("passed over"), "{told}");

    let program = Program::start_with(data.path(), &["--tls-min-version=VersionTLS13"]).await;
    let old = shake_hands(program.address, ("localhost", &own_ca), &TLS12);
    assert!(old.as_ref().is_err_and(|error| error.contains("ProtocolVersion")), "{old:?}");
    assert!(shake_hands(program.address, ("localhost", &own_ca), &TLS13).is_ok());
}

#[tokio::test]
async fn browsers_are_told_what_flags_say() {
    let data = tempdir().expect("a directory");
    let flags = [
        r"--cors-allowed-origins=^https://good\.example(:|$),//localhost:",
        "--strict-transport-security-directives=max-age=300,includeSubDomains",
    ];
    let program = Program::start_with(data.path(), &flags).await;
    program.ready(200).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = program.stranger(protocol).await;
        for (origin, allowed) in [
            ("https://good.example", true),
            ("https://good.example:8443", true),
            ("https://good.example.evil", false),
            ("http://localhost:3000", true),
        ] {
            for (method, status) in [(Method::GET, 200), (Method::OPTIONS, if allowed { 204 } else { 403 })] {
                let headers = [("origin", origin)];
                let answer = client.exchange(method, "/version", &headers, "".into()).await;
                let answer = answer.expect("an answer");
                assert_eq!(answer.status, status, "{origin}");
                let told = answer.headers.get("access-control-allow-origin");
                assert_eq!(told.is_some_and(|told| told == origin), allowed, "{origin}");
                assert_eq!(answer.headers["strict-transport-security"], "max-age=300; includeSubDomains");
            }
        }
    }
}

#[tokio::test]
async fn flags_that_would_protect_nobody_are_refused() {
    let data = tempdir().expect("a directory");
    for (flag, complaint) in [
        ("--cors-allowed-origins=example.com", "does not pin to start/end of host"),
        ("--strict-transport-security-directives=forever", "allowed values: max-age=expireTime"),
        ("--tls-min-version=VersionSSL30", "VersionTLS12"),
        ("--tls-cipher-suites=NONE", "Cipher suite NONE not supported or doesn't exist"),
        ("--tls-cipher-suites=TLS_AES_128_GCM_SHA256", "no cipher of TLS 1.2"),
        ("--tls-sni-cert-key=a.crt", "expected comma separated"),
        ("--tls-sni-cert-key=/none.crt,/none.key", "/none.crt"),
    ] {
        let told = refused(data.path(), &[flag]).await.stderr;
        assert!(told.contains(complaint), "{flag}: {told}");
    }
}
