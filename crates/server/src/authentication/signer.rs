//! An authority for tests.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName as Name, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use rustls::pki_types::CertificateDer;

use super::ClientAuthorities;

/// An authority and what it signs.
pub(super) struct Signer {
    pub(super) issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
    pub(super) der: CertificateDer<'static>,
}

pub(super) fn name(parts: &[(DnType, &str)]) -> Name {
    let mut name = Name::new();
    parts.iter().for_each(|(kind, value)| name.push(kind.clone(), *value));
    name
}

impl Signer {
    pub(super) fn new(common_name: &str, above: Option<&Self>) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&[(DnType::CommonName, common_name)]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = match above {
            Some(above) => params.signed_by(&key, &above.issuer),
            None => params.self_signed(&key),
        };
        let certificate = certificate.expect("signed");
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Self { issuer: Issuer::new(params, key), pem, der }
    }

    pub(super) fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&[(DnType::CommonName, "alice")]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let certificate = params.signed_by(&KeyPair::generate().expect("a key"), &self.issuer);
        certificate.expect("signed").der().clone()
    }

    pub(super) fn authorities(&self) -> ClientAuthorities {
        ClientAuthorities::from_pem(self.pem.as_bytes()).expect("usable")
    }
}
