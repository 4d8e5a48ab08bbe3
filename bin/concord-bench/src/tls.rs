//! The client side of TLS as a kubeconfig asks for it.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

use crate::kubeconfig::{Tls, Verify};

/// Where distributions keep the authorities they trust.
const SYSTEM_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Builds the configuration; `protocol` is the one ALPN name offered.
pub(crate) fn client_config(tls: &Tls, protocol: &[u8]) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .context("the TLS library has no usable protocol version")?;
    let builder = match &tls.verify {
        Verify::Nobody => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(BelieveAnybody(provider)))
        }
        Verify::Authorities(pem) => builder.with_root_certificates(roots(pem)?),
        Verify::System => builder.with_root_certificates(roots(&system_bundle()?)?),
    };
    let mut config = match &tls.identity {
        Some((certificate, key)) => {
            let chain = certificates(certificate).context("client-certificate")?;
            let key = PrivateKeyDer::from_pem_slice(key).context("client-key is not a PEM private key")?;
            builder
                .with_client_auth_cert(chain, key)
                .context("client-certificate and client-key do not fit")?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().context("bad PEM")?;
    ensure!(!found.is_empty(), "no PEM certificate in it");
    Ok(found)
}

fn roots(pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(pem).context("certificate-authority")?);
    ensure!(added > 0, "certificate-authority: no usable certificate in it");
    Ok(roots)
}

fn system_bundle() -> Result<Vec<u8>> {
    let found = SYSTEM_BUNDLES.iter().find_map(|path| std::fs::read(path).ok());
    found.context("the cluster names no certificate-authority and this machine has no bundle of its own")
}

/// For `insecure-skip-tls-verify`: any certificate will do, but its owner must hold the key.
#[derive(Debug)]
struct BelieveAnybody(Arc<CryptoProvider>);

impl ServerCertVerifier for BelieveAnybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(verify: Verify, identity: Option<(&[u8], &[u8])>) -> String {
        let identity = identity.map(|(certificate, key)| (certificate.to_vec(), key.to_vec()));
        let tls = Tls { verify, server_name: "localhost".to_owned(), identity };
        format!("{:#}", client_config(&tls, b"h2").expect_err("refused"))
    }

    #[test]
    fn bad_certificates_are_named() {
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".as_bytes();
        let authorities = |pem: &[u8]| refusal(Verify::Authorities(pem.to_vec()), None);
        assert_eq!(authorities(b"text"), "certificate-authority: no PEM certificate in it");
        assert_eq!(authorities(empty), "certificate-authority: no usable certificate in it");
        let identity = |certificate, key| refusal(Verify::Nobody, Some((certificate, key)));
        assert_eq!(identity(b"", b""), "client-certificate: no PEM certificate in it");
        assert!(identity(empty, b"text").starts_with("client-key is not a PEM private key"));
    }

    #[test]
    fn the_protocol_is_the_one_asked_for() {
        let tls = Tls { verify: Verify::Nobody, server_name: "localhost".to_owned(), identity: None };
        let config = client_config(&tls, b"h2").expect("good");
        assert_eq!(config.alpn_protocols, [b"h2".to_vec()]);
    }
}
