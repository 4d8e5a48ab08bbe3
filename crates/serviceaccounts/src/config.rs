use std::{collections::HashSet, time::Duration};

use crate::Error;

/// What an operator decides about the tokens of service accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Who signs: the first is the one of new tokens, all are accepted.
    pub issuers: Vec<String>,
    /// Whom tokens are for if they do not say, and one of whom they must be for here. The issuers, if empty.
    pub api_audiences: Vec<String>,
    /// How long a token can be asked for.
    pub max_expiration: Option<Duration>,
    /// Whether tokens that pods get without asking live for a year, because old clients do not read them again.
    pub extend_expiration: bool,
    /// Whether tokens in Secrets are compared with the Secrets. Others are always looked up.
    pub lookup: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            issuers: vec!["https://kubernetes.default.svc.cluster.local".to_owned()],
            api_audiences: Vec::new(),
            max_expiration: None,
            extend_expiration: true,
            lookup: true,
        }
    }
}

impl Config {
    /// Checks it, and fills in what follows.
    ///
    /// # Errors
    ///
    /// [`Error::Issuer`], [`Error::MaxExpiration`].
    pub fn complete(mut self) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        for issuer in &self.issuers {
            if issuer.is_empty() {
                return Err(Error::Issuer("should not be an empty string".to_owned()));
            }
            if !seen.insert(issuer) {
                return Err(Error::Issuer(format!("{issuer:?} is already specified")));
            }
        }
        if self.issuers.is_empty() {
            return Err(Error::Issuer("is a required flag".to_owned()));
        }
        let bounds = Duration::from_secs(60 * 60)..=Duration::from_secs(1 << 32);
        if self.max_expiration.is_some_and(|max| !bounds.contains(&max)) {
            return Err(Error::MaxExpiration);
        }
        if self.api_audiences.is_empty() {
            self.api_audiences.clone_from(&self.issuers);
        }
        Ok(self)
    }

    /// The issuer of new tokens.
    pub(crate) fn issuer(&self) -> &str {
        self.issuers.first().map_or("", String::as_str)
    }
}
