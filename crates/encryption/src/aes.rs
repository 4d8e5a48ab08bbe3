//! AES in the two modes that upstream has.

use aws_lc_rs::{
    aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    cipher::{self, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey},
    iv::FixedLength,
    rand,
};

use crate::{OpenError, SealError};

const BLOCK: usize = 16;

/// Galois/Counter Mode with random nonces. The place of a value is authenticated along with it: nobody can move it.
pub(crate) struct Gcm(LessSafeKey);

impl Gcm {
    /// `None` if AES has no keys of this length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => &aead::AES_128_GCM,
            24 => &aead::AES_192_GCM,
            32 => &aead::AES_256_GCM,
            _ => return None,
        };
        Some(Self(LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?)))
    }

    pub(crate) fn seal(&self, place: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| SealError::Random)?;
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(place), &mut out[start..]);
        out.extend_from_slice(tag.map_err(|_| SealError::Random)?.as_ref());
        Ok(())
    }

    pub(crate) fn open(&self, place: &[u8], stored: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (nonce, sealed) = stored.split_first_chunk::<NONCE_LEN>().ok_or(OpenError::TooShort)?;
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, Aad::from(place), &mut plain);
        let length = opened.map_err(|_| OpenError::Authentication)?.len();
        plain.truncate(length);
        Ok(plain)
    }
}

/// Cipher Block Chaining. Nothing is authenticated: upstream keeps it for those who have it, and so do we.
pub(crate) struct Cbc {
    sealing: EncryptingKey,
    opening: DecryptingKey,
}

impl Cbc {
    /// `None` if AES has no keys of this length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => &cipher::AES_128,
            24 => &cipher::AES_192,
            32 => &cipher::AES_256,
            _ => return None,
        };
        let key = || UnboundCipherKey::new(algorithm, key).ok();
        Some(Self { sealing: EncryptingKey::cbc(key()?).ok()?, opening: DecryptingKey::cbc(key()?).ok()? })
    }

    pub(crate) fn seal(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let mut iv = [0; BLOCK];
        rand::fill(&mut iv).map_err(|_| SealError::Random)?;
        out.extend_from_slice(&iv);
        let start = out.len();
        out.extend_from_slice(plain);
        let padding = BLOCK - plain.len() % BLOCK;
        out.resize(out.len() + padding, padding as u8);
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        self.sealing.less_safe_encrypt(&mut out[start..], context).map_err(|_| SealError::Random)?;
        Ok(())
    }

    pub(crate) fn open(&self, stored: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (iv, sealed) = stored.split_first_chunk::<BLOCK>().ok_or(OpenError::TooShort)?;
        if sealed.len() % BLOCK != 0 {
            return Err(OpenError::NoBlocks);
        }
        let mut plain = sealed.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(*iv));
        self.opening.decrypt(&mut plain, context).map_err(|_| OpenError::NotPadded)?;
        let length = unpadded(&plain)?;
        plain.truncate(length);
        Ok(plain)
    }
}

/// How long a value is without its padding: as many bytes as each of them says.
fn unpadded(padded: &[u8]) -> Result<usize, OpenError> {
    let last = padded.last().copied().unwrap_or_default();
    let padding = usize::from(last);
    if padding == 0 || padding > padded.len() {
        return Err(OpenError::NotPadded);
    }
    let length = padded.len() - padding;
    match padded[length..].iter().all(|byte| *byte == last) {
        true => Ok(length),
        false => Err(OpenError::Padding),
    }
}
