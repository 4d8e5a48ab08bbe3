use std::{
    fs,
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
    files::{self, PRIVATE, PUBLIC},
};

/// A serving certificate that would expire within this time is issued anew at the next start.
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
        fs::create_dir_all(directory).map_err(files::failed("create", directory))?;
        let files = Files::new(directory);
        let authority = files.open_or_create_authority(now)?;
        let client = Client { roots: files.trusted_roots()?, provider: aws_lc_rs::default_provider() };
        if let Some(identity) = files.stored_identity(&client, names, now + RENEW_BEFORE)? {
            return Ok(Self { ca_certificate: files.ca_certificate, identity, issued: false });
        }
        let identity = files.issue(&authority, &client, names, now)?;
        Ok(Self { ca_certificate: files.ca_certificate, identity, issued: true })
    }
}

/// The files of a PKI directory, by kubeadm's names.
struct Files {
    ca_certificate: PathBuf,
    ca_key: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new(directory: &Path) -> Self {
        Self {
            ca_certificate: directory.join("ca.crt"),
            ca_key: directory.join("ca.key"),
            certificate: directory.join("apiserver.crt"),
            key: directory.join("apiserver.key"),
        }
    }

    /// The key is written first: a key without a certificate is an authority nobody trusts yet and can be
    /// completed after a crash, a certificate without a key cannot.
    fn open_or_create_authority(&self, now: SystemTime) -> Result<Authority, Error> {
        let certificate = files::read(&self.ca_certificate)?;
        let authority = match (files::read(&self.ca_key)?, &certificate) {
            (Some(key), _) => {
                Authority::from_key(&key).map_err(|error| malformed("private key", &self.ca_key, error))?
            }
            (None, Some(_)) => {
                let (certificate, key) = (self.ca_certificate.clone(), self.ca_key.clone());
                return Err(Error::KeyMissing { certificate, key });
            }
            (None, None) => {
                let authority = Authority::generate()?;
                files::create(&self.ca_key, &authority.key(), PRIVATE)?;
                authority
            }
        };
        if certificate.is_none() {
            files::create(&self.ca_certificate, &authority.certificate(now)?, PUBLIC)?;
        }
        Ok(authority)
    }

    fn trusted_roots(&self) -> Result<RootCertStore, Error> {
        let broken = |reason: &dyn std::fmt::Display| malformed("certificate", &self.ca_certificate, reason);
        let certificate =
            CertificateDer::from_pem_file(&self.ca_certificate).map_err(|error| broken(&error))?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(|error| broken(&error))?;
        Ok(roots)
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
            Error::UnusableAuthority { path: self.ca_certificate.clone(), reason: reason.to_string() }
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

fn malformed(what: &'static str, path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Malformed { what, path: path.to_owned(), reason: reason.to_string() }
}
