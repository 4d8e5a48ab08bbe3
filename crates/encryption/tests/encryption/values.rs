//! What is stored.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_encryption::{Configuration, Encryption, OpenError, Opened, Providers};

/// The keys that the recorded values were written with; base64 of the letters and digits in the comments.
const RECORDED: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
# 0123456789abcdef0123456789abcdef
- resources: [secrets]
  providers:
  - aescbc: {keys: [{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
  - identity: {}
# abcdefghijklmnop
- resources: [configmaps]
  providers:
  - aesgcm: {keys: [{name: key2, secret: YWJjZGVmZ2hpamtsbW5vcA==}]}
  - identity: {}
# abcdefghijklmnopqrstuvwx
- resources: [serviceaccounts]
  providers:
  - aescbc: {keys: [{name: key3, secret: YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4}]}
- resources: ['*.coordination.k8s.io']
  providers:
  - secretbox: {keys: [{name: key4, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
- resources: [podtemplates]
  providers:
  - aesgcm: {keys: [{name: key5, secret: YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4}]}
";

fn encryption(configuration: &str) -> Encryption {
    let configuration = Configuration::read(configuration.as_bytes()).expect("a configuration");
    Encryption::new(&configuration).expect("in order")
}

/// One rule for secrets with these providers.
fn providers(providers: &str) -> std::sync::Arc<Providers> {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
    let rule = format!("{head}resources: [{{resources: [secrets], providers: [{providers}]}}]\n");
    encryption(&rule).of("", "secrets").clone()
}

fn key(name: &str, letter: u8) -> String {
    format!("{{name: {name}, secret: {}}}", BASE64_STANDARD.encode([letter; 32]))
}

/// The recorded values: their keys, what opens them, and the values.
fn recorded() -> Vec<(String, std::sync::Arc<Providers>, Vec<u8>)> {
    let encryption = encryption(RECORDED);
    let lines = include_str!("golden.txt").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &str| {
        let (key, value) = line.split_once(' ').expect("two words");
        let resource = key.split('/').nth(2).expect("a resource");
        let group = if resource == "leases" { "coordination.k8s.io" } else { "" };
        let value = BASE64_STANDARD.decode(value).expect("base64");
        (key.to_owned(), encryption.of(group, resource).clone(), value)
    };
    lines.map(read).collect()
}

#[test]
fn what_kube_apiserver_stored_is_opened() {
    let recorded = recorded();
    assert_eq!(recorded.len(), 5);
    for (key, providers, value) in recorded {
        let Opened { plain, stale, .. } = providers.open(key.as_bytes(), &value).expect(&key);
        let plain = plain.expect("it was sealed");
        assert!(plain.starts_with(b"k8s\0"), "{key}");
        assert!(plain.windows(7).any(|part| part == b"default"), "{key}");
        assert!(!stale, "{key}");
    }
}

#[test]
fn what_is_sealed_is_marked_and_opened() {
    for (key, providers, recorded) in recorded() {
        for length in [0, 1, 15, 16, 17, 1000] {
            let plain = vec![b'x'; length];
            let sealed = providers.seal(key.as_bytes(), &plain).expect("sealed").expect("encrypted");
            let mark = |value: &[u8]| {
                value.split_inclusive(|byte| *byte == b':').take(5).collect::<Vec<_>>().concat()
            };
            assert_eq!(mark(&sealed), mark(&recorded), "{key}");
            let opened = providers.open(key.as_bytes(), &sealed).expect("opened");
            assert_eq!((opened.plain, opened.stale), (Some(plain), false), "{key} {length}");
        }
        let again = || providers.seal(key.as_bytes(), b"x").expect("sealed");
        assert_ne!(again(), again(), "{key}: never the same bytes twice");
    }
}

/// Cipher Block Chaining authenticates nothing: it may open to something else, but must not do worse.
#[test]
fn what_was_changed_is_refused() {
    for (key, providers, value) in recorded() {
        let authenticated = !key.contains("/secrets/") && !key.contains("/serviceaccounts/");
        for at in 0..value.len() {
            let mut changed = value.clone();
            changed[at] ^= 1;
            let opened = providers.open(key.as_bytes(), &changed);
            let is_identity = at < 8 && opened.as_ref().is_ok_and(|opened| opened.plain.is_none());
            assert!(!authenticated || opened.is_err() || is_identity, "{key} changed at {at}");
            let cut = providers.open(key.as_bytes(), &value[..at]);
            assert!(!authenticated || cut.is_err() || at < 8, "{key} cut at {at}");
        }
    }
}

#[test]
fn a_value_in_another_place_is_refused_where_places_are_authenticated() {
    let gcm = providers(&format!("{{aesgcm: {{keys: [{}]}}}}", key("a", b'a')));
    let sealed = gcm.seal(b"/registry/secrets/ns/one", b"secret").expect("sealed").expect("encrypted");
    assert_eq!(gcm.open(b"/registry/secrets/ns/two", &sealed), Err(OpenError::Authentication));
}

#[test]
fn the_first_writes_and_all_read() {
    let (old, new) = (key("old", b'a'), key("new", b'b'));
    let place = b"/registry/secrets/ns/name";
    let before = providers(&format!("{{secretbox: {{keys: [{old}]}}}}, {{identity: {{}}}}"));
    let value = before.seal(place, b"x").expect("sealed").expect("encrypted");
    for (given, stale) in [
        (format!("{{secretbox: {{keys: [{old}, {new}]}}}}"), false),
        (format!("{{secretbox: {{keys: [{new}, {old}]}}}}"), true),
        (format!("{{secretbox: {{keys: [{new}]}}}}, {{secretbox: {{keys: [{old}]}}}}"), true),
        (format!("{{identity: {{}}}}, {{secretbox: {{keys: [{old}]}}}}"), true),
        (format!("{{aesgcm: {{keys: [{old}]}}}}, {{secretbox: {{keys: [{old}]}}}}"), true),
    ] {
        let opened = providers(&given).open(place, &value).expect("opened");
        assert_eq!((opened.plain, opened.stale), (Some(b"x".to_vec()), stale), "{given}");
    }
}

#[test]
fn a_key_name_used_twice_does_not_hide_the_other() {
    let place = b"/registry/secrets/ns/name";
    let old = providers(&format!("{{aesgcm: {{keys: [{}]}}}}", key("same", b'a')));
    let value = old.seal(place, b"x").expect("sealed").expect("encrypted");
    let both = providers(&format!("{{aesgcm: {{keys: [{}, {}]}}}}", key("same", b'b'), key("same", b'a')));
    let opened = both.open(place, &value).expect("opened");
    assert_eq!((opened.plain, opened.stale), (Some(b"x".to_vec()), true));
    assert_eq!(opened.key.as_deref(), Some(old.label().as_str()), "it is known which of them opened it");
    assert_ne!(both.label(), old.label(), "what writes now is another key");
    let sealed = both.seal(place, b"x").expect("sealed").expect("encrypted");
    assert_eq!(both.open(place, &sealed).expect("opened").key.as_deref(), Some(both.label().as_str()));
}

#[test]
fn plain_values_are_stale_where_others_are_wanted() {
    let value = b"{\"kind\":\"Secret\"}";
    let plain = |stale| Ok(Opened { plain: None, stale, key: None });
    let sealing = providers(&format!("{{aescbc: {{keys: [{}]}}}}, {{identity: {{}}}}", key("a", b'a')));
    assert_eq!(sealing.open(b"k", value), plain(true));
    assert_eq!(Providers::identity().open(b"k", value), plain(false));
    assert_eq!(Providers::identity().seal(b"k", value), Ok(None));
}

#[test]
fn what_cannot_be_opened_says_why() {
    let none = Providers::identity();
    let cbc = providers(&format!("{{aescbc: {{keys: [{}]}}}}", key("a", b'a')));
    let gcm = providers(&format!("{{aesgcm: {{keys: [{}, {}]}}}}", key("a", b'a'), key("a", b'b')));
    let secretbox = providers(&format!("{{secretbox: {{keys: [{}]}}}}", key("a", b'a')));
    for (providers, value, text) in [
        (&none, "k8s:enc:aescbc:v1:a:x", "identity transformer tried to read encrypted data"),
        (&*cbc, "k8s:enc:aesgcm:v1:a:x", "no matching prefix found"),
        (&*cbc, "plain", "no matching prefix found"),
        (&*cbc, "k8s:enc:aescbc:v1:b:x", "no matching key was found for the provided AES transformer"),
        (&*cbc, "k8s:enc:aescbc:v1:a:x", "the stored data was shorter than the required size"),
        (
            &*cbc,
            "k8s:enc:aescbc:v1:a:0123456789abcdefx",
            "the stored data is not a multiple of the block size",
        ),
        (&*cbc, "k8s:enc:aescbc:v1:a:0123456789abcdef", "invalid PKCS7 data (empty or not padded)"),
        (
            &*gcm,
            "k8s:enc:aesgcm:v1:a:0123456789abcdef",
            "[cipher: message authentication failed, cipher: message authentication failed]",
        ),
        (
            &*secretbox,
            "k8s:enc:secretbox:v1:b:x",
            "no matching key was found for the provided Secretbox transformer",
        ),
        (
            &*secretbox,
            "k8s:enc:secretbox:v1:a:0123456789012345678901234567890123456789x",
            "output array was not large enough for encryption",
        ),
    ] {
        let error = providers.open(b"k", value.as_bytes()).expect_err(value);
        assert_eq!(error.to_string(), text, "{value}");
    }
}

#[test]
fn labels_name_what_writes() {
    assert_eq!(Providers::identity().label(), "");
    let given = format!("{{aescbc: {{keys: [{}, {}]}}}}", key("a", b'a'), key("b", b'b'));
    let label = providers(&given).label();
    let tag = label.strip_prefix("aescbc:v1:a:").expect("its name");
    assert!(tag.len() == 16 && tag.bytes().all(|digit| digit.is_ascii_hexdigit()), "{label}");
    assert_eq!(label, providers(&given).label(), "every server says the same");
    let others = ["{aesgcm: {keys: [K]}}", "{aescbc: {keys: [L]}}", "{aescbc: {keys: [M]}}"]
        .map(|given| {
            given.replace('K', &key("a", b'a')).replace('L', &key("b", b'a')).replace('M', &key("a", b'c'))
        })
        .map(|given| providers(&given).label());
    assert!(others.iter().all(|other| !other.ends_with(tag)), "{others:?}");
}
