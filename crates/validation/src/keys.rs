//! Public keys in requests for certificates and in certificates.

use x509_parser::{
    asn1_rs::BitString,
    certificate::X509Certificate,
    certification_request::X509CertificationRequest,
    error::X509Error,
    extensions::{GeneralName, ParsedExtension},
    prelude::FromDer as _,
    public_key::PublicKey,
    verify::verify_signature,
    x509::{AlgorithmIdentifier, SubjectPublicKeyInfo},
};

/// What is wrong with a key.
pub(crate) enum Wrong {
    /// It cannot be read.
    Form,
    /// It is of a kind that is not used.
    Kind,
    /// It is on a curve of this name, which is not used.
    Curve(&'static str),
    /// It has a modulus of so many bits.
    Modulus(usize),
    /// Who sends it has not shown that it has the other half.
    Proof,
}

/// The key that a request of PKCS#10 is about, which is signed with it.
pub(crate) fn requested(der: &[u8]) -> Result<Vec<u8>, Wrong> {
    let Ok(([], request)) = X509CertificationRequest::from_der(der) else { return Err(Wrong::Form) };
    let key = &request.certification_request_info.subject_pki;
    good(key)?;
    verified(&request.verify_signature())?;
    Ok(key.raw.to_vec())
}

/// Whether a key in DER signed this text.
pub(crate) fn proven(der: &[u8], signature: &[u8], text: &[u8]) -> Result<(), Wrong> {
    let Ok(([], key)) = SubjectPublicKeyInfo::from_der(der) else { return Err(Wrong::Form) };
    let algorithm = good(&key)?;
    let Ok((_, algorithm)) = AlgorithmIdentifier::from_der(algorithm) else { return Err(Wrong::Kind) };
    verified(&verify_signature(&key, &algorithm, &BitString::new(0, signature), text))
}

/// Keys on P-521 are used, but nothing here can verify what they sign.
fn verified(result: &Result<(), X509Error>) -> Result<(), Wrong> {
    match result {
        Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm) => Ok(()),
        Err(_) => Err(Wrong::Proof),
    }
}

/// How keys of a kind that is used sign proofs, as an `AlgorithmIdentifier` in DER: Ed25519, ECDSA with SHA-256, RSASSA-PSS
/// with SHA-256.
const ED25519: &[u8] = b"\x30\x05\x06\x03\x2b\x65\x70";
const ECDSA: &[u8] = b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02";
const RSA_PSS: &[u8] =
    b"\x30\x1c\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a\x30\x0f\xa0\x0d\x30\x0b\x06\x09\
    \x60\x86\x48\x01\x65\x03\x04\x02\x01";

fn good(key: &SubjectPublicKeyInfo<'_>) -> Result<&'static [u8], Wrong> {
    if key.algorithm.algorithm.to_id_string() == "1.3.101.112" {
        return Ok(ED25519);
    }
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => match rsa.key_size() {
            3072 | 4096 => Ok(RSA_PSS),
            bits => Err(Wrong::Modulus(bits)),
        },
        Ok(PublicKey::EC(_)) => {
            let curve = key.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
            match curve.map(|curve| curve.to_id_string()).as_deref() {
                Some("1.2.840.10045.3.1.7" | "1.3.132.0.34" | "1.3.132.0.35") => Ok(ECDSA),
                Some("1.3.132.0.33") => Err(Wrong::Curve("P-224")),
                _ => Err(Wrong::Form),
            }
        }
        Ok(_) => Err(Wrong::Kind),
        Err(_) => Err(Wrong::Form),
    }
}

/// A certificate in DER.
pub(crate) fn certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der)
        .ok()
        .filter(|(rest, _)| rest.is_empty())
        .map(|(_, certificate)| certificate)
}

/// The names of hosts that a certificate is for.
pub(crate) fn dns_names<'c>(certificate: &'c X509Certificate<'_>) -> Vec<&'c str> {
    let names = certificate.extensions().iter().filter_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    });
    let dns = names.flatten().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    });
    dns.collect()
}
