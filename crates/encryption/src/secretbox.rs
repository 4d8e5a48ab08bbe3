//! NaCl's secretbox: XSalsa20 and Poly1305.

use aws_lc_rs::rand;
use poly1305::{Poly1305, universal_hash::KeyInit as _};
use salsa20::{
    XSalsa20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use zeroize::Zeroizing;

use crate::{OpenError, SealError};

const NONCE: usize = 24;
const TAG: usize = 16;
/// The beginning of the key stream is the key of the authenticator.
const TAG_KEY: usize = 32;

pub(crate) struct Secretbox(Zeroizing<[u8; 32]>);

impl Secretbox {
    /// `None` if the key has another length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Some(Self(Zeroizing::new(key.try_into().ok()?)))
    }

    /// The stream for a nonce, and the authenticator that comes first in it.
    fn begin(&self, nonce: &[u8; NONCE]) -> (XSalsa20, Poly1305) {
        let mut stream = XSalsa20::new((&*self.0).into(), nonce.into());
        let mut key = Zeroizing::new([0; TAG_KEY]);
        stream.apply_keystream(&mut *key);
        (stream, Poly1305::new((&*key).into()))
    }

    pub(crate) fn seal(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let mut nonce = [0; NONCE];
        rand::fill(&mut nonce).map_err(|_| SealError::Random)?;
        let (mut stream, authenticator) = self.begin(&nonce);
        out.extend_from_slice(&nonce);
        let tag_at = out.len();
        out.extend_from_slice(&[0; TAG]);
        out.extend_from_slice(plain);
        stream.apply_keystream(&mut out[tag_at + TAG..]);
        let tag = authenticator.compute_unpadded(&out[tag_at + TAG..]);
        out[tag_at..tag_at + TAG].copy_from_slice(&tag);
        Ok(())
    }

    pub(crate) fn open(&self, stored: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (nonce, rest) = stored.split_first_chunk::<NONCE>().ok_or(OpenError::TooShort)?;
        let (tag, sealed) = rest.split_first_chunk::<TAG>().ok_or(OpenError::TooShort)?;
        let (mut stream, authenticator) = self.begin(nonce);
        let expected = authenticator.compute_unpadded(sealed);
        aws_lc_rs::constant_time::verify_slices_are_equal(&expected, tag)
            .map_err(|_| OpenError::Secretbox)?;
        let mut plain = sealed.to_vec();
        stream.apply_keystream(&mut plain);
        Ok(plain)
    }
}
