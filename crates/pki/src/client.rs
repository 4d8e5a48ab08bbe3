//! Certificates that this server shows to others.

use std::{
    path::PathBuf,
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

/// A client certificate in a directory, and the authority that signed it.
pub(crate) struct Client {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) pair: CertifiedPair,
    /// The authority's certificate, PEM.
    pub(crate) ca: String,
    /// Whether this call issued the certificate.
    pub(crate) issued: bool,
}

/// Opens the certificate of this name and makes what is missing. It is also issued anew if a server that accepts the
/// authority's certificates would refuse it, now or within [`RENEW_BEFORE`].
pub(crate) fn open_or_issue(
    directory: &Directory,
    name: &str,
    user: &str,
    group: Option<&str>,
    now: SystemTime,
) -> Result<Client, Error> {
    let authority = directory.open_or_create_authority(now)?;
    let roots = Arc::new(directory.trusted_roots()?);
    let ca = files::read(&directory.ca_certificate)?.unwrap_or_default();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, aws_lc_rs::default_provider().into());
    let unusable = |reason: String| Error::UnusableAuthority {
        what: "client",
        path: directory.ca_certificate.clone(),
        reason,
    };
    let verifier = verifier.build().map_err(|error| unusable(error.to_string()))?;
    let (certificate, key) = (directory.file(&format!("{name}.crt")), directory.file(&format!("{name}.key")));
    if let (Some(stored), Some(stored_key)) = (files::read(&certificate)?, files::read(&key)?) {
        let pair = CertifiedPair { certificate: stored, key: stored_key };
        if accept(&*verifier, &pair, now + RENEW_BEFORE).is_ok() {
            return Ok(Client { certificate, key, pair, ca, issued: false });
        }
    }
    let pair = authority.issue_client(user, group, now)?;
    accept(&*verifier, &pair, now).map_err(|error| unusable(error.to_string()))?;
    files::replace(&key, &pair.key, PRIVATE)?;
    files::replace(&certificate, &pair.certificate, PUBLIC)?;
    Ok(Client { certificate, key, pair, ca, issued: true })
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
