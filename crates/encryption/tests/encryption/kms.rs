//! What is stored under keys of a key management service.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_encryption::{Configuration, Encryption, OpenError, Seed, Wrapped, seal_of};

const CONFIGURATION: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{kms: {apiVersion: v2, name: vault, endpoint: 'unix:///kms.sock'}}, {identity: {}}]
";

fn encryption() -> Encryption {
    Encryption::new(&Configuration::read(CONFIGURATION.as_bytes()).expect("in order")).expect("usable")
}

/// The service of the tests hides keys like this.
fn unwrap(wrapped: &Wrapped) -> Vec<u8> {
    let hidden = wrapped.source.strip_prefix(b"wrapped:").expect("its mark");
    hidden.iter().map(|byte| byte ^ 0x5a).collect()
}

#[test]
fn what_kube_apiserver_stored_is_opened() {
    let line = include_str!("golden-kms.txt").lines().find(|line| !line.starts_with('#')).expect("a line");
    let (key, value) = line.split_once(' ').expect("two words");
    let value = BASE64_STANDARD.decode(value).expect("base64");
    let encryption = encryption();
    let providers = encryption.of("", "secrets");
    let service = encryption.services().next().expect("a service");
    assert_eq!(providers.open(key.as_bytes(), &value), Err(OpenError::NoState));
    let wrapped = service.wants(&value).expect("its key is not known yet");
    assert_eq!(
        (wrapped.key_id.as_str(), &wrapped.annotations["key.example.com"][..]),
        ("key-1", &b"yes"[..])
    );
    // This server has another seed, under the same key of the service.
    let own = Wrapped { source: b"any".to_vec(), key_id: "key-1".to_owned(), ..Wrapped::default() };
    service.write_with(&Seed::random().expect("random"), own.clone()).expect("good");
    service.learn(&wrapped, Ok(&unwrap(&wrapped)));
    let opened = providers.open(key.as_bytes(), &value).expect("opened");
    let plain = opened.plain.expect("it was sealed");
    assert!(plain.starts_with(b"k8s\0") && plain.windows(6).any(|part| part == b"hidden"));
    assert!(!opened.stale, "the key is the same");
    assert_eq!(providers.open(b"/registry/secrets/default/s2", &value), Err(OpenError::Authentication));
    assert_eq!(seal_of(&value), providers.label());
    let other = Wrapped { key_id: "key-2".to_owned(), ..own };
    service.write_with(&Seed::random().expect("random"), other).expect("good");
    assert!(providers.open(key.as_bytes(), &value).expect("opened").stale, "the key is another one");
}

#[test]
fn what_a_service_says_is_remembered_for_the_same_service() {
    let before = encryption();
    let service = before.services().next().expect("a service");
    let configuration = |text: &str| Configuration::read(text.as_bytes()).expect("in order");
    let same = Encryption::after(&configuration(CONFIGURATION), &before).expect("usable");
    assert!(same.services().all(|known| std::sync::Arc::ptr_eq(known, service)));
    let moved = CONFIGURATION.replace("/kms.sock", "/other.sock");
    let moved = Encryption::after(&configuration(&moved), &before).expect("usable");
    assert!(!moved.services().any(|known| std::sync::Arc::ptr_eq(known, service)));
}

#[test]
fn each_limit_of_what_is_stored_beside_a_value_is_kept() {
    let good = Wrapped { source: vec![1; 1024], key_id: "k".repeat(1024), ..Wrapped::default() };
    assert_eq!(good.validate(), Ok(()), "as much as there may be");
    let annotated = |name: &str, length: usize| Wrapped {
        annotations: [(name.to_owned(), vec![0; length])].into(),
        ..good.clone()
    };
    assert_eq!(annotated("a.example.com", (32 << 10) - 13).validate(), Ok(()), "as much as there may be");
    let about = "failed to validate";
    for (wrapped, expected) in [
        (
            Wrapped { source: Vec::new(), ..good.clone() },
            format!("{about} encrypted DEK source: encrypted DEK source is empty"),
        ),
        (
            Wrapped { source: vec![1; 1025], ..good.clone() },
            format!(
                "{about} encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size of 1024"
            ),
        ),
        (Wrapped { key_id: String::new(), ..good.clone() }, format!("{about} key id: keyID is empty")),
        (
            Wrapped { key_id: "k".repeat(1025), ..good.clone() },
            format!("{about} key id: keyID is 1025 bytes, which exceeds the max size of 1024"),
        ),
        (
            annotated("a.example.com", (32 << 10) - 12),
            format!(
                "{about} annotations: total size of annotations is 32769, which exceeds the max size of 32768"
            ),
        ),
    ] {
        let error = wrapped.validate().expect_err(&expected);
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
