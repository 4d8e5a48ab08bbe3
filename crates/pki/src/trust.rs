//! Whom to believe when this server is the client: of a webhook, of an aggregated server, of a peer.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        ResolvesClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
    sign::CertifiedKey,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Where distributions keep the authorities they trust, in Go's order.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Whom to believe that a server is who it should be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Whomever the system's authorities vouch for.
    System,
    /// Whomever one of these certificates (PEM) vouches for, or who has one of them.
    Bundle(Vec<u8>),
    /// Anybody. Only for those who ask for it in as many words.
    Anybody,
}

/// Nobody can be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// There is no certificate in the bundle.
    #[error("there is no certificate in it")]
    NoCertificate,
    /// The system has no authorities.
    #[error("the system has no trusted certificate authorities")]
    NoSystemRoots,
}

/// The certificate by which this server shows who it is when it is the client. It can be replaced at any time; connections
/// that are open keep the old one.
#[derive(Debug)]
pub struct ClientIdentity(ArcSwap<CertifiedKey>);

impl ClientIdentity {
    /// This one.
    pub fn new(identity: Arc<CertifiedKey>) -> Self {
        Self(ArcSwap::new(identity))
    }

    /// Another one from now on.
    pub fn replace(&self, identity: Arc<CertifiedKey>) {
        self.0.store(identity);
    }
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// How to shake hands with a server: whom to believe, and which certificate to show, if any.
///
/// # Errors
///
/// [`TrustError`], if there is nobody to believe.
pub fn client_tls(trust: &Trust, identity: Option<Arc<ClientIdentity>>) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::System => {
            Arc::new(Bundle::new(read(&system_bundle().ok_or(TrustError::NoSystemRoots)?), provider.clone())?)
        }
        Trust::Bundle(pem) => Arc::new(Bundle::new(read(pem), provider.clone())?),
        Trust::Anybody => Arc::new(Anybody(provider.signature_verification_algorithms)),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(match identity {
        Some(identity) => builder.with_client_cert_resolver(identity),
        None => builder.with_no_client_auth(),
    })
}

/// Every certificate that can be read; what else is in the text is passed over, as Go does.
fn read(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

fn system_bundle() -> Option<Vec<u8>> {
    let told = std::env::var_os("SSL_CERT_FILE");
    match told {
        Some(path) => std::fs::read(path).ok(),
        None => SYSTEM_BUNDLES.iter().find_map(|path| std::fs::read(path).ok()),
    }
}

/// Believes what an authority of the bundle signed, and the certificates of the bundle themselves.
///
/// The latter is Go's rule, and people rely on it: a certificate made with one command of openssl is its own authority,
/// and is used as the server's as well. Elsewhere a certificate of an authority cannot be a server's.
#[derive(Debug)]
struct Bundle {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Bundle {
    fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        let (usable, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        if usable == 0 {
            return Err(TrustError::NoCertificate);
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let authorities = verifier.build().map_err(|_| TrustError::NoCertificate)?;
        Ok(Self { authorities, certificates })
    }
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.iter().any(|certificate| certificate.as_ref() == end_entity.as_ref()) {
            valid_now(end_entity, now)?;
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Believes anybody who has the key of the certificate that is shown.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

fn valid_now(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, parsed) =
        X509Certificate::from_der(certificate).map_err(|_| Error::from(CertificateError::BadEncoding))?;
    let validity = parsed.validity();
    let seconds =
        |at: i64| UnixTime::since_unix_epoch(std::time::Duration::from_secs(at.max(0).unsigned_abs()));
    let (not_before, not_after) =
        (seconds(validity.not_before.timestamp()), seconds(validity.not_after.timestamp()));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    Ok(())
}
