use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    CertifiedPair, Error,
    client::{self, Client},
    directory::Directory,
};

/// By what servers behind this one know that it is this one that tells them who their clients are: a client certificate
/// for [`FrontProxyPki::NAME`], of an authority that signs nothing else.
pub struct FrontProxyPki {
    /// What this server shows to those behind it.
    pub pair: CertifiedPair,
    /// The file of the certificate.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
    /// The authority's certificate, PEM: what those behind it must accept it from.
    pub ca: String,
    /// Whether this call issued the certificate.
    pub issued: bool,
}

impl FrontProxyPki {
    /// Whom the certificate names; kubeadm's name.
    pub const NAME: &'static str = "front-proxy-client";

    /// Opens `front-proxy-client.crt` in `directory`, signed by `front-proxy-ca.crt`, and makes what is missing. It is
    /// issued anew as the administrator's is.
    ///
    /// # Errors
    ///
    /// Every [`Error`] names the file it is about. An authority that cannot be used is reported, never replaced.
    pub fn open_or_create(directory: &Path, now: SystemTime) -> Result<Self, Error> {
        let directory = Directory::open_or_create(directory)?.with_authority("front-proxy-ca");
        let Client { certificate, key, pair, ca, issued } =
            client::open_or_issue(&directory, Self::NAME, Self::NAME, None, now)?;
        Ok(Self { pair, certificate, key, ca, issued })
    }
}
