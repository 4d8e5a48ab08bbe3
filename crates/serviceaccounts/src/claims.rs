//! What tokens say.

use serde_json::{Map, Value, json};

/// The issuer of the tokens in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// The member that holds everything that is not part of RFC 7519.
pub(crate) const PRIVATE: &str = "kubernetes.io";

/// The clocks of servers differ: times are believed if they are off by no more than this, in seconds. Objects that are
/// being deleted count as there for as long.
pub(crate) const LEEWAY: i64 = 60;

/// The name of an account as a user.
pub(crate) fn username(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// An object that a token is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    /// Empty for a node that did not exist when the token was made.
    pub(crate) uid: String,
}

impl Reference {
    fn to_json(&self) -> Value {
        let members = [("name", &self.name), ("uid", &self.uid)];
        let members = members.into_iter().filter(|(_, text)| !text.is_empty());
        members.map(|(name, text)| (name.to_owned(), Value::from(text.as_str()))).collect()
    }

    fn from_json(object: &Map<String, Value>, member: &str) -> Option<Self> {
        let found = object.get(member)?.as_object()?;
        Some(Self { name: text(found, "name"), uid: text(found, "uid") })
    }
}

/// The claims of RFC 7519 that tokens have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) subject: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) id: String,
    /// All times are seconds since 1970.
    pub(crate) issued_at: Option<i64>,
    pub(crate) not_before: Option<i64>,
    pub(crate) expires: Option<i64>,
}

impl Claims {
    /// What the token is called where it is used, and where it is written down that it was issued.
    pub(crate) fn credential_id(&self) -> String {
        format!("JTI={}", self.id)
    }

    /// Reads them; `None` if one of them is not of its type.
    pub(crate) fn from_json(payload: &Map<String, Value>) -> Option<Self> {
        Some(Self {
            subject: text(payload, "sub"),
            audiences: audiences(payload.get("aud"))?,
            id: text(payload, "jti"),
            issued_at: date(payload.get("iat"))?,
            not_before: date(payload.get("nbf"))?,
            expires: date(payload.get("exp"))?,
        })
    }

    /// Whether the token can be used at this moment.
    pub(crate) fn check_time(&self, now: i64) -> Result<(), &'static str> {
        let (early, late) = (now.saturating_add(LEEWAY), now.saturating_sub(LEEWAY));
        if self.not_before.is_some_and(|not_before| early < not_before) {
            return Err("service account token is not valid yet");
        }
        if self.expires.is_some_and(|expires| late > expires) {
            return Err("service account token has expired");
        }
        if self.issued_at.is_some_and(|issued_at| early < issued_at) {
            return Err("service account token is issued in the future");
        }
        Ok(())
    }
}

/// What a token of a TokenRequest is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) namespace: String,
    pub(crate) account: Reference,
    pub(crate) pod: Option<Reference>,
    pub(crate) secret: Option<Reference>,
    pub(crate) node: Option<Reference>,
    /// When a token that lives longer than was asked for should have been replaced.
    pub(crate) warn_after: Option<i64>,
}

impl Bound {
    /// The claims of such a token, but for its issuer.
    pub(crate) fn to_json(&self, claims: &Claims) -> Map<String, Value> {
        let mut private = Map::new();
        private.insert("namespace".to_owned(), self.namespace.as_str().into());
        private.insert("serviceaccount".to_owned(), self.account.to_json());
        let bound = [("pod", &self.pod), ("secret", &self.secret), ("node", &self.node)];
        for (name, reference) in bound {
            if let Some(reference) = reference {
                private.insert(name.to_owned(), reference.to_json());
            }
        }
        if let Some(warn_after) = self.warn_after {
            private.insert("warnafter".to_owned(), warn_after.into());
        }
        let mut payload = Map::new();
        payload.insert("sub".to_owned(), claims.subject.as_str().into());
        payload.insert("aud".to_owned(), claims.audiences.clone().into());
        payload.insert("jti".to_owned(), claims.id.as_str().into());
        let times = [("iat", claims.issued_at), ("nbf", claims.not_before), ("exp", claims.expires)];
        for (name, time) in times {
            if let Some(time) = time {
                payload.insert(name.to_owned(), time.into());
            }
        }
        payload.insert(PRIVATE.to_owned(), private.into());
        payload
    }

    pub(crate) fn from_json(payload: &Map<String, Value>) -> Self {
        let none = Map::new();
        let private = payload.get(PRIVATE).and_then(Value::as_object).unwrap_or(&none);
        Self {
            namespace: text(private, "namespace"),
            account: Reference::from_json(private, "serviceaccount").unwrap_or_default(),
            pod: Reference::from_json(private, "pod"),
            secret: Reference::from_json(private, "secret"),
            node: Reference::from_json(private, "node"),
            warn_after: private.get("warnafter").and_then(Value::as_i64),
        }
    }
}

/// What a token in a Secret is about. It has no end: it goes with the Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Legacy {
    pub(crate) namespace: String,
    pub(crate) account: Reference,
    pub(crate) secret: String,
}

impl Legacy {
    const NAMESPACE: &'static str = "kubernetes.io/serviceaccount/namespace";
    const ACCOUNT_NAME: &'static str = "kubernetes.io/serviceaccount/service-account.name";
    const ACCOUNT_UID: &'static str = "kubernetes.io/serviceaccount/service-account.uid";
    const SECRET: &'static str = "kubernetes.io/serviceaccount/secret.name";

    /// The claims of such a token, but for its issuer.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let payload = json!({
            "sub": username(&self.namespace, &self.account.name),
            Self::NAMESPACE: self.namespace,
            Self::ACCOUNT_NAME: self.account.name,
            Self::ACCOUNT_UID: self.account.uid,
            Self::SECRET: self.secret,
        });
        payload.as_object().cloned().unwrap_or_default()
    }

    pub(crate) fn from_json(payload: &Map<String, Value>) -> Self {
        Self {
            namespace: text(payload, Self::NAMESPACE),
            account: Reference {
                name: text(payload, Self::ACCOUNT_NAME),
                uid: text(payload, Self::ACCOUNT_UID),
            },
            secret: text(payload, Self::SECRET),
        }
    }

    /// Whether everything is there that must be.
    pub(crate) fn check(&self, subject: &str) -> Result<(), &'static str> {
        let required = [
            (subject, "sub claim is missing"),
            (self.namespace.as_str(), "namespace claim is missing"),
            (self.secret.as_str(), "secretName claim is missing"),
            (self.account.name.as_str(), "serviceAccountName claim is missing"),
            (self.account.uid.as_str(), "serviceAccountUID claim is missing"),
        ];
        if let Some((_, missing)) = required.into_iter().find(|(claim, _)| claim.is_empty()) {
            return Err(missing);
        }
        if subject != username(&self.namespace, &self.account.name) {
            return Err("sub claim is invalid");
        }
        Ok(())
    }
}

fn text(object: &Map<String, Value>, name: &str) -> String {
    object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// One, several or none.
fn audiences(claim: Option<&Value>) -> Option<Vec<String>> {
    match claim {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(one)) => Some(vec![one.clone()]),
        Some(Value::Array(several)) => several.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    }
}

/// Seconds since 1970, if there are any; fractions are dropped.
#[expect(clippy::option_option, reason = "nothing said, and nothing that can be read, are two things")]
fn date(claim: Option<&Value>) -> Option<Option<i64>> {
    match claim {
        None | Some(Value::Null) => Some(None),
        #[expect(clippy::cast_possible_truncation, reason = "a cast from a float stops at the ends")]
        Some(Value::Number(number)) => {
            number.as_i64().or_else(|| number.as_f64().map(|float| float as i64)).map(Some)
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
