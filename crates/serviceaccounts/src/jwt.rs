//! JSON Web Tokens in their compact form: `header.payload.signature`, each part in base64url.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use concord_codec::{FieldValidation, Options, decode};
use serde_json::{Map, Value, json};

use crate::{Error, PublicKey, SigningKey};

/// Longer ones are not ours: ours have a few hundred bytes.
const MAX_BYTES: usize = 64 * 1024;

/// A token that has not been verified. Nothing in it is true yet.
pub(crate) struct Unverified<'t> {
    /// What is signed.
    message: &'t str,
    signature: Vec<u8>,
    header: Map<String, Value>,
    payload: Map<String, Value>,
}

impl<'t> Unverified<'t> {
    /// Takes a token apart; `None` if it is not of this form.
    pub(crate) fn parse(token: &'t str) -> Option<Self> {
        if token.len() > MAX_BYTES {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, payload) = message.split_once('.')?;
        Some(Self {
            message,
            signature: BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?,
            header: object(header)?,
            payload: object(payload)?,
        })
    }

    /// Who says that it signed the token.
    pub(crate) fn issuer(&self) -> &str {
        text(&self.payload, "iss")
    }

    /// Whether there is something of this name in the payload.
    pub(crate) fn claims(&self, name: &str) -> bool {
        self.payload.contains_key(name)
    }

    /// The key that the token names; empty if it names none.
    pub(crate) fn key_id(&self) -> &str {
        text(&self.header, "kid")
    }

    /// The payload, if this key signed it in the way in which this key signs. What the token says about its algorithm
    /// is never followed: `none`, or another one than the key's, is refused. So are extensions that must be understood.
    pub(crate) fn verify(&self, key: &PublicKey) -> Option<&Map<String, Value>> {
        let is_its_own = text(&self.header, "alg") == key.algorithm().as_str();
        let understood = !self.header.contains_key("crit") && !self.header.contains_key("b64");
        let verified = is_its_own && understood && key.verifies(self.message.as_bytes(), &self.signature);
        verified.then_some(&self.payload)
    }
}

/// Signs a payload.
pub(crate) fn sign(key: &SigningKey, payload: &Value) -> Result<String, Error> {
    let public = key.public();
    let header = json!({"alg": public.algorithm().as_str(), "kid": public.id()});
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(concord_codec::encode(value));
    let message = format!("{}.{}", encode(&header), encode(payload));
    let signature = key.sign(message.as_bytes())?;
    Ok(format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
}

fn object(part: &str) -> Option<Map<String, Value>> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).ok()?;
    let decoded =
        decode(&bytes, &Options { validation: FieldValidation::Strict, ..Options::default() }).ok()?;
    // A name that is there twice can mean two things.
    decoded.violations.is_empty().then_some(decoded.object)
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
