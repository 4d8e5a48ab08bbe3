//! How connections are secured.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::{
    CipherSuite, DigitallySignedStruct, DistinguishedName, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, UnixTime},
    server::{
        ServerConfig,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::{CertifiedKey, SingleCertAndKey},
};
use tokio_rustls::TlsAcceptor;

use crate::ClientAuthorities;

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
    ) -> Result<Self, rustls::Error> {
        let current = ArcSwap::from_pointee(Current::new(identity.0.load_full(), &authorities)?);
        Ok(Self { identity, authorities, current })
    }

    /// How to shake hands with a client that comes now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.load();
        let identity = self.identity.0.load();
        let numbers = self.authorities.iter().map(|authorities| authorities.number());
        if Arc::ptr_eq(&current.identity, &identity) && numbers.eq(current.authorities.iter().copied()) {
            return current.config.clone().into();
        }
        match Current::new(identity.clone(), &self.authorities) {
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
    /// TLS 1.2 and 1.3; HTTP/2 for clients that offer it; client certificates asked for if any are accepted.
    fn new(
        identity: Arc<CertifiedKey>,
        authorities: &[Arc<ClientAuthorities>],
    ) -> Result<Self, rustls::Error> {
        let numbers = authorities.iter().map(|authorities| authorities.number()).collect();
        let provider = Arc::new(provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = if authorities.is_empty() {
            builder.with_no_client_auth()
        } else {
            let names = authorities.iter().flat_map(|authorities| authorities.names()).collect();
            builder.with_client_cert_verifier(Arc::new(AskForCertificate { names, algorithms }))
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.clone())));
        config.ignore_client_order = true;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { identity, authorities: numbers, config: Arc::new(config) })
    }
}

/// The ciphers of TLS 1.3 with a key of 128 bits come first, whatever the client would rather have: that is strong
/// enough for anything, it takes fewer rounds than 256, and servers in Go choose the same.
fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
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
