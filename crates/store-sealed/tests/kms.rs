//! Values whose keys a key management service has.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_encryption::{Configuration, Encryption, seal_of};
use concord_store::{Error, KeyRange, Scan, Store, Txn, why_unreadable};
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_sealed::{Keyring, Places, Rhythm, SealedStore};
use concord_testing::kms::KmsPlugin;
use futures_util::StreamExt as _;
use tempfile::TempDir;

const SECRET: &str = "/registry/secrets/default/a";
const OTHER: &str = "/registry/secrets/default/b";

/// Far longer than anything takes.
const SOON: Duration = Duration::from_secs(30);

struct World {
    directory: TempDir,
    plain: Arc<dyn Store>,
    keyring: Arc<Keyring>,
    store: SealedStore,
    plugin: KmsPlugin,
}

fn encryption(plugin: &KmsPlugin) -> Encryption {
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - resources: [secrets]\n  providers:\n  - kms: {{apiVersion: v2, name: vault, endpoint: '{}', timeout: 5s}}\n  \
         - identity: {{}}\n",
        plugin.endpoint()
    );
    Encryption::new(&Configuration::read(text.as_bytes()).expect("in order")).expect("usable")
}

impl World {
    async fn new() -> Self {
        Self::with_lifetime(Duration::from_secs(180)).await
    }

    async fn with_lifetime(lifetime: Duration) -> Self {
        let plugin = KmsPlugin::start("key-1").expect("a service");
        let directory = tempfile::tempdir().expect("a directory");
        let plain = EmbeddedStore::open(&Options::new(directory.path().join("store.db"))).expect("a store");
        let plain: Arc<dyn Store> = Arc::new(plain);
        let keyring = ring(&plugin, lifetime).await;
        let store = SealedStore::new(plain.clone(), keyring.clone());
        Self { directory, plain, keyring, store, plugin }
    }

    /// What another server on the same store has, which asks the service once and again only if it has to.
    async fn patient_ring(&self) -> Arc<Keyring> {
        let rhythm = Rhythm { healthy: SOON, failing: Duration::from_millis(20), lifetime: SOON };
        let keyring = Arc::new(Keyring::new(encryption(&self.plugin), places()).with_rhythm(rhythm));
        keyring.attend().await;
        keyring
    }

    async fn label(&self, is_so: impl Fn(&str) -> bool) {
        until("another key", async || is_so(&self.keyring.seals_with("", "secrets"))).await;
    }
}

fn places() -> Places {
    let named = |key: &str| (key.to_owned(), (String::new(), key.to_owned()));
    Places::new("/registry/", [named("secrets")])
}

/// What another server on the same store has.
async fn ring(plugin: &KmsPlugin, lifetime: Duration) -> Arc<Keyring> {
    let often = Duration::from_millis(20);
    let rhythm = Rhythm { healthy: often, failing: often, lifetime };
    let keyring = Arc::new(Keyring::new(encryption(plugin), places()).with_rhythm(rhythm));
    keyring.attend().await;
    keyring
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < SOON, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Result<(), Error> {
    let txn = Txn::new().put(key.to_owned(), value.to_owned());
    store.transact(txn).await.map(drop)
}

async fn value(store: &dyn Store, key: &str) -> Bytes {
    let page = store.scan(Scan::key(key.to_owned())).await.expect("a page");
    page.entries.first().map(|entry| entry.value.clone()).expect("it is there")
}

#[tokio::test]
async fn values_are_kept_under_keys_of_the_service() {
    let world = World::new().await;
    assert_eq!(world.keyring.health(), Ok(()));
    put(&world.store, SECRET, "hidden").await.expect("stored");
    put(&world.store, OTHER, "hidden").await.expect("stored");
    let kept = value(world.plain.as_ref(), SECRET).await;
    assert!(kept.starts_with(b"k8s:enc:kms:v2:vault:"));
    assert!(!kept.windows(6).any(|part| part == b"hidden"));
    assert_eq!(seal_of(&kept), world.keyring.seals_with("", "secrets"));
    assert_eq!(value(&world.store, SECRET).await, "hidden");
    assert_eq!(world.plugin.decrypted(), 0, "the seed is known");
    // Another server asks once, however much there is.
    let ring = ring(&world.plugin, SOON).await;
    let another = SealedStore::new(world.plain.clone(), ring.clone());
    for key in [SECRET, OTHER] {
        assert_eq!(value(&another, key).await, "hidden");
        assert!(
            !ring.inspect(key.as_bytes(), &value(world.plain.as_ref(), key).await).is_stale,
            "the same key"
        );
    }
    assert_eq!(world.plugin.decrypted(), 1);
    // A value in another place is refused, and so is one that was changed anywhere.
    let moved = ring.inspect(OTHER.as_bytes(), &kept);
    assert_eq!(why_unreadable(&moved.plain), Some("cipher: message authentication failed"));
    // After the prefix come the value with two bytes before it, and then what the service has to know.
    let sealed = 23..23 + 32 + 12 + "hidden".len() + 16;
    for at in 8..kept.len() {
        let mut changed = kept.to_vec();
        changed[at] ^= 1;
        let shown = ring.inspect(SECRET.as_bytes(), &changed.into()).plain;
        let is_same = shown == "hidden" && !sealed.contains(&at);
        assert!(is_same || why_unreadable(&shown).is_some(), "changed at {at}: {shown:?}");
        let cut = ring.inspect(SECRET.as_bytes(), &kept.slice(..at)).plain;
        assert!(why_unreadable(&cut).is_some(), "cut at {at}: {cut:?}");
    }
    drop(world.directory);
}

#[tokio::test]
async fn another_key_makes_values_stale() {
    let world = World::new().await;
    put(&world.store, SECRET, "hidden").await.expect("stored");
    let (before, key) = (world.keyring.seals_with("", "secrets"), Bytes::from_static(SECRET.as_bytes()));
    let revision =
        async || world.plain.scan(Scan::key(SECRET)).await.expect("a page").entries[0].mod_revision;
    let is_stale = async || world.store.is_stale(&key, revision().await).await.expect("known");
    assert!(!is_stale().await);
    let mut changes = world.keyring.changes();
    changes.mark_unchanged();
    world.plugin.rotate("key-2");
    world.label(|label| label != before).await;
    assert!(changes.has_changed().expect("told"));
    assert!(is_stale().await);
    assert_eq!(value(&world.store, SECRET).await, "hidden");
    put(&world.store, SECRET, "hidden").await.expect("stored");
    assert!(!is_stale().await);
    // A service that says one thing and does another changes nothing.
    let now = world.keyring.seals_with("", "secrets");
    world.plugin.change(|behaviour| behaviour.status_key = "key-3".to_owned());
    until("a complaint", async || world.keyring.health().is_err()).await;
    let complaint = world.keyring.health().expect_err("a complaint");
    assert!(
        complaint.contains("kmsv2 Provider vault is not healthy, error: failed to rotate DEK"),
        "{complaint}"
    );
    assert_eq!(world.keyring.seals_with("", "secrets"), now);
    put(&world.store, SECRET, "hidden").await.expect("stored with the key that was");
}

#[tokio::test]
async fn limits_of_what_a_service_may_say() {
    let world = World::new().await;
    let long = || vec![b'a'; 1025];
    let name = |length: usize| String::from_utf8(vec![b'k'; length]).expect("text");
    let say = async |key: &str, annotations: &[(&str, Vec<u8>)]| {
        world.plugin.change(|behaviour| {
            behaviour.annotations =
                annotations.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        });
        world.plugin.rotate(key);
        until("a complaint", async || world.keyring.health().is_err()).await;
        let complaint = world.keyring.health().expect_err("a complaint");
        world.plugin.change(|behaviour| behaviour.annotations.clear());
        world.plugin.rotate("key-1");
        until("health", async || world.keyring.health().is_ok()).await;
        complaint
    };
    assert!(say("", &[]).await.contains("keyID is empty"));
    assert!(say(&name(1025), &[]).await.contains("keyID is 1025 bytes, which exceeds the max size of 1024"));
    let large = vec![0; 33 << 10];
    let complaint = say("key-4", &[("a.example.com", large)]).await;
    assert!(complaint.contains("which exceeds the max size of 32768"), "{complaint}");
    let complaint = say("key-5", &[("plain", long())]).await;
    assert!(complaint.contains("should be a domain with at least two segments"), "{complaint}");
    world.plugin.change(|behaviour| behaviour.healthz = "tired".to_owned());
    until("a complaint", async || world.keyring.health().is_err()).await;
    let complaint = world.keyring.health().expect_err("a complaint");
    assert_eq!(
        complaint,
        "kms-provider-0: kmsv2 Provider vault is not healthy, error: got unexpected healthz status: tired"
    );
    world.plugin.change(|behaviour| {
        behaviour.healthz = "ok".to_owned();
        behaviour.version = "v2beta1".to_owned();
    });
    let about =
        "KMSv2 API version should not change after the initial status response version v2, got v2beta1";
    until("that complaint", async || world.keyring.health().is_err_and(|why| why.contains(about))).await;
}

#[tokio::test]
async fn without_the_service_reads_go_on_and_writes_end_after_a_while() {
    let world = World::with_lifetime(Duration::from_millis(300)).await;
    put(&world.store, SECRET, "hidden").await.expect("stored");
    world.plugin.change(|behaviour| behaviour.failure = Some((14, "gone fishing".to_owned())));
    until("no writes", async || put(&world.store, SECRET, "more").await.is_err()).await;
    let error = put(&world.store, SECRET, "more").await.expect_err("no key").to_string();
    assert!(error.contains("encryptedDEKSource with keyID hash \"sha256:"), "{error}");
    assert!(error.contains(" expired at "), "{error}");
    value(&world.store, SECRET).await;
    world.plugin.change(|behaviour| behaviour.failure = None);
    until("writes", async || put(&world.store, SECRET, "more").await.is_ok()).await;
}

/// Upstream's three minutes are not over yet.
#[tokio::test]
async fn a_service_that_is_away_for_a_while_is_not_missed() {
    let world = World::new().await;
    put(&world.store, SECRET, "hidden").await.expect("stored");
    world.plugin.change(|behaviour| behaviour.failure = Some((14, "gone fishing".to_owned())));
    until("a complaint", async || world.keyring.health().is_err()).await;
    put(&world.store, OTHER, "more").await.expect("stored with the key that was");
    assert_eq!(value(&world.store, SECRET).await, "hidden");
    assert_eq!(value(&world.store, OTHER).await, "more");
    assert!(value(world.plain.as_ref(), OTHER).await.starts_with(b"k8s:enc:kms:v2:vault:"));
    world.plugin.change(|behaviour| behaviour.failure = None);
    until("health", async || world.keyring.health().is_ok()).await;
}

#[tokio::test]
async fn what_could_not_be_read_is_read_when_the_service_is_back() {
    let world = World::new().await;
    put(&world.store, SECRET, "hidden").await.expect("stored");
    world.plugin.change(|behaviour| behaviour.failure = Some((14, "gone fishing".to_owned())));
    let ring = ring(&world.plugin, SOON).await;
    assert!(ring.health().is_err());
    let another = SealedStore::new(world.plain.clone(), ring.clone());
    let shown = value(&another, SECRET).await;
    assert!(why_unreadable(&shown).is_some(), "{shown:?}");
    let mut commits = another.follow(1);
    world.plugin.change(|behaviour| behaviour.failure = None);
    let told = async {
        loop {
            match commits.next().await {
                Some(Ok(_)) => {}
                end => return end,
            }
        }
    };
    let told = tokio::time::timeout(SOON, told).await.expect("in time");
    assert!(matches!(told, Some(Err(Error::Compacted { .. }))), "whoever follows loads everything again");
    assert_eq!(value(&another, SECRET).await, "hidden");
    let all = another.scan_kept(Scan::new(KeyRange::prefix("/registry/"), 10)).await.expect("a page");
    assert_eq!(all.entries.len(), 1);
}

/// 3 is an answer about what was to be decrypted; 2 may be about anything, and the service says that it is well.
#[tokio::test]
async fn what_a_service_that_is_well_does_not_decrypt_is_lost() {
    for code in [3, 2] {
        let world = World::new().await;
        put(&world.store, SECRET, "hidden").await.expect("stored");
        let kept = value(world.plain.as_ref(), SECRET).await;
        world.plugin.change(|behaviour| behaviour.decrypt_failure = Some((code, "a broken key".to_owned())));
        let ring = world.patient_ring().await;
        let another = SealedStore::new(world.plain.clone(), ring.clone());
        // Whoever follows reads again whenever he is told that it may go better now.
        let reads = async || drop(value(&another, SECRET).await);
        until("that it is lost", async || {
            reads().await;
            ring.is_lost(SECRET.as_bytes(), &kept)
        })
        .await;
        let asked = world.plugin.decrypted();
        assert!((1..=8).contains(&asked), "code {code}: asked {asked} times");
        for _ in 0..20 {
            reads().await;
        }
        assert_eq!(world.plugin.decrypted(), asked, "code {code}: it is not asked without end");
        assert!(!ring.is_lost(OTHER.as_bytes(), b"plain"));
    }
}

#[tokio::test]
async fn what_a_service_that_is_away_does_not_decrypt_is_not_lost() {
    let world = World::new().await;
    put(&world.store, SECRET, "hidden").await.expect("stored");
    let kept = value(world.plain.as_ref(), SECRET).await;
    world.plugin.change(|behaviour| behaviour.failure = Some((14, "gone fishing".to_owned())));
    let ring = world.patient_ring().await;
    let another = SealedStore::new(world.plain.clone(), ring.clone());
    assert!(why_unreadable(&value(&another, SECRET).await).is_some());
    assert!(!ring.is_lost(SECRET.as_bytes(), &kept), "it may come back");
    let unknown = Bytes::from_static(b"k8s:enc:kms:v2:other:x");
    assert!(ring.is_lost(SECRET.as_bytes(), &unknown), "nobody has its key");
    world.plugin.change(|behaviour| behaviour.failure = None);
    until("that it is read", async || value(&another, SECRET).await == "hidden").await;
}
