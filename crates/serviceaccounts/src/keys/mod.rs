//! Keys that sign and verify tokens.

mod jwk;
mod pem;

use std::collections::HashMap;

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
        ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED, ECDSA_P521_SHA512_FIXED_SIGNING,
        EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_SHA256, VerificationAlgorithm,
    },
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::Error;

pub(crate) use jwk::KeySet;

/// How tokens are signed. A key has exactly one: what a token says about it is only compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
    /// RSA PKCS#1 v1.5 with SHA-256, for keys of at least 2048 bits.
    Rs256,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Rs256, Self::Es256, Self::Es384, Self::Es512];

    /// The name in the header of a token.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::Rs256 => "RS256",
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ECDSA_P384_SHA384_FIXED,
            Self::Es512 => &ECDSA_P521_SHA512_FIXED,
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        }
    }

    /// How an ECDSA key of this algorithm signs.
    fn signing(self) -> Option<&'static EcdsaSigningAlgorithm> {
        match self {
            Self::Es256 => Some(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Self::Es384 => Some(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Self::Es512 => Some(&ECDSA_P521_SHA512_FIXED_SIGNING),
            Self::Rs256 => None,
        }
    }
}

/// A key that verifies tokens.
#[derive(Clone)]
pub struct PublicKey {
    id: String,
    algorithm: Algorithm,
    key: ParsedPublicKey,
    /// The key as a SubjectPublicKeyInfo.
    der: Vec<u8>,
}

impl PublicKey {
    /// The key in a SubjectPublicKeyInfo.
    fn from_der(der: &[u8]) -> Option<Self> {
        Algorithm::ALL.into_iter().find_map(|algorithm| {
            let key = ParsedPublicKey::new(algorithm.verification(), der).ok()?;
            // However it was written, it has one form, and so one name.
            let der: PublicKeyX509Der<'_> = key.as_der().ok()?;
            let der = der.as_ref().to_vec();
            // What is too short to verify anything is found here and not with the first token.
            jwk::members(&der, algorithm)?;
            let id = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, &der));
            Some(Self { id, algorithm, key, der })
        })
    }

    /// The name that tokens refer to it by: a hash of the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How its tokens are signed.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Whether the signature of `message` is by this key.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(message, signature).is_ok()
    }
}

/// A key that signs tokens.
pub struct SigningKey {
    key: Private,
    public: PublicKey,
}

enum Private {
    Rsa(Box<rsa::KeyPair>),
    Ecdsa(Box<EcdsaKeyPair>),
}

impl SigningKey {
    /// The first private key in PEM: PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    ///
    /// [`Error::NoPrivateKey`].
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        pem::sections(pem).find_map(|section| section.signing_key()).ok_or(Error::NoPrivateKey)
    }

    fn rsa(key: rsa::KeyPair) -> Option<Self> {
        let der: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
        let public = PublicKey::from_der(der.as_ref())?;
        Some(Self { key: Private::Rsa(Box::new(key)), public })
    }

    fn ecdsa(key: EcdsaKeyPair) -> Option<Self> {
        let der: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
        let public = PublicKey::from_der(der.as_ref())?;
        Some(Self { key: Private::Ecdsa(Box::new(key)), public })
    }

    /// What verifies its signatures.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        match &self.key {
            Private::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                let signed = key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
                signed.map(|()| signature).map_err(|_| Error::Sign)
            }
            Private::Ecdsa(key) => {
                let signature = key.sign(&random, message).map_err(|_| Error::Sign)?;
                Ok(signature.as_ref().to_vec())
            }
        }
    }
}

/// The keys that verify tokens: several while one key takes over from another.
#[derive(Clone, Default)]
pub struct VerificationKeys {
    keys: Vec<PublicKey>,
    by_id: HashMap<String, usize>,
}

impl VerificationKeys {
    /// Adds the keys of a PEM file: public ones, those of private ones, and those of certificates.
    ///
    /// # Errors
    ///
    /// [`Error::NoPublicKeys`].
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<(), Error> {
        let mut found = false;
        for key in pem::sections(pem).filter_map(|section| section.public_key()) {
            found = true;
            self.add(key);
        }
        if found { Ok(()) } else { Err(Error::NoPublicKeys) }
    }

    /// Adds a key, unless it is there.
    pub fn add(&mut self, key: PublicKey) {
        if !self.by_id.contains_key(key.id()) {
            self.by_id.insert(key.id().to_owned(), self.keys.len());
            self.keys.push(key);
        }
    }

    /// All keys, in the order in which they were added.
    #[must_use]
    pub fn all(&self) -> &[PublicKey] {
        &self.keys
    }

    /// The keys that may have signed a token: the one it names, or all if it names none.
    pub(crate) fn candidates(&self, id: &str) -> &[PublicKey] {
        match (id, self.by_id.get(id)) {
            ("", _) => &self.keys,
            (_, Some(index)) => std::slice::from_ref(&self.keys[*index]),
            (_, None) => &[],
        }
    }
}

#[cfg(test)]
mod tests;
