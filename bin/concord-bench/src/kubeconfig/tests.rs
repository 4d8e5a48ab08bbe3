//! Every way a kubeconfig can name a server and a user, and every way it can fail to.

use std::path::Path;

use super::*;

const FULL: &str = "
apiVersion: v1
kind: Config
current-context: first
clusters:
- name: here
  cluster: {server: 'https://127.0.0.1:6443', certificate-authority-data: Y2E=}
- name: there
  cluster: {server: 'https://api.example.org/prefix/', insecure-skip-tls-verify: true, tls-server-name: other}
- name: plain
  cluster: {server: 'http://[::1]:8001'}
users:
- name: admin
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}
- name: bearer
  user: {token: abc}
contexts:
- name: first
  context: {cluster: here, user: admin}
- name: second
  context: {cluster: there, user: bearer}
- name: third
  context: {cluster: plain}
";

fn parsed(context: Option<&str>) -> Access {
    parse(FULL.as_bytes(), context, Path::new(".")).expect("a good kubeconfig")
}

#[test]
fn the_current_context_is_followed() {
    let tls = Tls {
        verify: Verify::Authorities(b"ca".to_vec()),
        server_name: "127.0.0.1".to_owned(),
        identity: Some((b"cert".to_vec(), b"key".to_vec())),
    };
    let expected = Access {
        host: "127.0.0.1".to_owned(),
        port: 6443,
        path_prefix: String::new(),
        tls: Some(tls),
        token: None,
    };
    assert_eq!(parsed(None), expected);
}

#[test]
fn a_named_context_is_followed() {
    let access = parsed(Some("second"));
    assert_eq!((access.host.as_str(), access.port), ("api.example.org", 443));
    assert_eq!(access.path_prefix, "/prefix");
    assert_eq!(access.token.as_deref(), Some("abc"));
    let tls = access.tls.expect("https");
    assert_eq!((tls.verify, tls.server_name.as_str()), (Verify::Nobody, "other"));
}

#[test]
fn plain_http_needs_no_user() {
    let access = parsed(Some("third"));
    assert_eq!((access.host.as_str(), access.port, access.tls), ("::1", 8001, None));
}

#[test]
fn json_is_a_kubeconfig_too() {
    let json = r#"{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k"}}],
        "clusters":[{"name":"k","cluster":{"server":"https://h"}}]}"#;
    let access = parse(json.as_bytes(), None, Path::new(".")).expect("JSON");
    assert_eq!(access.tls.expect("https").verify, Verify::System);
}

#[test]
fn files_are_relative_to_the_kubeconfig() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in [("ca.pem", "ca"), ("c.pem", "cert"), ("k.pem", "key"), ("t", "secret\n")] {
        std::fs::write(directory.path().join(name), text).expect("written");
    }
    let path = directory.path().join("config");
    let text = FULL
        .replace("certificate-authority-data: Y2E=", "certificate-authority: ca.pem")
        .replace("client-certificate-data: Y2VydA==", "client-certificate: c.pem")
        .replace("client-key-data: a2V5", "client-key: k.pem, tokenFile: t");
    std::fs::write(&path, text).expect("written");
    let access = load(&path, None).expect("a good kubeconfig");
    let tls = access.tls.expect("https");
    assert_eq!(tls.verify, Verify::Authorities(b"ca".to_vec()));
    assert_eq!(tls.identity, Some((b"cert".to_vec(), b"key".to_vec())));
    assert_eq!(access.token.as_deref(), Some("secret"));
}

/// What is wrong is said, with what to do.
#[test]
fn every_fault_is_named() {
    let table: [(&str, &str, &str); 9] = [
        ("current-context: first", "other: x", "no current-context: choose one with --context"),
        ("current-context: first", "current-context: x", "no context \"x\"; it has: first, second, third"),
        ("{cluster: here, user: admin}", "{cluster: gone}", "no cluster \"gone\""),
        ("{cluster: here, user: admin}", "{cluster: here, user: gone}", "no user \"gone\""),
        ("{cluster: here, user: admin}", "{user: admin}", "names no cluster"),
        ("https://127.0.0.1:6443", "ftp://127.0.0.1", "must begin with https:// or http://"),
        ("Y2E=", "'!'", "certificate-authority-data is not base64"),
        ("client-key-data: a2V5", "x: y", "must be given together"),
        ("server: 'https://127.0.0.1:6443'", "proxy-url: 'http://p'", "proxy-url is not supported"),
    ];
    for (from, to, expected) in table {
        assert!(FULL.contains(from), "{from}");
        let failure = parse(FULL.replace(from, to).as_bytes(), None, Path::new(".")).expect_err(to);
        assert!(format!("{failure:#}").contains(expected), "{failure:#} does not say {expected}");
    }
    let exec = FULL.replace("token: abc", "exec: {command: c}");
    let failure = parse(exec.as_bytes(), Some("second"), Path::new(".")).expect_err("exec");
    assert!(failure.to_string().contains("exec credentials are not supported"));
    let failure = parse(b"\x00{", None, Path::new(".")).expect_err("not YAML");
    assert!(failure.to_string().contains("neither YAML nor JSON"));
    let failure = load(Path::new("does/not/exist"), None).expect_err("no file");
    assert!(failure.to_string().contains("--kubeconfig"));
}
