use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    CertifiedPair, Error,
    client::{self, Client},
    directory::Directory,
};

/// The administrator, by kubeadm's name.
const USER: &str = "kubernetes-admin";
/// The group that may do everything.
const GROUP: &str = "system:masters";

/// The administrator's client certificate, and the authority that servers must accept it from: the same that
/// signs the serving certificate.
pub struct AdminPki {
    /// The file of the certificate.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
    /// What is in them, for a kubeconfig.
    pub pair: CertifiedPair,
    /// The authority's certificate, PEM: what servers accept client certificates from, and what clients trust
    /// servers by.
    pub ca: String,
    /// Whether this call issued the certificate.
    pub issued: bool,
}

impl AdminPki {
    /// Opens the administrator's certificate in `directory` and makes what is missing. It is also issued anew
    /// if a server that accepts the authority's certificates would refuse it, now or within
    /// [`RENEW_BEFORE`](crate::RENEW_BEFORE).
    ///
    /// # Errors
    ///
    /// Every [`Error`] names the file it is about. An authority that cannot be used is reported, never
    /// replaced.
    pub fn open_or_create(directory: &Path, now: SystemTime) -> Result<Self, Error> {
        let directory = Directory::open_or_create(directory)?;
        let client = client::open_or_issue(&directory, "admin", USER, Some(GROUP), now)?;
        let Client { certificate, key, pair, ca, issued } = client;
        Ok(Self { certificate, key, pair, ca, issued })
    }
}
