//! A registry with a migrator beside it, on a store whose values are encrypted.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_apis::{RuntimeConfig, Settings, api_set};
use concord_encryption::{Configuration, Encryption};
use concord_migrator::{Config, Migrator, PROGRESS_ANNOTATION};
use concord_registry::{Registry, Resources};
use concord_replica::Replica;
use concord_server::Metrics;
use concord_store::{KeyRange, Revision, Scan, Store, Txn};
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_sealed::{Keyring, Places, SealedStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{faulty::Faulty, manners::Manners};

/// Where objects are, and the migrations of them.
pub(crate) const MAPS: &str = "/registry/configmaps/default/";
pub(crate) const MIGRATIONS: &str = "/registry/storageversionmigrations/";

/// What every value is that has the right form after [`World::encrypt`].
pub(crate) const SEALED: &[u8] = b"k8s:enc:aesgcm:v1:key1:";

/// What a test waits for at most. Generous: it is only reached when something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const KEY: &str = "{aesgcm: {keys: [{name: key1, secret: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=}]}}";

/// Values are kept as they are, but encrypted ones can be read.
pub(crate) const PLAIN_FIRST: &str = "{identity: {}}, <key>";
/// The other way round.
pub(crate) const KEY_FIRST: &str = "<key>, {identity: {}}";

/// What is encrypted, and with what.
pub(crate) fn encryption(providers: &str) -> Encryption {
    let providers = providers.replace("<key>", KEY);
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - resources: [configmaps]\n  providers: [{providers}]\n"
    );
    Encryption::new(&Configuration::read(text.as_bytes()).expect("in order")).expect("usable")
}

pub(crate) struct World {
    pub(crate) faulty: Arc<Faulty>,
    pub(crate) manners: Arc<Manners>,
    pub(crate) keyring: Arc<Keyring>,
    /// What others write through, whatever is wrong with this server.
    store: SealedStore,
    inner: Arc<EmbeddedStore>,
    registry: Arc<Registry>,
    resources: Arc<dyn Resources>,
    _directory: TempDir,
}

/// A migrator that runs until it is stopped.
pub(crate) struct Running {
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.task.await.expect("it ends well");
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|error| error.is_cancelled()), "it did not panic before");
    }
}

/// The reason of a condition and its message, if it is true.
pub(crate) fn holds(migration: &Value, kind: &str) -> Option<(String, String)> {
    let conditions = migration["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|known| known["type"] == kind && known["status"] == "True")?;
    let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    Some((text("reason"), text("message")))
}

/// Why it does not run.
pub(crate) fn waits(migration: &Value) -> String {
    let conditions = migration["status"]["conditions"].as_array().into_iter().flatten();
    let mut running = conditions.filter(|known| known["type"] == "Running" && known["status"] == "False");
    running.next().and_then(|known| known["reason"].as_str()).unwrap_or_default().to_owned()
}

pub(crate) fn progress(migration: &Value) -> Value {
    let text = migration["metadata"]["annotations"][PROGRESS_ANNOTATION].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

impl World {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let inner = EmbeddedStore::open(&Options::new(directory.path().join("db"))).expect("a store");
        let inner = Arc::new(inner);
        let named = [("configmaps".to_owned(), (String::new(), "configmaps".to_owned()))];
        let keyring = Keyring::new(encryption(PLAIN_FIRST), Places::new("/registry/", named));
        let (keyring, faulty) = (Arc::new(keyring), Arc::new(Faulty::new(inner.clone())));
        let sealed: Arc<dyn Store> = Arc::new(SealedStore::new(faulty.clone(), keyring.clone()));
        let replica =
            Arc::new(Replica::start(sealed.clone(), concord_replica::Config::default(), Vec::new()));
        replica.consistent(PATIENCE).await.expect("loads");
        let manners = Arc::new(Manners::default());
        let registry = Arc::new(Registry::new(sealed, replica, vec![manners.clone()]));
        let on = RuntimeConfig::parse(&["storagemigration.k8s.io/v1beta1=true"]).expect("good");
        let resources = Arc::new(api_set(&Settings { runtime_config: on, ..Settings::default() }));
        let store = SealedStore::new(inner.clone(), keyring.clone());
        Self { faulty, manners, keyring, store, inner, registry, resources, _directory: directory }
    }

    /// So many ConfigMaps that are kept as they are, and a server that encrypts from now on.
    pub(crate) async fn with_maps(count: usize) -> Self {
        let world = Self::new().await;
        let names: Vec<String> = (0..count).map(|number| format!("map-{number:05}")).collect();
        world.create(names.iter().map(String::as_str)).await;
        world.encrypt(KEY_FIRST);
        world
    }

    pub(crate) fn encrypt(&self, providers: &str) {
        self.keyring.replace(encryption(providers));
    }

    /// The same, with a key management service among the providers, which is asked for everything anew.
    pub(crate) async fn encrypt_with_service(&self, providers: &str) {
        self.keyring.replace_if_well(encryption(providers)).await.expect("it is well");
    }

    /// Makes ConfigMaps, in the form of today.
    pub(crate) async fn create(&self, names: impl Iterator<Item = &str>) {
        let names: Vec<&str> = names.collect();
        for names in names.chunks(100) {
            let put = |txn: Txn, name: &&str| txn.put(format!("{MAPS}{name}"), map(name, &json!({}), "v"));
            self.store.transact(names.iter().fold(Txn::new(), put)).await.expect("stored");
        }
    }

    /// Stores something under a key, as somebody else might.
    pub(crate) async fn put(&self, key: &str, value: impl Into<Bytes>) {
        self.store.transact(Txn::new().put(key.to_owned(), value)).await.expect("stored");
    }

    /// The same without encryption.
    pub(crate) async fn put_plain(&self, key: &str, value: String) {
        self.inner.transact(Txn::new().put(key.to_owned(), value)).await.expect("stored");
    }

    pub(crate) async fn delete(&self, key: &str) {
        self.store.transact(Txn::new().delete(key.to_owned())).await.expect("deleted");
    }

    /// Asks for a migration of ConfigMaps.
    pub(crate) async fn ask(&self, name: &str, annotations: &[(&str, &str)]) {
        self.ask_for(name, "configmaps", "2026-01-01T00:00:00Z", annotations).await;
    }

    pub(crate) async fn ask_for(
        &self,
        name: &str,
        plural: &str,
        created: &str,
        annotations: &[(&str, &str)],
    ) {
        self.ask_about(name, ("", plural), created, annotations).await;
    }

    /// The same for a resource of any group.
    pub(crate) async fn ask_about(
        &self,
        name: &str,
        (group, plural): (&str, &str),
        created: &str,
        annotations: &[(&str, &str)],
    ) {
        let annotation = |(name, value): &(&str, &str)| {
            (format!("storagemigration.concord.dev/{name}"), Value::from(*value))
        };
        let annotations: Value = annotations.iter().map(annotation).collect();
        let metadata = json!({"name": name, "uid": format!("uid-of-{name}"), "creationTimestamp": created,
            "annotations": annotations});
        let spec = json!({"resource": {"group": group, "resource": plural}});
        let object = format!(
            r#"{{"kind":"StorageVersionMigration","apiVersion":"storagemigration.k8s.io/v1beta1","metadata":{metadata},"spec":{spec},"status":{{}}}}"#
        );
        self.put(&format!("{MIGRATIONS}{name}"), object).await;
    }

    /// A migrator that nobody has to ask if there is a delay.
    pub(crate) fn start_with(&self, automatic_after: Option<Duration>) -> Running {
        let config = Config {
            registry: self.registry.clone(),
            resources: self.resources.clone(),
            fleet: None,
            keyring: Some(self.keyring.clone()),
            metrics: Arc::new(Metrics::new()),
            automatic_after,
        };
        let migrator = Migrator::new(config).expect("migrations are served");
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        Running { cancel, task: tokio::spawn(async move { migrator.run(stop).await }) }
    }

    pub(crate) fn start(&self) -> Running {
        self.start_with(None)
    }

    /// What is stored under a key, and since when.
    pub(crate) async fn stored(&self, key: &str) -> Option<(Value, Revision)> {
        let page = self.store.scan(Scan::key(key.to_owned())).await.expect("a page");
        let entry = page.entries.first()?;
        Some((serde_json::from_slice(&entry.value).expect("JSON"), entry.mod_revision))
    }

    /// Changes a migration, whoever else does.
    pub(crate) async fn change(&self, name: &str, change: impl Fn(&mut Value)) {
        let key = format!("{MIGRATIONS}{name}");
        loop {
            let (mut object, revision) = self.stored(&key).await.expect("it is there");
            change(&mut object);
            let txn = Txn::new()
                .compare(concord_store::Compare::mod_revision(key.clone(), revision))
                .put(key.clone(), object.to_string());
            if self.store.transact(txn).await.is_ok() {
                return;
            }
        }
    }

    pub(crate) async fn annotate(&self, name: &str, annotation: &str, value: &Value) {
        let annotation = format!("storagemigration.concord.dev/{annotation}");
        self.change(name, |object| object["metadata"]["annotations"][&annotation] = value.clone()).await;
    }

    /// All migrations there are.
    pub(crate) async fn migrations(&self) -> Vec<Value> {
        let all = self.store.scan(Scan::new(KeyRange::prefix(MIGRATIONS), 1000)).await.expect("a page");
        all.entries.iter().map(|entry| serde_json::from_slice(&entry.value).expect("JSON")).collect()
    }

    /// Looks at a migration until it is as it is awaited.
    pub(crate) async fn until(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let (migration, _) = self.stored(&format!("{MIGRATIONS}{name}")).await.expect("it is there");
            if is_so(&migration) {
                return migration;
            }
            assert!(begin.elapsed() < PATIENCE, "not in time: {what} of {name}: {migration}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn ends(&self, name: &str) -> Value {
        let has_ended =
            |migration: &Value| ["Succeeded", "Failed"].iter().any(|kind| holds(migration, kind).is_some());
        self.until(name, "the end", has_ended).await
    }

    pub(crate) async fn succeeds(&self, name: &str) -> Value {
        let ended = self.ends(name).await;
        assert!(holds(&ended, "Succeeded").is_some(), "{}", ended["status"]);
        ended
    }

    /// The ConfigMaps as they are kept, and since when.
    pub(crate) async fn kept(&self) -> BTreeMap<String, (Bytes, Revision)> {
        let mut scan = Scan::new(KeyRange::prefix(MAPS), 1000);
        let mut all = BTreeMap::new();
        loop {
            let page = self.inner.scan(scan.clone()).await.expect("a page");
            for entry in page.entries {
                let name = String::from_utf8_lossy(&entry.key[MAPS.len()..]).into_owned();
                all.insert(name, (entry.value, entry.mod_revision));
            }
            let Some(resume) = page.resume else { return all };
            scan = Scan { range: scan.range.starting_at(resume), ..scan };
        }
    }

    /// The ConfigMaps that do not have the right form.
    pub(crate) async fn left(&self) -> Vec<String> {
        let kept = self.kept().await.into_iter();
        kept.filter(|(_, (value, _))| !value.starts_with(SEALED)).map(|(name, _)| name).collect()
    }
}

/// A ConfigMap as it is stored, byte by byte: nothing but its form changes when it is written again.
pub(crate) fn map(name: &str, labels: &Value, word: &str) -> String {
    let mut metadata = json!({"name": name, "namespace": "default", "uid": format!("uid-of-{name}"),
        "creationTimestamp": "2026-01-01T00:00:00Z"});
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        metadata["labels"] = labels.clone();
    }
    format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{metadata},"data":{{"word":"{word}"}}}}"#)
}
