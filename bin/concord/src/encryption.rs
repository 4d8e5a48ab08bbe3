//! Encryption of what is stored.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::Context as _;
use aws_lc_rs::digest::{SHA256, digest};
use clap::Args;
use concord_builtins::{Catalog, Release};
use concord_encryption::{Configuration, Encryption};
use concord_server::{HealthChecks, Metrics, Unhealthy, check_fn};
use concord_store::Store;
use concord_store_sealed::{Keyring, Places, SealedStore};
use tokio::runtime::Handle;
use zeroize::Zeroizing;

use crate::reload::Reloader;

const FLAG: &str = "--encryption-provider-config";

#[derive(Debug, Args)]
#[command(next_help_heading = "Encryption at rest")]
pub(crate) struct EncryptionOptions {
    /// The file that says how which resources are encrypted in the store: an EncryptionConfiguration, as for
    /// kube-apiserver. Without it nothing is.
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,
    /// Read the file of --encryption-provider-config again when it changes.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set,
        requires = "encryption_provider_config"
    )]
    encryption_provider_config_automatic_reload: bool,
}

/// How values are kept.
pub(crate) struct AtRest(Option<Sealed>);

struct Sealed {
    file: PathBuf,
    /// Of the file that is in force.
    hash: String,
    is_reloaded: bool,
    keyring: Arc<Keyring>,
}

impl AtRest {
    /// As the options say; keys begin with `prefix`. Key management services have been asked then.
    pub(crate) async fn open(options: &EncryptionOptions, prefix: &str) -> anyhow::Result<Self> {
        let Some(file) = options.encryption_provider_config.clone() else { return Ok(Self(None)) };
        let keyring = Arc::new(Keyring::new(Encryption::none(), places(prefix)));
        let (encryption, hash) = read(&file, &keyring)?;
        // That they cannot be asked now is no reason not to serve; what needs them waits.
        keyring.attend_to(&encryption).await;
        keyring.replace(encryption);
        let is_reloaded = options.encryption_provider_config_automatic_reload;
        Ok(Self(Some(Sealed { file, hash, is_reloaded, keyring })))
    }

    /// The store, such that what is written to it is sealed.
    pub(crate) fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        match &self.0 {
            None => store,
            Some(sealed) => Arc::new(SealedStore::new(store, sealed.keyring.clone())),
        }
    }

    /// What seals values, if anything does.
    pub(crate) fn keyring(&self) -> Option<Arc<Keyring>> {
        self.0.as_ref().map(|sealed| sealed.keyring.clone())
    }

    /// Says whether key management services are well, if there can be any.
    pub(crate) fn health(&self, checks: HealthChecks) -> HealthChecks {
        let Some(Sealed { keyring, is_reloaded, .. }) = &self.0 else { return checks };
        if !is_reloaded && !keyring.has_services() {
            return checks;
        }
        let keyring = keyring.clone();
        checks
            .with(check_fn("kms-providers", move || std::future::ready(keyring.health().map_err(Unhealthy))))
    }

    /// Has the file read again when it changes, if that is asked for; and says in the metrics which one is in force.
    pub(crate) fn reload(self, server: Option<&str>, metrics: &Arc<Metrics>, reloader: &mut Reloader) {
        let Some(Sealed { file, hash, is_reloaded, keyring }) = self.0 else { return };
        let (server, metrics) = (server.map(|id| hashed(id.as_bytes())).unwrap_or_default(), metrics.clone());
        metrics.set_encryption_config(&server, &hash);
        if !is_reloaded {
            return;
        }
        reloader.watch(FLAG, vec![file.clone()], move || {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
            let replaced = read(&file, &keyring).and_then(|(encryption, hash)| {
                // Files are looked at where it is no harm to wait.
                let replaced = Handle::current().block_on(keyring.replace_if_well(encryption));
                replaced.map_err(anyhow::Error::msg).map(|()| hash)
            });
            let status = if replaced.is_ok() { "success" } else { "failure" };
            metrics.encryption_config_reloaded(&server, status, now);
            metrics.set_encryption_config(&server, &replaced?);
            Ok(())
        });
    }
}

/// What a file says, and its hash.
fn read(file: &Path, keyring: &Keyring) -> anyhow::Result<(Encryption, String)> {
    let about = || format!("{FLAG}: {}", file.display());
    let text = Zeroizing::new(fs::read(file).with_context(about)?);
    let configuration = Configuration::read(&text).with_context(about)?;
    Ok((keyring.next(&configuration).with_context(about)?, hashed(&text)))
}

fn hashed(data: &[u8]) -> String {
    let digest = digest(&SHA256, data);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

/// Where the objects of built-in resources are, in every release that is known. Those that share their objects, such as the
/// events of two groups, are called by the first of their names.
fn places(prefix: &str) -> Places {
    let mut named: BTreeMap<String, (String, String)> = BTreeMap::new();
    let releases = Release::all().filter(|release| release.is_described());
    for resource in releases.flat_map(|release| Catalog::of(release).versions()).flat_map(|of| &of.resources)
    {
        let Some(storage) = resource.storage else { continue };
        let name = (resource.group.to_owned(), resource.plural.to_owned());
        let known = named.entry(storage.key.to_owned()).or_insert_with(|| name.clone());
        if name < *known {
            *known = name;
        }
    }
    Places::new(prefix, named)
}
