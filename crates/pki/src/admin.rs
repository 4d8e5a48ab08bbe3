use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject as _},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
};

use crate::{
    CertifiedPair, Error, RENEW_BEFORE,
    directory::Directory,
    files::{self, PRIVATE, PUBLIC},
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
    /// if a server that accepts the authority's certificates would refuse it, now or within [`RENEW_BEFORE`].
    ///
    /// # Errors
    ///
    /// Every [`Error`] names the file it is about. An authority that cannot be used is reported, never
    /// replaced.
    pub fn open_or_create(directory: &Path, now: SystemTime) -> Result<Self, Error> {
        let directory = Directory::open_or_create(directory)?;
        let authority = directory.open_or_create_authority(now)?;
        let roots = Arc::new(directory.trusted_roots()?);
        let ca = files::read(&directory.ca_certificate)?.unwrap_or_default();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots, aws_lc_rs::default_provider().into());
        let unusable = |reason: String| Error::UnusableAuthority {
            what: "client",
            path: directory.ca_certificate.clone(),
            reason,
        };
        let verifier = verifier.build().map_err(|error| unusable(error.to_string()))?;
        let (certificate, key) = (directory.file("admin.crt"), directory.file("admin.key"));
        if let (Some(stored), Some(stored_key)) = (files::read(&certificate)?, files::read(&key)?) {
            let pair = CertifiedPair { certificate: stored, key: stored_key };
            if accept(&*verifier, &pair, now + RENEW_BEFORE).is_ok() {
                return Ok(Self { certificate, key, pair, ca, issued: false });
            }
        }
        let pair = authority.issue_client(USER, GROUP, now)?;
        accept(&*verifier, &pair, now).map_err(|error| unusable(error.to_string()))?;
        files::replace(&key, &pair.key, PRIVATE)?;
        files::replace(&certificate, &pair.certificate, PUBLIC)?;
        Ok(Self { certificate, key, pair, ca, issued: true })
    }
}

/// Judges the certificate with the code servers run.
fn accept(
    verifier: &dyn ClientCertVerifier,
    pair: &CertifiedPair,
    at: SystemTime,
) -> Result<(), rustls::Error> {
    let unreadable = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).map_err(unreadable)?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(unreadable)?;
    let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap_or_default());
    verifier.verify_client_cert(&certificate, &[], at)?;
    // The key must be this certificate's.
    CertifiedKey::from_der(vec![certificate], key, &aws_lc_rs::default_provider()).map(drop)
}
