use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustls::{
    RootCertStore,
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject as _},
    server::ParsedCertificate,
    sign::CertifiedKey,
};

use crate::{
    Authority, Error, ServingNames,
    authority::days,
    directory::Directory,
    files::{self, PRIVATE, PUBLIC},
};

/// A certificate that would expire within this time is issued anew at the next start.
pub const RENEW_BEFORE: Duration = days(90);

/// A certificate a server can serve with, and where the files are that clients and people need.
#[derive(Debug)]
pub struct ServingPki {
    /// The authority's certificate: what clients must trust.
    pub ca_certificate: PathBuf,
    /// The serving certificate and its key, ready for use.
    pub identity: Arc<CertifiedKey>,
    /// Whether this call issued the serving certificate.
    pub issued: bool,
}

impl ServingPki {
    /// Opens the certificates in `directory` and makes what is missing. The serving certificate is also
    /// issued anew if a client that trusts the authority would refuse it for one of `names`, now or within
    /// [`RENEW_BEFORE`].
    ///
    /// # Errors
    ///
    /// Every [`Error`] names the file it is about. An authority that cannot be used is reported, never
    /// replaced.
    pub fn open_or_create(directory: &Path, names: &ServingNames, now: SystemTime) -> Result<Self, Error> {
        let directory = Directory::open_or_create(directory)?;
        let files = Files::new(&directory);
        let authority = directory.open_or_create_authority(now)?;
        let client = Client { roots: directory.trusted_roots()?, provider: aws_lc_rs::default_provider() };
        if let Some(identity) = files.stored_identity(&client, names, now + RENEW_BEFORE)? {
            return Ok(Self { ca_certificate: directory.ca_certificate, identity, issued: false });
        }
        let identity = files.issue(&authority, &client, names, now)?;
        Ok(Self { ca_certificate: directory.ca_certificate, identity, issued: true })
    }
}

/// Reads a certificate (with the chain above it, if any) and its key that an operator made: what upstream's
/// flags `--tls-cert-file` and `--tls-private-key-file` name.
///
/// # Errors
///
/// [`Error::UnusablePair`].
pub fn load_identity(certificate: &Path, key: &Path) -> Result<Arc<CertifiedKey>, Error> {
    let unusable = |reason: String| {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Error::UnusablePair { certificate, key, reason }
    };
    let pem = |error: rustls::pki_types::pem::Error| unusable(error.to_string());
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(pem)?;
    if chain.is_empty() {
        return Err(unusable("there is no certificate in the file".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(pem)?;
    let identity = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
    identity.map(Arc::new).map_err(|error| unusable(error.to_string()))
}

/// The serving certificate's files.
struct Files {
    ca_certificate: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new(directory: &Directory) -> Self {
        Self {
            ca_certificate: directory.ca_certificate.clone(),
            certificate: directory.file("apiserver.crt"),
            key: directory.file("apiserver.key"),
        }
    }

    /// What is stored, if a client would still accept it at `until`. Anything wrong with it, be it missing,
    /// torn by a crash between the two files or damaged, has the same cure: issue it again.
    fn stored_identity(
        &self,
        client: &Client,
        names: &ServingNames,
        until: SystemTime,
    ) -> Result<Option<Arc<CertifiedKey>>, Error> {
        let (certificate, key) = (files::read(&self.certificate)?, files::read(&self.key)?);
        let (Some(certificate), Some(key)) = (certificate, key) else { return Ok(None) };
        Ok(client.accept(&certificate, &key, names, until).ok())
    }

    fn issue(
        &self,
        authority: &Authority,
        client: &Client,
        names: &ServingNames,
        now: SystemTime,
    ) -> Result<Arc<CertifiedKey>, Error> {
        let pair = authority.issue_serving(names, now)?;
        let identity = client.accept(&pair.certificate, &pair.key, names, now).map_err(|reason| {
            let (path, reason) = (self.ca_certificate.clone(), reason.to_string());
            Error::UnusableAuthority { what: "serving", path, reason }
        })?;
        files::replace(&self.key, &pair.key, PRIVATE)?;
        files::replace(&self.certificate, &pair.certificate, PUBLIC)?;
        Ok(identity)
    }
}

/// Judges certificates with the code clients run, so that "would be accepted" is not our own opinion.
struct Client {
    roots: RootCertStore,
    provider: CryptoProvider,
}

impl Client {
    fn accept(
        &self,
        certificate: &str,
        key: &str,
        names: &ServingNames,
        at: SystemTime,
    ) -> Result<Arc<CertifiedKey>, rustls::Error> {
        let unreadable = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(unreadable)?;
        let parsed = ParsedCertificate::try_from(&certificate)?;
        let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap_or_default());
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, &[], at, algorithms)?;
        names.server_names().try_for_each(|name| verify_server_name(&parsed, &name))?;
        Ok(Arc::new(CertifiedKey::from_der(vec![certificate], key, &self.provider)?))
    }
}
