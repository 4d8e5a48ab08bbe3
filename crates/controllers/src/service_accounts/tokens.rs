use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use concord_meta::{
    Reason, Status,
    options::{DeleteOptions, Preconditions},
};
use concord_registry::{
    Item, Object, ObjectName, Registry, Resource, Resources, Storage, metadata, metadata_mut,
};
use concord_replica::{Entry, Event, EventKind, Scope, Snapshot};
use concord_schema::{decode_base64, encode_base64};
use concord_store::KeyRange;
use memchr::memmem::Finder;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Common, MANAGER, ServiceAccountsConfig};
use crate::{
    Error,
    own::{consistent, context, required},
    queue::{self, Sync},
};

/// The type of Secrets that hold a token.
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Fills the Secrets that are to hold a token of a service account, and removes them with the account.
pub(crate) struct Tokens {
    common: Common,
    secrets: Arc<Resource>,
    storage: Arc<Storage>,
}

/// What is followed, in this order.
const SECRETS: usize = 0;

/// What there is to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// A Secret that holds a token, or should.
    Secret { namespace: String, name: String },
    /// A Secret that is gone: its account may still name it.
    Gone { namespace: String, name: String, account: String, account_uid: String },
    /// An account that is gone: its Secrets may still be there.
    Account { namespace: String, name: String },
}

impl Tokens {
    pub(crate) fn new(
        registry: Arc<Registry>,
        resources: &dyn Resources,
        config: ServiceAccountsConfig,
    ) -> Result<Self, Error> {
        let secrets = required(resources, "", "v1", "secrets")?;
        let storage = secrets.storage().cloned().expect("a required resource is stored");
        Ok(Self { common: Common::new(registry, resources, config)?, secrets, storage })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let accounts = self.common.accounts.storage().map(|storage| storage.prefix.clone());
        let prefixes = [Some(self.storage.prefix.clone()), accounts];
        let scopes: Vec<Scope> = prefixes.into_iter().flatten().map(Scope::prefix).collect();
        cancel.run_until_cancelled(queue::run(&self, &self.common.registry, &scopes)).await;
    }

    /// The Secret of an entry, if it holds a token. Almost none does, and that is seen without parsing it.
    fn token_secret(&self, entry: &Entry) -> Option<Object> {
        static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TYPE));
        MARK.find(&entry.value)?;
        let secret = self.secrets.object(&Item::from(entry)).ok()?;
        (secret.get("type").and_then(Value::as_str) == Some(TYPE)).then_some(secret)
    }

    fn account(&self, snapshot: &Snapshot, namespace: &str, name: &str) -> Result<Option<Object>, Status> {
        let accounts = &self.common.accounts;
        let storage = accounts.storage();
        let entry = storage.and_then(|storage| snapshot.get(&storage.key(ObjectName { namespace, name })));
        entry.map(|entry| accounts.object(&Item::from(entry))).transpose()
    }

    async fn sync_secret(&self, namespace: &str, name: &str) -> Result<(), Status> {
        let registry = &self.common.registry;
        let at = ObjectName { namespace, name };
        let snapshot = registry.replica().newest().map_err(Status::internal_error)?;
        let Some(secret) = snapshot.get(&self.storage.key(at)).and_then(|entry| self.token_secret(entry))
        else {
            return Ok(());
        };
        let (account, uid) = account_of(&secret);
        if account.is_empty() {
            return Ok(());
        }
        let is_same = |found: &Object| uid.is_empty() || metadata(found).uid() == uid;
        if let Some(found) = self.account(&snapshot, namespace, account)?.filter(is_same) {
            return self.fill(at, &found, secret).await;
        }
        // Nothing is deleted for a state that may be old.
        let snapshot = consistent(registry).await?;
        match self.account(&snapshot, namespace, account)?.filter(is_same) {
            Some(found) => self.fill(at, &found, secret).await,
            None => self.remove(at, &secret).await,
        }
    }

    /// Puts into a Secret what belongs there.
    async fn fill(&self, at: ObjectName<'_>, account: &Object, mut secret: Object) -> Result<(), Status> {
        let Missing { ca, namespace, token } = self.missing(&secret);
        if !(ca || namespace || token) {
            return Ok(());
        }
        let key = format!("{}/{}", at.namespace, at.name);
        if !(namespace || token) && self.common.too_soon(key) {
            return Err(Status::too_many_requests("somebody else wants it different", 1));
        }
        let (name, uid) = (metadata(account).name(), metadata(account).uid());
        let mut set = |key: &str, value: &[u8]| {
            let data = secret.entry("data").or_insert_with(|| json!({}));
            if !data.is_object() {
                *data = json!({});
            }
            data[key] = encode_base64(value).into();
        };
        if ca {
            set("ca.crt", self.common.config.root_ca.as_bytes());
        }
        if namespace {
            set("namespace", at.namespace.as_bytes());
        }
        if token {
            let signed = self.common.config.generator.secret_token(at.namespace, name, uid, at.name);
            set("token", signed.map_err(Status::internal_error)?.as_bytes());
        }
        let annotations = metadata_mut(&mut secret).entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(ACCOUNT_NAME.to_owned(), name.into());
            annotations.insert(ACCOUNT_UID.to_owned(), uid.into());
        }
        self.common.replace(&self.secrets, at, secret).await
    }

    fn missing(&self, secret: &Object) -> Missing {
        let data =
            |name: &str| secret.get("data").and_then(|data| data.get(name)?.as_str()).unwrap_or_default();
        let root_ca = self.common.config.root_ca.as_bytes();
        let ca = decode_base64(data("ca.crt").as_bytes()).ok().is_none_or(|ca| ca != root_ca);
        Missing { ca, namespace: data("namespace").is_empty(), token: data("token").is_empty() }
    }

    async fn remove(&self, at: ObjectName<'_>, secret: &Object) -> Result<(), Status> {
        let uid = Some(metadata(secret).uid().to_owned());
        let preconditions = Preconditions { uid, ..Preconditions::default() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let context = context(MANAGER);
        let deleted = Box::pin(self.common.registry.delete(&context, &self.secrets, at, &options)).await;
        match deleted {
            Err(status) if ![Reason::NOT_FOUND, Reason::CONFLICT].contains(&status.reason) => Err(status),
            _ => Ok(()),
        }
    }

    /// Removes the Secrets of an account that is gone.
    async fn sync_account(&self, namespace: &str, name: &str) -> Result<(), Status> {
        let snapshot = self.common.registry.replica().newest().map_err(Status::internal_error)?;
        let range = KeyRange::prefix(self.storage.key_prefix(Some(namespace)));
        let secrets = snapshot.scan(&range).filter_map(|entry| self.token_secret(entry));
        let named: Vec<String> = secrets
            .filter(|secret| account_of(secret).0 == name)
            .map(|secret| metadata(&secret).name().to_owned())
            .collect();
        for secret in named {
            self.sync_secret(namespace, &secret).await?;
        }
        Ok(())
    }

    /// An account does not go on naming a Secret that is gone.
    async fn forget(
        &self,
        namespace: &str,
        secret: &str,
        account: &str,
        account_uid: &str,
    ) -> Result<(), Status> {
        let snapshot = self.common.registry.replica().newest().map_err(Status::internal_error)?;
        if snapshot.get(&self.storage.key(ObjectName { namespace, name: secret })).is_some() {
            return Ok(());
        }
        let Some(mut found) = self.account(&snapshot, namespace, account)? else { return Ok(()) };
        if !account_uid.is_empty() && metadata(&found).uid() != account_uid {
            return Ok(());
        }
        let Some(references) = found.get_mut("secrets").and_then(Value::as_array_mut) else { return Ok(()) };
        let before = references.len();
        references.retain(|reference| reference["name"] != secret);
        if references.len() == before {
            return Ok(());
        }
        if references.is_empty() {
            found.remove("secrets");
        }
        let at = ObjectName { namespace, name: account };
        self.common.replace(&self.common.accounts, at, found).await
    }
}

/// What a Secret lacks.
struct Missing {
    ca: bool,
    namespace: bool,
    token: bool,
}

/// The name and the uid of the account that a Secret is for.
fn account_of(secret: &Object) -> (&str, &str) {
    let annotations = metadata(secret).get("annotations");
    let text = |name: &str| annotations.and_then(|all| all.get(name)?.as_str()).unwrap_or_default();
    (text(ACCOUNT_NAME), text(ACCOUNT_UID))
}

impl Sync for Tokens {
    type Item = Work;
    const QUEUE: &str = "serviceaccount_tokens_service";

    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<Work>) {
        let entries = snapshot.scan(&KeyRange::prefix(self.storage.prefix.clone()));
        let secrets = entries.filter_map(|entry| self.token_secret(entry));
        items.extend(secrets.map(|secret| {
            let metadata = metadata(&secret);
            Work::Secret { namespace: metadata.namespace().to_owned(), name: metadata.name().to_owned() }
        }));
    }

    fn changed(&self, scope: usize, event: &Event, items: &mut BTreeSet<Work>) {
        let storage = if scope == SECRETS { Some(&self.storage) } else { self.common.accounts.storage() };
        let Some(at) = storage.and_then(|storage| storage.object_name(event.key())) else { return };
        let (namespace, name) = (at.namespace.to_owned(), at.name.to_owned());
        match &event.kind {
            EventKind::Deleted { previous } if scope == SECRETS => {
                let Some(secret) = self.token_secret(previous) else { return };
                let (account, uid) = account_of(&secret);
                let (account, account_uid) = (account.to_owned(), uid.to_owned());
                items.insert(Work::Gone { namespace, name, account, account_uid });
            }
            EventKind::Created(entry) | EventKind::Modified { current: entry, .. }
                if scope == SECRETS && self.token_secret(entry).is_some() =>
            {
                items.insert(Work::Secret { namespace, name });
            }
            EventKind::Deleted { .. } => drop(items.insert(Work::Account { namespace, name })),
            _ => {}
        }
    }

    async fn sync(&self, work: &Work) -> Result<(), Status> {
        match work {
            Work::Secret { namespace, name } => self.sync_secret(namespace, name).await,
            Work::Gone { namespace, name, account, account_uid } => {
                self.forget(namespace, name, account, account_uid).await
            }
            Work::Account { namespace, name } => self.sync_account(namespace, name).await,
        }
    }
}
