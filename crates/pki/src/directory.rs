use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use crate::{
    Authority, Error,
    files::{self, Lock, PRIVATE, PUBLIC},
};

/// A PKI directory that no other process changes as long as this value lives. Its files have kubeadm's names.
pub(crate) struct Directory {
    path: PathBuf,
    pub(crate) ca_certificate: PathBuf,
    ca_key: PathBuf,
    _lock: Lock,
}

impl Directory {
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(files::failed("create", path))?;
        let _lock = Lock::acquire(path)?;
        Ok(Self {
            path: path.to_owned(),
            ca_certificate: path.join("ca.crt"),
            ca_key: path.join("ca.key"),
            _lock,
        })
    }

    /// The same directory with another one of its authorities.
    pub(crate) fn with_authority(self, name: &str) -> Self {
        let (ca_certificate, ca_key) =
            (self.path.join(format!("{name}.crt")), self.path.join(format!("{name}.key")));
        Self { ca_certificate, ca_key, ..self }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The key is written first: a key without a certificate is an authority nobody trusts yet and can be
    /// completed after a crash, a certificate without a key cannot.
    pub(crate) fn open_or_create_authority(&self, now: SystemTime) -> Result<Authority, Error> {
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

    pub(crate) fn trusted_roots(&self) -> Result<RootCertStore, Error> {
        let broken = |reason: &dyn std::fmt::Display| malformed("certificate", &self.ca_certificate, reason);
        let certificate =
            CertificateDer::from_pem_file(&self.ca_certificate).map_err(|error| broken(&error))?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(|error| broken(&error))?;
        Ok(roots)
    }
}

pub(crate) fn malformed(what: &'static str, path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Malformed { what, path: path.to_owned(), reason: reason.to_string() }
}
