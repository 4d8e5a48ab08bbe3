//! Keys as others read them: RFC 7517.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Serialize;
use x509_parser::{prelude::FromDer as _, public_key, x509::SubjectPublicKeyInfo};

use super::{Algorithm, PublicKey};

/// The shortest RSA keys that verify anything, in bytes.
const MIN_MODULUS: usize = 2048 / 8;

/// A set of keys, as `/openid/v1/jwks` shows it.
#[derive(Serialize)]
pub(crate) struct KeySet<'a> {
    keys: Vec<Key<'a>>,
}

/// One key. The order of the members is upstream's.
#[derive(Serialize)]
struct Key<'a> {
    r#use: &'static str,
    kty: &'static str,
    kid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'static str>,
    alg: &'static str,
    #[serde(flatten)]
    members: Members,
}

/// The numbers that are the key.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Members {
    Ecdsa { x: String, y: String },
    Rsa { n: String, e: String },
}

impl<'a> KeySet<'a> {
    pub(crate) fn new(keys: &'a [PublicKey]) -> Self {
        Self { keys: keys.iter().filter_map(key).collect() }
    }
}

fn key(key: &PublicKey) -> Option<Key<'_>> {
    let (kty, crv) = match key.algorithm {
        Algorithm::Rs256 => ("RSA", None),
        Algorithm::Es256 => ("EC", Some("P-256")),
        Algorithm::Es384 => ("EC", Some("P-384")),
        Algorithm::Es512 => ("EC", Some("P-521")),
    };
    let members = members(&key.der, key.algorithm)?;
    Some(Key { r#use: "sig", kty, kid: &key.id, crv, alg: key.algorithm.as_str(), members })
}

/// The members of a key that is written as a SubjectPublicKeyInfo; `None` if it is not one that can be used.
pub(super) fn members(der: &[u8], algorithm: Algorithm) -> Option<Members> {
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let (_, info) = SubjectPublicKeyInfo::from_der(der).ok()?;
    match (algorithm, info.parsed().ok()?) {
        (Algorithm::Rs256, public_key::PublicKey::RSA(key)) => {
            let (modulus, exponent) = (without_zeros(key.modulus), without_zeros(key.exponent));
            let long_enough = modulus.len() >= MIN_MODULUS;
            long_enough.then(|| Members::Rsa { n: encode(modulus), e: encode(exponent) })
        }
        (Algorithm::Rs256, _) => None,
        (_, public_key::PublicKey::EC(point)) => {
            // 4, and then both coordinates at full length.
            let (form, coordinates) = point.data().split_first()?;
            let (x, y) = coordinates.split_at_checked(coordinates.len() / 2)?;
            (*form == 4 && x.len() == y.len()).then(|| Members::Ecdsa { x: encode(x), y: encode(y) })
        }
        _ => None,
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
