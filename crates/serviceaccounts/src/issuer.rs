use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::{Map, Value};

use crate::{
    Error, LEGACY_ISSUER, SigningKey,
    claims::{Bound, Claims, Legacy, Reference},
    jwt,
};

/// Signs tokens, with one key at a time and under one name.
pub struct TokenGenerator {
    key: ArcSwap<SigningKey>,
    issuer: String,
}

impl fmt::Debug for TokenGenerator {
    /// Without the key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.load();
        let key = key.public().id();
        out.debug_struct("TokenGenerator")
            .field("issuer", &self.issuer)
            .field("key", &key)
            .finish_non_exhaustive()
    }
}

impl TokenGenerator {
    /// Signs with this key under this name.
    pub fn new(key: SigningKey, issuer: &str) -> Self {
        Self { key: ArcSwap::from_pointee(key), issuer: issuer.to_owned() }
    }

    /// Signs with another key from now on. Whoever verifies tokens has to know it before.
    pub fn replace_key(&self, key: SigningKey) {
        self.key.store(Arc::new(key));
    }

    /// The token that goes into a Secret: for the account of that name and uid, for as long as the Secret exists.
    ///
    /// # Errors
    ///
    /// [`Error::Sign`].
    pub fn secret_token(
        &self,
        namespace: &str,
        account: &str,
        account_uid: &str,
        secret: &str,
    ) -> Result<String, Error> {
        let account = Reference { name: account.to_owned(), uid: account_uid.to_owned() };
        let claims = Legacy { namespace: namespace.to_owned(), account, secret: secret.to_owned() };
        self.sign(claims.to_json(), LEGACY_ISSUER)
    }

    /// A token of limited life.
    pub(crate) fn bound_token(&self, claims: &Claims, bound: &Bound) -> Result<String, Error> {
        self.sign(bound.to_json(claims), &self.issuer)
    }

    fn sign(&self, mut payload: Map<String, Value>, issuer: &str) -> Result<String, Error> {
        payload.insert("iss".to_owned(), issuer.into());
        jwt::sign(&self.key.load(), &Value::Object(payload))
    }
}
