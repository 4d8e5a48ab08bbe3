//! Whom to believe that it is the webhook.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::InvalidConfig;

/// Where distributions keep the authorities they trust, in Go's order.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// TLS with a server that one of these authorities vouches for; those of the system if there are none.
pub(crate) fn tls_config(bundle: &[u8]) -> Result<ClientConfig, InvalidConfig> {
    let certificates = match bundle {
        [] => read(&system_bundle().ok_or(InvalidConfig::NoSystemRoots)?),
        bundle => read(bundle),
    };
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(certificates.iter().cloned());
    if usable == 0 {
        return Err(InvalidConfig::NoCertificate);
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let authorities = verifier.build().map_err(|_| InvalidConfig::NoCertificate)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Bundle { authorities, certificates }))
        .with_no_client_auth();
    Ok(config)
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
