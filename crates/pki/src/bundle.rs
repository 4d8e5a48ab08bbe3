use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// How long a certificate counts after its end: clocks differ.
const SLACK: Duration = Duration::from_secs(5 * 60);

/// All certificates of some bundles in PEM form, each once, in their order, without those that have ended. What cannot be
/// read is left out.
///
/// ```
/// # use std::time::SystemTime;
/// assert_eq!(concord_pki::combine_bundles(&["", "no certificate"], SystemTime::now()), "");
/// ```
#[must_use]
pub fn combine_bundles(bundles: &[&str], now: SystemTime) -> String {
    let mut kept: Vec<CertificateDer<'_>> = Vec::new();
    for bundle in bundles {
        let certificates = CertificateDer::pem_slice_iter(bundle.as_bytes()).filter_map(Result::ok);
        for certificate in certificates.filter(|certificate| lasts(certificate, now)) {
            if !kept.contains(&certificate) {
                kept.push(certificate);
            }
        }
    }
    kept.iter().map(|certificate| pem(certificate)).collect()
}

fn lasts(der: &[u8], now: SystemTime) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return false };
    let end = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(end) + SLACK > now
}

fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let body: String = lines.flat_map(|line| [line.into_owned(), "\n".to_owned()]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n")
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn certificate(lifetime: Duration) -> String {
        let mut params = CertificateParams::default();
        params.not_after = (SystemTime::now() + lifetime).into();
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("signed").pem().replace("\r\n", "\n")
    }

    #[test]
    fn every_certificate_that_lasts_is_there_once() {
        let day = Duration::from_secs(24 * 60 * 60);
        let (one, other, short) = (certificate(day * 9), certificate(day * 9), certificate(day));
        let (both, now) = (format!("{other}{one}"), SystemTime::now());
        assert_eq!(combine_bundles(&[&one, &both, &short], now), format!("{one}{other}{short}"));
        assert_eq!(combine_bundles(&[&one, &both, &short], now + day * 2), format!("{one}{other}"));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(combine_bundles(&[broken, &one], now), one);
    }
}
