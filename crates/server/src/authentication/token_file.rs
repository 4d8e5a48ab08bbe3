use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};

use super::{Authenticated, TokenAuthenticator, csv};
use crate::UserInfo;

/// Why a token file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It is not comma-separated.
    #[error("token file '{path}': {source}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong, and where.
        source: csv::CsvError,
    },
    /// A record has too little to say.
    #[error(
        "token file '{path}' must have at least 3 columns (token, user name, user uid), found {found} in \
         record number {record}"
    )]
    TooFewColumns {
        /// The file.
        path: String,
        /// How many columns there are.
        found: usize,
        /// Which record, from 1.
        record: usize,
    },
}

/// By the digest of the token: how long a comparison takes then tells nothing about a token.
type Users = HashMap<[u8; 32], Arc<UserInfo>>;

/// The tokens of a file: `token,user,uid,"group1,group2"` in each line.
pub struct TokenFile(ArcSwap<Users>);

fn digest_of(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

impl TokenFile {
    /// Reads the text of a file; `path` is for messages. Records without a token are left out, and of
    /// several with one token the last counts; both are logged.
    ///
    /// # Errors
    ///
    /// [`TokenFileError`].
    pub fn parse(text: &str, path: &str) -> Result<Self, TokenFileError> {
        users(text, path).map(|users| Self(ArcSwap::from_pointee(users)))
    }

    /// Replaces all tokens by those of another text. What cannot be read changes nothing.
    ///
    /// # Errors
    ///
    /// [`TokenFileError`].
    pub fn replace(&self, text: &str, path: &str) -> Result<(), TokenFileError> {
        self.0.store(Arc::new(users(text, path)?));
        Ok(())
    }
}

fn users(text: &str, path: &str) -> Result<Users, TokenFileError> {
    let malformed = |source| TokenFileError::Malformed { path: path.to_owned(), source };
    let mut users = HashMap::new();
    for (index, fields) in csv::records(text).map_err(malformed)?.into_iter().enumerate() {
        let record = index + 1;
        let [token, name, uid, rest @ ..] = &fields[..] else {
            let (path, found) = (path.to_owned(), fields.len());
            return Err(TokenFileError::TooFewColumns { path, found, record });
        };
        if token.is_empty() {
            tracing::warn!(file = path, record, "A token file has an empty token.");
            continue;
        }
        let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect());
        let user = UserInfo {
            name: name.clone(),
            uid: uid.clone(),
            groups: groups.unwrap_or_default(),
            ..UserInfo::default()
        };
        if users.insert(digest_of(token), Arc::new(user.authenticated())).is_some() {
            tracing::warn!(file = path, record, "A token file has a token twice.");
        }
    }
    Ok(users)
}

#[async_trait]
impl TokenAuthenticator for TokenFile {
    async fn authenticate_token(&self, token: &str) -> Authenticated {
        Ok(self.0.load().get(&digest_of(token)).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn user(file: &str, token: &str) -> Option<Arc<UserInfo>> {
        let file = TokenFile::parse(file, "t.csv").expect("valid");
        file.authenticate_token(token).await.expect("no error")
    }

    #[tokio::test]
    async fn tokens_name_users_and_groups() {
        let file = "a,alice,1,\"g1,g2\"\nb,bob,2\n,nobody,3\n\nc,carol,4,g3,more\na,alan,5,g4\n";
        for (token, expected) in [
            ("a", Some(("alan", "5", &["g4", "system:authenticated"][..]))),
            ("b", Some(("bob", "2", &["system:authenticated"]))),
            ("c", Some(("carol", "4", &["g3", "system:authenticated"]))),
            ("", None),
            ("d", None),
            ("A", None),
        ] {
            let user = user(file, token).await;
            assert_eq!(user.is_some(), expected.is_some(), "{token}");
            if let (Some(user), Some((name, uid, groups))) = (user, expected) {
                assert_eq!((&*user.name, &*user.uid), (name, uid));
                assert_eq!(user.groups, groups);
            }
        }
    }

    #[tokio::test]
    async fn tokens_are_replaced_all_at_once_or_not_at_all() {
        let file = TokenFile::parse("a,alice,1", "t.csv").expect("valid");
        let name = async |token| {
            let user = file.authenticate_token(token).await.expect("no error");
            user.map(|user| user.name.clone())
        };
        assert!(file.replace("b,bob", "t.csv").is_err());
        assert_eq!((name("a").await.as_deref(), name("b").await), (Some("alice"), None));
        file.replace("b,bob,2", "t.csv").expect("valid");
        assert_eq!((name("a").await, name("b").await.as_deref()), (None, Some("bob")));
    }

    #[test]
    fn what_cannot_be_used_is_explained() {
        for (text, expected) in [
            (
                "a,b,c\n\na,b\n",
                "token file 't.csv' must have at least 3 columns (token, user name, user uid), found 2 in \
                 record number 2",
            ),
            (
                "a,b,c\na,\"b\n",
                "token file 't.csv': parse error on line 3, column 1: extraneous or missing \" in quoted-field",
            ),
        ] {
            let error = TokenFile::parse(text, "t.csv").err().expect("refused");
            assert_eq!(error.to_string(), expected, "{text:?}");
        }
        assert!(TokenFile::parse("", "t.csv").is_ok());
    }
}
