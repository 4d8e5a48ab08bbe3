use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

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

/// Whose certificate it is, and until when; or why it is nobody's.
type Verified = Result<(Option<Arc<UserInfo>>, SystemTime), Unauthenticated>;

/// The authorities whose client certificates are accepted: the common name of a certificate is the user,
/// its organizations are the groups.
pub struct ClientAuthorities {
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

    /// The names of the authorities, for clients that have to choose among certificates.
    pub(crate) fn names(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
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
            remembered.push((self.number, verified.clone()));
            verified
        })
    }

    fn verify(&self, chain: &[CertificateDer<'static>], now: SystemTime) -> Verified {
        let [own, intermediates @ ..] = chain else { return Ok((None, now)) };
        let at = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap_or_default());
        let (_, certificate) = X509Certificate::from_der(own)
            .map_err(|error| Unauthenticated(format!("the client certificate cannot be read: {error}")))?;
        self.verifier.verify_client_cert(own, intermediates, at).map_err(|error| {
            let serial = certificate.raw_serial_as_string();
            Unauthenticated(format!("verifying certificate SN={serial} failed: {error}"))
        })?;
        let end = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default();
        Ok((user(&certificate, own)?.map(Arc::new), UNIX_EPOCH + Duration::from_secs(end)))
    }
}

/// The user a certificate names, if it names one.
fn user(certificate: &X509Certificate<'_>, der: &[u8]) -> Result<Option<UserInfo>, Unauthenticated> {
    let values = |oid: Oid<'static>| {
        let attributes = certificate.subject().iter_attributes();
        let values = attributes.filter(move |attribute| *attribute.attr_type() == oid);
        values.map(|attribute| attribute.as_str().map(str::to_owned))
    };
    let unreadable = |_| Unauthenticated("the subject of the client certificate is not text".to_owned());
    let texts = |oid| values(oid).collect::<Result<Vec<String>, _>>().map_err(unreadable);
    // The last one counts, as in Go.
    let Some(name) = texts(OID_X509_COMMON_NAME)?.pop().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let wrong = |text: &str| Unauthenticated(text.to_owned());
    let uid = match &mut texts(UID)?[..] {
        [] => String::new(),
        [uid] if uid.is_empty() => return Err(wrong("UID cannot be an empty string")),
        [uid] => std::mem::take(uid),
        uids => return Err(wrong(&format!("expected 1 UID, but found multiple: {uids:?}"))),
    };
    let fingerprint: String =
        digest(&SHA256, der).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let credential = vec![format!("X509SHA256={fingerprint}")];
    let user = UserInfo {
        name,
        uid,
        groups: texts(OID_X509_ORGANIZATION_NAME)?,
        extra: [(UserInfo::CREDENTIAL_ID.to_owned(), credential)].into(),
    };
    Ok(Some(user.authenticated()))
}

#[async_trait]
impl Authenticator for ClientAuthorities {
    async fn authenticate(&self, request: &mut Parts) -> Authenticated {
        let Some(PeerCertificates(peer)) = request.extensions.get() else { return Ok(None) };
        let now = SystemTime::now();
        match &*self.verified(peer, now) {
            // A connection may outlive the certificate it was made with.
            Ok((_, end)) if now > *end => {
                Err(Unauthenticated("the client certificate has expired".to_owned()))
            }
            Ok((user, _)) => Ok(user.clone()),
            Err(error) => Err(error.clone()),
        }
    }
}

#[cfg(test)]
#[path = "x509_tests.rs"]
mod tests;
