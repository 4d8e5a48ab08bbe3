//! How connections are secured.

mod names;
mod options;

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::{
    DigitallySignedStruct, DistinguishedName, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        ServerConfig,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
};
use tokio_rustls::TlsAcceptor;

use crate::ClientAuthorities;
use names::ByName;
pub use names::NamedIdentity;
pub use options::{TlsOptions, TlsVersion};

/// The certificate to serve with. It can be replaced while the server runs; connections that are open keep the old one.
#[derive(Debug)]
pub struct Identity(ArcSwap<CertifiedKey>);

impl Identity {
    /// This one.
    #[must_use]
    pub fn new(identity: Arc<CertifiedKey>) -> Self {
        Self(ArcSwap::new(identity))
    }

    /// Serves with another one from now on.
    pub fn replace(&self, identity: Arc<CertifiedKey>) {
        self.0.store(identity);
    }
}

/// How to shake hands now, made anew when the certificate or the authorities were replaced.
pub(crate) struct Tls {
    identity: Arc<Identity>,
    /// Of clients and of proxies, as far as there are any.
    authorities: Vec<Arc<ClientAuthorities>>,
    options: TlsOptions,
    current: ArcSwap<Current>,
}

/// A configuration, and what it was made of.
struct Current {
    identity: Arc<CertifiedKey>,
    authorities: Vec<u64>,
    config: Arc<ServerConfig>,
}

impl Tls {
    pub(crate) fn new(
        identity: Arc<Identity>,
        authorities: Vec<Arc<ClientAuthorities>>,
        options: TlsOptions,
    ) -> Result<Self, rustls::Error> {
        let current = ArcSwap::from_pointee(Current::new(&identity, &authorities, &options)?);
        Ok(Self { identity, authorities, options, current })
    }

    /// How to shake hands with a client that comes now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.load();
        let identity = self.identity.0.load();
        let numbers = self.authorities.iter().map(|authorities| authorities.number());
        if Arc::ptr_eq(&current.identity, &identity) && numbers.eq(current.authorities.iter().copied()) {
            return current.config.clone().into();
        }
        match Current::new(&self.identity, &self.authorities, &self.options) {
            Ok(new) => {
                let config = new.config.clone();
                self.current.store(Arc::new(new));
                config.into()
            }
            Err(error) => {
                tracing::error!(%error, "The new certificates cannot be served with; the old ones stay.");
                current.config.clone().into()
            }
        }
    }
}

impl Current {
    /// HTTP/2 for clients that offer it; client certificates asked for if any are accepted.
    fn new(
        identity: &Arc<Identity>,
        authorities: &[Arc<ClientAuthorities>],
        options: &TlsOptions,
    ) -> Result<Self, rustls::Error> {
        let numbers = authorities.iter().map(|authorities| authorities.number()).collect();
        // What the configuration is made for. A client that comes just after a change may be shown the newer one.
        let current = identity.0.load_full();
        let provider = Arc::new(options.provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(options.versions())?;
        let builder = if authorities.is_empty() {
            builder.with_no_client_auth()
        } else {
            let names = authorities.iter().flat_map(|authorities| authorities.names()).collect();
            builder.with_client_cert_verifier(Arc::new(AskForCertificate { names, algorithms }))
        };
        let resolver = ByName { named: options.by_name.clone(), default: identity.clone() };
        let mut config = builder.with_cert_resolver(Arc::new(resolver));
        config.ignore_client_order = true;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { identity: current, authorities: numbers, config: Arc::new(config) })
    }
}

/// Asks for a certificate and takes any, as long as the client has its key. Whose it is, and whether that
/// is enough, is for authentication to say: a certificate that is not accepted is a 401 with an explanation
/// to the client's user, not a broken connection.
#[derive(Debug)]
struct AskForCertificate {
    names: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AskForCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.names
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
