//! Keys in PEM files.

use aws_lc_rs::{rsa, signature::EcdsaKeyPair};
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _};

use super::{Algorithm, PublicKey, SigningKey};

/// One block of a PEM file.
pub(super) struct Section(SectionKind, Vec<u8>);

/// The blocks that can be read. Others are passed over, as upstream does: files that OpenSSL writes begin with
/// `EC PARAMETERS`.
pub(super) fn sections(pem: &[u8]) -> impl Iterator<Item = Section> {
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem);
    sections.filter_map(Result::ok).map(|(kind, der)| Section(kind, der))
}

impl Section {
    pub(super) fn signing_key(&self) -> Option<SigningKey> {
        let Self(kind, der) = self;
        match kind {
            SectionKind::RsaPrivateKey => SigningKey::rsa(rsa::KeyPair::from_der(der).ok()?),
            SectionKind::EcPrivateKey => {
                ecdsa(|algorithm| EcdsaKeyPair::from_private_key_der(algorithm, der).ok())
            }
            SectionKind::PrivateKey => match rsa::KeyPair::from_pkcs8(der) {
                Ok(key) => SigningKey::rsa(key),
                Err(_) => ecdsa(|algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der).ok()),
            },
            _ => None,
        }
    }

    pub(super) fn public_key(&self) -> Option<PublicKey> {
        let Self(kind, der) = self;
        match kind {
            SectionKind::PublicKey => PublicKey::from_der(der),
            SectionKind::Certificate => {
                let (_, certificate) = X509Certificate::from_der(der).ok()?;
                PublicKey::from_der(certificate.tbs_certificate.subject_pki.raw)
            }
            _ => self.signing_key().map(|key| key.public),
        }
    }
}

/// The key of whichever curve it is on.
fn ecdsa(
    read: impl Fn(&'static aws_lc_rs::signature::EcdsaSigningAlgorithm) -> Option<EcdsaKeyPair>,
) -> Option<SigningKey> {
    let key = Algorithm::ALL.into_iter().filter_map(Algorithm::signing).find_map(read)?;
    SigningKey::ecdsa(key)
}
