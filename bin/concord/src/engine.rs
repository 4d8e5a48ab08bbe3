//! The one place that names storage engines.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, ensure};
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_etcd::{ClientCertificate, Config, EtcdStore, TlsConfig};
use concord_store_translated::TranslatedStore;

use crate::cli::EtcdOptions;

/// The store a server runs on.
pub(crate) enum Engine {
    /// And the file it is in.
    Embedded(Arc<EmbeddedStore>, PathBuf),
    Etcd(Arc<EtcdStore>),
}

impl Engine {
    /// The etcd that the options name, or else the embedded store in `file`.
    pub(crate) async fn open(options: &EtcdOptions, file: &Path) -> anyhow::Result<Self> {
        if options.etcd_servers.is_empty() {
            let (path, file) = (file.to_owned(), Options::new(file));
            // Opening reads the whole file.
            let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open(&file)).await?;
            return Ok(Self::Embedded(Arc::new(opened?), path));
        }
        let store = EtcdStore::open(etcd_config(options)?).await;
        let store = store.context("the etcd flags cannot be used")?;
        Ok(Self::Etcd(Arc::new(store)))
    }

    /// The store itself.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Embedded(store, _) => store.clone(),
            Self::Etcd(store) => store.clone(),
        }
    }

    /// How it is read: with a kube-apiserver's objects in the form that they have here, where there may be any.
    pub(crate) fn legible(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        match self {
            Self::Embedded(..) => store,
            Self::Etcd(_) => Arc::new(TranslatedStore::new(store, concord_apis::as_json)),
        }
    }

    /// What it is, for people.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Embedded(..) => "embedded store",
            Self::Etcd(_) => "etcd",
        }
    }

    /// The file that everything is in, if it is one of this machine.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Embedded(_, file) => Some(file),
            Self::Etcd(_) => None,
        }
    }

    /// The etcd that everything is in, if it is one.
    pub(crate) fn etcd(&self) -> Option<Arc<EtcdStore>> {
        match self {
            Self::Embedded(..) => None,
            Self::Etcd(store) => Some(store.clone()),
        }
    }

    /// Whether other servers may use it at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Etcd(_))
    }

    /// Ends it in order.
    pub(crate) async fn close(&self) {
        match self {
            Self::Embedded(store, _) => store.close().await,
            Self::Etcd(store) => store.shutdown().await,
        }
    }
}

fn etcd_config(options: &EtcdOptions) -> anyhow::Result<Config> {
    let mut config = Config::new(options.etcd_servers.iter().cloned());
    config.prefix = prefix(&options.etcd_prefix).into();
    let secure = options.etcd_servers.iter().any(|url| url.starts_with("https://"));
    ensure!(!secure || options.etcd_cafile.is_some(), "https:// etcd servers need --etcd-cafile");
    config.tls = options.etcd_cafile.clone().map(|ca_file| TlsConfig {
        ca_file,
        client_certificate: options
            .etcd_certfile
            .clone()
            .zip(options.etcd_keyfile.clone())
            .map(|(cert_file, key_file)| ClientCertificate { cert_file, key_file }),
    });
    Ok(config)
}

/// What all keys begin with, in either engine.
pub(crate) fn key_prefix(options: &EtcdOptions) -> String {
    prefix(&options.etcd_prefix)
}

/// As kube-apiserver has it: one slash before, one after, so that `/registry` does not own `/registry2`.
fn prefix(given: &str) -> String {
    match given.trim_matches('/') {
        "" => "/".to_owned(),
        inner => format!("/{inner}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_directory() {
        for (given, expected) in [
            ("/registry", "/registry/"),
            ("registry/", "/registry/"),
            ("/a/b", "/a/b/"),
            ("/", "/"),
            ("", "/"),
        ] {
            assert_eq!(prefix(given), expected, "{given}");
        }
    }
}
