//! A sealed store on a real one.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use concord_encryption::{Configuration, Encryption};
use concord_store::{Change, Compare, Error, KeyRange, Scan, Store, Txn, why_unreadable};
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_sealed::{Keyring, Places, SealedStore};
use futures_util::StreamExt as _;
use tempfile::TempDir;

const SECRET: &str = "/registry/secrets/default/a";
const OTHER: &str = "/registry/configmaps/default/a";
const CUSTOM: &str = "/registry/example.com/foos/a";

/// Keys of 32 bytes that differ in their first letter.
fn encryption(rules: &str) -> Encryption {
    let key = |name: &str| format!("{{name: {name}, secret: {}}}", secret(name));
    let mut text =
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n".to_owned();
    text.push_str(rules);
    for name in ["one", "two"] {
        text = text.replace(&format!("<{name}>"), &key(name));
    }
    Encryption::new(&Configuration::read(text.as_bytes()).expect("in order")).expect("usable")
}

fn secret(name: &str) -> &'static str {
    match name {
        "one" => "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=",
        _ => "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=",
    }
}

const ONE: &str = "- {resources: [secrets], providers: [{aescbc: {keys: [<one>]}}, {identity: {}}]}\n";
const BOTH: &str =
    "- {resources: [secrets], providers: [{aescbc: {keys: [<two>, <one>]}}, {identity: {}}]}\n";
const TWO: &str = "- {resources: [secrets], providers: [{aescbc: {keys: [<two>]}}, {identity: {}}]}\n";

struct World {
    _directory: TempDir,
    plain: Arc<dyn Store>,
    keyring: Arc<Keyring>,
    store: SealedStore,
}

fn world(rules: &str) -> World {
    let directory = tempfile::tempdir().expect("a directory");
    let plain = EmbeddedStore::open(&Options::new(directory.path().join("store.db"))).expect("a store");
    let plain: Arc<dyn Store> = Arc::new(plain);
    let named = |key: &str| (key.to_owned(), (String::new(), key.to_owned()));
    let places = Places::new("/registry/", [named("secrets"), named("configmaps")]);
    let keyring = Arc::new(Keyring::new(encryption(rules), places));
    let store = SealedStore::new(plain.clone(), keyring.clone());
    World { _directory: directory, plain, keyring, store }
}

async fn value(store: &dyn Store, key: &str) -> Bytes {
    let page = store.scan(Scan::key(key.to_owned())).await.expect("a page");
    page.entries[0].value.clone()
}

async fn put(store: &dyn Store, key: &str) -> u64 {
    store.transact(Txn::new().put(key.to_owned(), "plain")).await.expect("written").revision
}

#[tokio::test]
async fn what_is_kept_is_sealed_and_what_is_read_is_plain() {
    let World { plain, store, .. } = &world(ONE);
    put(store, SECRET).await;
    put(store, OTHER).await;
    assert_eq!(value(store, SECRET).await, "plain");
    let kept = value(plain.as_ref(), SECRET).await;
    assert!(kept.starts_with(b"k8s:enc:aescbc:v1:one:") && kept.len() == 22 + 32, "{kept:?}");
    assert_eq!(value(plain.as_ref(), OTHER).await, "plain", "nothing is said about it");
    let kept = store.scan_kept(Scan::new(KeyRange::all(), 9)).await.expect("a page").entries;
    assert!(kept.iter().any(|entry| entry.value.starts_with(b"k8s:enc:")));

    let commits = store.follow(1).next().await.expect("commits").expect("readable");
    let Change::Put(entry) = &commits[0].changes[0] else { panic!("a put") };
    assert_eq!(entry.value, "plain");

    let taken = Txn::new().compare(Compare::absent(SECRET)).put(SECRET, "x").read_on_failure(SECRET);
    let Err(Error::CompareFailed(failed)) = store.transact(taken).await else { panic!("it is there") };
    assert_eq!(failed.current[0].as_ref().expect("there").value, "plain");
}

#[tokio::test]
async fn values_are_stale_when_they_would_be_sealed_otherwise() {
    let World { keyring, store, .. } = &world(ONE);
    let (first, key) = (put(store, SECRET).await, Bytes::from(SECRET));
    assert!(!store.is_stale(&key, first).await.expect("known"));
    let one = keyring.seals_with("", "secrets");
    assert!(one.starts_with("aescbc:v1:one:"), "{one}");
    let kept = store.scan_kept(Scan::key(SECRET)).await.expect("a page").entries[0].value.clone();
    assert_eq!(keyring.inspect(&key, &kept).seal, one);
    keyring.replace(encryption(BOTH));
    let two = keyring.seals_with("", "secrets");
    assert_eq!(keyring.opens("", "secrets"), [&two, &one, ""]);
    assert_eq!(keyring.inspect(&key, &kept).seal, one, "whatever is first now");
    assert!(store.is_stale(&key, first).await.expect("known"), "the key is another one");
    let second = put(store, SECRET).await;
    assert!(!store.is_stale(&key, second).await.expect("known"));
    assert!(store.is_stale(&key, first).await.expect("known"), "that is not what is there");
    let other = put(store, OTHER).await;
    assert!(!store.is_stale(&Bytes::from(OTHER), other).await.expect("known"));
}

#[tokio::test]
async fn wildcards_cover_what_they_say() {
    let rules = "- {resources: [configmaps], providers: [{identity: {}}]}\n\
                 - {resources: ['*.example.com'], providers: [{secretbox: {keys: [<one>]}}]}\n\
                 - {resources: ['*.*'], providers: [{aesgcm: {keys: [<two>]}}]}\n";
    let World { plain, store, .. } = &world(rules);
    for (key, begins) in [
        (SECRET, "k8s:enc:aesgcm:v1:two:"),
        (OTHER, "plain"),
        (CUSTOM, "k8s:enc:secretbox:v1:one:"),
        ("/registry/other.com/bars/ns/a", "k8s:enc:aesgcm:v1:two:"),
        ("/registry/ranges/serviceips", "plain"),
    ] {
        put(store, key).await;
        assert!(value(plain.as_ref(), key).await.starts_with(begins.as_bytes()), "{key}");
        assert_eq!(value(store, key).await, "plain");
    }
    let moved = value(plain.as_ref(), SECRET).await;
    plain.transact(Txn::new().put("/registry/secrets/default/b", moved)).await.expect("written");
    let opened = value(store, "/registry/secrets/default/b").await;
    assert_eq!(why_unreadable(&opened), Some("cipher: message authentication failed"), "it was moved");
}

#[tokio::test]
async fn what_cannot_be_opened_is_read_again_when_the_keyring_changes() {
    let World { keyring, store, .. } = &world(ONE);
    let first = put(store, SECRET).await;
    keyring.replace(encryption(TWO));
    let why = "no matching key was found for the provided AES transformer";
    assert_eq!(why_unreadable(&value(store, SECRET).await), Some(why));
    let mut commits = store.follow(first);
    keyring.replace(encryption(BOTH));
    let again = tokio::time::timeout(Duration::from_secs(30), commits.next()).await.expect("in time");
    assert!(matches!(again, Some(Err(Error::Compacted { .. }))), "whoever follows loads again");
    assert!(commits.next().await.is_none());
    assert_eq!(value(store, SECRET).await, "plain");
    // Nothing was missed: nobody has to load again.
    let mut commits = store.follow(first);
    keyring.replace(encryption(BOTH));
    let second = put(store, SECRET).await;
    let next = commits.next().await.expect("commits").expect("no error");
    assert_eq!(next[0].revision, second);
}
