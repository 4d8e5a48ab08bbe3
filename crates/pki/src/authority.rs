use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

use crate::{Error, ServingNames};

/// Issuing needs the authority's name again, and it is always this one, so that an authority can be used
/// from its key alone. Authorities are told apart by their keys.
const AUTHORITY_NAME: &str = "concord-ca";

/// Long enough that nobody has to plan for its end, as kubeadm's authority.
const AUTHORITY_LIFETIME: Duration = days(3650);

/// How long all other certificates live: as long as kubeadm's.
const LIFETIME: Duration = days(365);

/// Certificates are valid from a little before they are made: clocks of clients run behind.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

pub(crate) const fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

/// A certificate and its private key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertifiedPair {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS#8.
    pub key: String,
}

/// Who signs: a key and the name it signs under.
pub struct Authority {
    key: KeyPair,
}

impl Authority {
    /// An authority with a new key.
    ///
    /// # Errors
    ///
    /// [`Error::Generate`] when the system has no randomness to give.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self { key: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)? })
    }

    /// The authority that has this key.
    ///
    /// # Errors
    ///
    /// [`Error::Generate`] when the text holds no private key.
    pub fn from_key(pem: &str) -> Result<Self, Error> {
        Ok(Self { key: KeyPair::from_pem(pem)? })
    }

    /// The private key, PEM.
    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// The authority's own certificate, PEM, valid for ten years from `now`.
    ///
    /// # Errors
    ///
    /// [`Error::Generate`].
    pub fn certificate(&self, now: SystemTime) -> Result<String, Error> {
        let mut params = Self::params()?;
        (params.not_before, params.not_after) =
            ((now - CLOCK_SKEW).into(), (now + AUTHORITY_LIFETIME).into());
        Ok(params.self_signed(&self.key)?.pem())
    }

    /// A serving certificate for `names` with a key of its own, valid for one year from `now`.
    ///
    /// # Errors
    ///
    /// [`Error::Generate`].
    pub fn issue_serving(&self, names: &ServingNames, now: SystemTime) -> Result<CertifiedPair, Error> {
        let mut params = CertificateParams::new(names.to_strings())?;
        params.distinguished_name = common_name("concord-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params, now)
    }

    /// A client certificate with a key of its own, valid for one year from `now`. API servers take the common
    /// name for the user and the organization, if there is one, for the user's group.
    ///
    /// # Errors
    ///
    /// [`Error::Generate`].
    pub fn issue_client(
        &self,
        user: &str,
        group: Option<&str>,
        now: SystemTime,
    ) -> Result<CertifiedPair, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = common_name(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params, now)
    }

    fn issue(&self, mut params: CertificateParams, now: SystemTime) -> Result<CertifiedPair, Error> {
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        (params.not_before, params.not_after) = ((now - CLOCK_SKEW).into(), (now + LIFETIME).into());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &Issuer::new(Self::params()?, &self.key))?;
        Ok(CertifiedPair { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    fn params() -> Result<CertificateParams, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = common_name(AUTHORITY_NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(params)
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
