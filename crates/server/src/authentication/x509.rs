use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use http::request::Parts;
use parking_lot::Mutex;
use rustls::{
    DistinguishedName, RootCertStore,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, UnixTime, pem::PemObject as _},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_parser::{
    oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME, Oid, asn1_rs::oid},
    prelude::{FromDer as _, X509Certificate},
};

use super::{Authenticated, Authenticator, Unauthenticated};
use crate::UserInfo;

/// The subject attribute that holds a user's uid.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// The certificates a client presented in the handshake, its own first, and what was found out about them.
/// One per connection: verifying signatures costs far more than answering a request.
#[derive(Clone)]
pub(crate) struct PeerCertificates(Arc<Peer>);

struct Peer {
    chain: Vec<CertificateDer<'static>>,
    /// By the number of the authorities that were asked.
    verified: Mutex<Vec<(u64, Arc<Verified>)>>,
}

impl PeerCertificates {
    pub(crate) fn new(chain: &[CertificateDer<'_>]) -> Self {
        let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        Self(Arc::new(Peer { chain, verified: Mutex::default() }))
    }
}

/// How many opinions a connection remembers. There are two kinds of authorities, and both may be replaced while it lasts.
const REMEMBERED: usize = 4;

/// What some authorities say about a client's certificate; or why they did not sign it.
pub(super) type Verified = Result<Vouched, Unauthenticated>;

/// A certificate that was verified.
pub(super) struct Vouched {
    pub(super) common_name: String,
    /// Whom it names, if that can be said.
    user: Authenticated,
    /// When it ends.
    end: SystemTime,
}

/// The authorities whose client certificates are accepted: the common name of a certificate is the user,
/// its organizations are the groups. They can be replaced at any time, also for connections that are open.
pub struct ClientAuthorities(ArcSwap<Authorities>);

/// The authorities of one moment.
struct Authorities {
    /// Tells these authorities from others when a connection remembers what they said.
    number: u64,
    verifier: Arc<dyn ClientCertVerifier>,
}

/// Why a file with authorities cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientAuthoritiesError {
    /// There is no certificate in it.
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    Empty,
    /// One of the certificates cannot be read or cannot be an authority.
    #[error("certificate number {number} cannot be used: {reason}")]
    Unusable {
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl ClientAuthorities {
    /// Reads certificates in PEM form.
    ///
    /// # Errors
    ///
    /// [`ClientAuthoritiesError`].
    pub fn from_pem(pem: &[u8]) -> Result<Self, ClientAuthoritiesError> {
        Authorities::from_pem(pem).map(|authorities| Self(ArcSwap::from_pointee(authorities)))
    }

    /// Replaces them by those in `pem`. What cannot be read changes nothing.
    ///
    /// # Errors
    ///
    /// [`ClientAuthoritiesError`].
    pub fn replace(&self, pem: &[u8]) -> Result<(), ClientAuthoritiesError> {
        self.0.store(Arc::new(Authorities::from_pem(pem)?));
        Ok(())
    }

    /// The names of the authorities, for clients that have to choose among certificates.
    pub(crate) fn names(&self) -> Vec<DistinguishedName> {
        self.0.load().verifier.root_hint_subjects().to_vec()
    }

    /// Another one whenever they were replaced.
    pub(crate) fn number(&self) -> u64 {
        self.0.load().number
    }

    /// What these authorities say about the client of a request; `None` if it showed no certificate.
    pub(super) fn verified(&self, request: &Parts) -> Option<Arc<Verified>> {
        let PeerCertificates(peer) = request.extensions.get()?;
        let now = SystemTime::now();
        let verified = self.0.load().verified(peer, now);
        match &*verified {
            // A connection may outlive the certificate it was made with.
            Ok(vouched) if now > vouched.end => {
                Some(Arc::new(Err(Unauthenticated("the client certificate has expired".to_owned()))))
            }
            _ => Some(verified),
        }
    }
}

impl Authorities {
    fn from_pem(pem: &[u8]) -> Result<Self, ClientAuthoritiesError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut roots = RootCertStore::empty();
        for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let unusable = |reason: &dyn fmt::Display| ClientAuthoritiesError::Unusable {
                number: index + 1,
                reason: reason.to_string(),
            };
            let certificate = certificate.map_err(|error| unusable(&error))?;
            roots.add(certificate).map_err(|error| unusable(&error))?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), default_provider().into());
        let verifier = builder.build().map_err(|_| ClientAuthoritiesError::Empty)?;
        Ok(Self { number: NEXT.fetch_add(1, Ordering::Relaxed), verifier })
    }

    /// What these authorities say about a client; remembered for its other requests.
    fn verified(&self, peer: &Peer, now: SystemTime) -> Arc<Verified> {
        let known = |remembered: &[(u64, Arc<Verified>)]| {
            remembered.iter().find(|(number, _)| *number == self.number).map(|(_, verified)| verified.clone())
        };
        if let Some(verified) = known(&peer.verified.lock()) {
            return verified;
        }
        let verified = Arc::new(self.verify(&peer.chain, now));
        let mut remembered = peer.verified.lock();
        // Others may have verified meanwhile, with the same result.
        known(&remembered).unwrap_or_else(|| {
            if remembered.len() == REMEMBERED {
                remembered.remove(0);
            }
            remembered.push((self.number, verified.clone()));
            verified
        })
    }

    fn verify(&self, chain: &[CertificateDer<'static>], now: SystemTime) -> Verified {
        let [own, intermediates @ ..] = chain else {
            return Err(Unauthenticated("there is no client certificate".to_owned()));
        };
        let at = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap_or_default());
        let (_, certificate) = X509Certificate::from_der(own)
            .map_err(|error| Unauthenticated(format!("the client certificate cannot be read: {error}")))?;
        self.verifier.verify_client_cert(own, intermediates, at).map_err(|error| {
            let serial = certificate.raw_serial_as_string();
            Unauthenticated(format!("verifying certificate SN={serial} failed: {error}"))
        })?;
        let end = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default();
        let common_name = texts(&certificate, &OID_X509_COMMON_NAME)?.pop().unwrap_or_default();
        Ok(Vouched {
            user: user(&certificate, own, &common_name).map(|user| user.map(Arc::new)),
            common_name,
            end: UNIX_EPOCH + Duration::from_secs(end),
        })
    }
}

/// The values of one attribute of a certificate's subject.
fn texts(certificate: &X509Certificate<'_>, oid: &Oid<'static>) -> Result<Vec<String>, Unauthenticated> {
    let attributes = certificate.subject().iter_attributes();
    let values = attributes.filter(|attribute| attribute.attr_type() == oid);
    let values = values.map(|attribute| attribute.as_str().map(str::to_owned));
    let unreadable = |_| Unauthenticated("the subject of the client certificate is not text".to_owned());
    values.collect::<Result<Vec<String>, _>>().map_err(unreadable)
}

/// The user a certificate names, if it names one. Of several common names the last one counts, as in Go.
fn user(
    certificate: &X509Certificate<'_>,
    der: &[u8],
    common_name: &str,
) -> Result<Option<UserInfo>, Unauthenticated> {
    if common_name.is_empty() {
        return Ok(None);
    }
    let wrong = |text: &str| Unauthenticated(text.to_owned());
    let uid = match &mut texts(certificate, &UID)?[..] {
        [] => String::new(),
        [uid] if uid.is_empty() => return Err(wrong("UID cannot be an empty string")),
        [uid] => std::mem::take(uid),
        uids => return Err(wrong(&format!("expected 1 UID, but found multiple: {uids:?}"))),
    };
    let fingerprint: String =
        digest(&SHA256, der).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let credential = vec![format!("X509SHA256={fingerprint}")];
    let user = UserInfo {
        name: common_name.to_owned(),
        uid,
        groups: texts(certificate, &OID_X509_ORGANIZATION_NAME)?,
        extra: [(UserInfo::CREDENTIAL_ID.to_owned(), credential)].into(),
    };
    Ok(Some(user.authenticated()))
}

#[async_trait]
impl Authenticator for ClientAuthorities {
    async fn authenticate(&self, request: &mut Parts) -> Authenticated {
        match self.verified(request).as_deref() {
            None => Ok(None),
            Some(Ok(vouched)) => vouched.user.clone(),
            Some(Err(error)) => Err(error.clone()),
        }
    }
}

#[cfg(test)]
#[path = "x509_tests.rs"]
mod tests;
