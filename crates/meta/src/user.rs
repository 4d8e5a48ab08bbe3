//! Users as the server knows them.

use std::collections::BTreeMap;

/// Who makes a request, as an authenticator found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name; unique among the users of all authenticators.
    pub name: String,
    /// What tells users of one name apart over time; often empty.
    pub uid: String,
    /// The groups the user belongs to.
    pub groups: Vec<String>,
    /// What else the authenticator knows, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// The name of whoever presents no credentials.
    pub const ANONYMOUS: &'static str = "system:anonymous";
    /// The group of everybody whose credentials were accepted.
    pub const AUTHENTICATED: &'static str = "system:authenticated";
    /// The group of everybody without credentials.
    pub const UNAUTHENTICATED: &'static str = "system:unauthenticated";
    /// The group whose members may do everything.
    pub const PRIVILEGED: &'static str = "system:masters";
    /// The key of [`UserInfo::extra`] that names the credential used.
    pub const CREDENTIAL_ID: &'static str = "authentication.kubernetes.io/credential-id";

    /// Whoever presents no credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        let (name, group) = (Self::ANONYMOUS.to_owned(), Self::UNAUTHENTICATED.to_owned());
        Self { name, groups: vec![group], ..Self::default() }
    }

    /// The user as one whose credentials were accepted: in the group of those, unless it says otherwise.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.is_classified() {
            self.groups.push(Self::AUTHENTICATED.to_owned());
        }
        self
    }

    /// Whether it is already said if the user's credentials were accepted.
    #[must_use]
    pub fn is_classified(&self) -> bool {
        self.name == Self::ANONYMOUS || self.is_in(Self::AUTHENTICATED) || self.is_in(Self::UNAUTHENTICATED)
    }

    /// Whether the user belongs to `group`.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|candidate| candidate == group)
    }

    /// Whether nobody knows who this is.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.name == Self::ANONYMOUS || self.is_in(Self::UNAUTHENTICATED)
    }
}
