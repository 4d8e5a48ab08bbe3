use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, request::Parts};
use percent_encoding::percent_decode_str;

use super::{Authenticated, Authenticator, ClientAuthorities, Unauthenticated};
use crate::UserInfo;

/// The headers that every proxy of this kind sends. From anybody else they are lies, so they are never passed on.
const STANDARD: [&str; 3] = ["x-remote-user", "x-remote-uid", "x-remote-group"];
const STANDARD_PREFIX: &str = "x-remote-extra-";

/// The names of the headers by which a proxy says who its client is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHeaderNames {
    /// Where the name of the user is; the first that is not empty counts.
    pub username: Vec<String>,
    /// Where the user's uid is; the first that is not empty counts.
    pub uid: Vec<String>,
    /// Where the user's groups are; all values of all of them count.
    pub group: Vec<String>,
    /// What the names of headers begin with that say what else is known about the user.
    pub extra_prefix: Vec<String>,
}

/// Why names of headers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestHeaderError {
    /// Something that no header can be called.
    #[error("{0:?} cannot be the name of a header")]
    Name(String),
    /// Whoever forwards requests to other servers says uids by this header only.
    #[error("of the headers for uids one has to be X-Remote-Uid")]
    NoStandardUid,
}

/// Among the extensions of a request: it came over a connection of a proxy that may say whose requests it brings. What only
/// such proxies may say in headers is to be believed only with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontProxied;

/// The names, ready for comparison.
#[derive(Debug, Clone, Default)]
struct Names {
    username: Vec<HeaderName>,
    uid: Vec<HeaderName>,
    group: Vec<HeaderName>,
    /// In lower case, as names of headers are kept.
    extra_prefix: Vec<String>,
}

impl TryFrom<&RequestHeaderNames> for Names {
    type Error = RequestHeaderError;

    fn try_from(names: &RequestHeaderNames) -> Result<Self, RequestHeaderError> {
        let name = |name: &String| {
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| RequestHeaderError::Name(name.clone()))
        };
        let all = |names: &[String]| names.iter().map(name).collect::<Result<Vec<_>, _>>();
        let uid = all(&names.uid)?;
        if !uid.is_empty() && !uid.iter().any(|name| name == STANDARD[1]) {
            return Err(RequestHeaderError::NoStandardUid);
        }
        let prefixes = all(&names.extra_prefix)?;
        Ok(Self {
            username: all(&names.username)?,
            uid,
            group: all(&names.group)?,
            extra_prefix: prefixes.iter().map(|prefix| prefix.as_str().to_owned()).collect(),
        })
    }
}

/// Proxies that say, by headers, who their clients are: those with a certificate of these authorities and one of these
/// names.
pub struct RequestHeader {
    authorities: Arc<ClientAuthorities>,
    allowed_names: Vec<String>,
    names: Names,
}

impl RequestHeader {
    /// Believes clients whose certificate is signed by `authorities` and carries one of `allowed_names`; none of them
    /// means any.
    ///
    /// # Errors
    ///
    /// [`RequestHeaderError`].
    pub fn new(
        authorities: Arc<ClientAuthorities>,
        allowed_names: Vec<String>,
        names: &RequestHeaderNames,
    ) -> Result<Self, RequestHeaderError> {
        Ok(Self { authorities, allowed_names, names: names.try_into()? })
    }

    /// Whose certificates proxies have.
    pub(crate) fn authorities(&self) -> &Arc<ClientAuthorities> {
        &self.authorities
    }

    /// Who the headers say it is.
    fn said(&self, headers: &HeaderMap) -> Option<UserInfo> {
        let first = |names: &[HeaderName]| {
            names.iter().filter_map(|name| headers.get(name)).map(text).find(|value| !value.is_empty())
        };
        let name = first(&self.names.username)?;
        let groups = self.names.group.iter().flat_map(|name| headers.get_all(name)).map(text);
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for prefix in &self.names.extra_prefix {
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    extra.entry(unescape_extra_key(key)).or_default().push(text(value));
                }
            }
        }
        Some(UserInfo {
            name,
            uid: first(&self.names.uid).unwrap_or_default(),
            groups: groups.filter(|group| !group.is_empty()).collect(),
            extra,
        })
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[async_trait]
impl Authenticator for RequestHeader {
    async fn authenticate(&self, request: &mut Parts) -> Authenticated {
        let Some(verified) = self.authorities.verified(request) else { return Ok(None) };
        let proxy = match &*verified {
            Ok(vouched) => &vouched.common_name,
            Err(error) => return Err(error.clone()),
        };
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(proxy) {
            let complaint = format!("x509: subject with cn={proxy} is not in the allowed list");
            return Err(Unauthenticated(complaint));
        }
        let said = self.said(&request.headers).map(Arc::new);
        if said.is_some() {
            request.extensions.insert(FrontProxied);
        }
        Ok(said)
    }
}

/// The headers by which proxies say who their clients are. Nobody further in may see them: whoever did not come through a
/// proxy could say anything, and what a proxy said has been taken note of.
pub(crate) struct IdentityHeaders(Names);

impl IdentityHeaders {
    /// The standard ones, and those of these proxies.
    pub(crate) fn new(proxies: Option<&RequestHeader>) -> Self {
        let mut names = proxies.map(|proxies| proxies.names.clone()).unwrap_or_default();
        names.username.extend(STANDARD.map(HeaderName::from_static));
        names.extra_prefix.push(STANDARD_PREFIX.to_owned());
        Self(names)
    }

    /// Takes all of them away.
    pub(crate) fn strip(&self, headers: &mut HeaderMap) {
        let Names { username, uid, group, extra_prefix } = &self.0;
        for name in username.iter().chain(uid).chain(group) {
            headers.remove(name);
        }
        let is_extra =
            |name: &&HeaderName| extra_prefix.iter().any(|prefix| name.as_str().starts_with(prefix.as_str()));
        let extra: Vec<HeaderName> = headers.keys().filter(is_extra).cloned().collect();
        for name in extra {
            headers.remove(name);
        }
    }
}

/// The key of something known about a user as it was before it became part of a header's name; as it stands if it was
/// never escaped.
pub(crate) fn unescape_extra_key(key: &str) -> String {
    let digits = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count();
    if key.split('%').skip(1).any(|after| digits(after) < 2) {
        return key.to_owned();
    }
    percent_decode_str(key).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests;
