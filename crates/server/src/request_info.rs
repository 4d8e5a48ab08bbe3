//! What a request asks for, read from its method, path and query alone.

use std::borrow::Cow;

use concord_meta::{fields, go, labels, names::path_segment};
use http::{Method, Uri};
use percent_encoding::percent_decode_str;

/// Segments that are verbs, in the deprecated paths `/api/v1/watch/...` and `/api/v1/proxy/...`.
const SPECIAL_VERBS: [&str; 2] = ["proxy", "watch"];
/// What below a namespace is the namespace's own; everything else there is a namespaced resource.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];
/// Verbs for which selectors count.
const VERBS_WITH_SELECTORS: [&str; 3] = ["list", "watch", "deletecollection"];
/// Requests that last as long as the client likes.
const LONG_RUNNING_VERBS: [&str; 2] = ["watch", "proxy"];
const LONG_RUNNING_SUBRESOURCES: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

/// What a request asks for: a resource (`/api/v1/namespaces/a/pods/b`) or any other path (`/healthz`).
///
/// ```
/// use concord_server::RequestInfo;
/// let uri = "/apis/apps/v1/namespaces/a/deployments/b/scale".parse().unwrap();
/// let info = RequestInfo::new(&http::Method::PUT, &uri).unwrap();
/// assert_eq!((&*info.verb, &*info.api_group, &*info.resource), ("update", "apps", "deployments"));
/// assert_eq!((&*info.namespace, &*info.name, &*info.subresource), ("a", "b", "scale"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the path is that of a resource. If not, only `path` and `verb` are certain.
    pub is_resource_request: bool,
    /// The path, percent-decoded. Bytes that are not UTF-8 became U+FFFD: no name contains them.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection` or `proxy`; for
    /// other paths the method in lower case; empty for a method that resources do not know.
    pub verb: Cow<'static, str>,
    /// `api` or `apis`.
    pub api_prefix: String,
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The API version.
    pub api_version: String,
    /// The namespace; for a Namespace object also its name.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The object's name, from the path or from a field selector that demands one; or empty.
    pub name: String,
    /// The segments from the resource on: resource, name, subresource, and whatever follows.
    pub parts: Vec<String>,
    /// The `fieldSelector` as written; only for verbs that know selectors.
    pub field_selector: String,
    /// The `labelSelector` as written; only for verbs that know selectors.
    pub label_selector: String,
    /// The `limit` of a list, if it has one.
    pub limit: Option<u64>,
}

/// Why nothing can be said about a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestInfoError {
    /// A `%` in the path is not followed by two hexadecimal digits.
    #[error("the path has an invalid escape")]
    BadEscape,
    /// A deprecated verb path ends where the resource should begin.
    #[error("unable to determine kind and namespace from url, {0}")]
    Undetermined(String),
}

impl RequestInfo {
    /// Reads what `method` and `uri` ask for.
    ///
    /// # Errors
    ///
    /// [`RequestInfoError`]; most nonsense is no error but a path that nobody serves.
    pub fn new(method: &Method, uri: &Uri) -> Result<Self, RequestInfoError> {
        let path = decode(uri.path())?;
        let mut info = Self { verb: lower_case(method), ..Self::default() };
        info.read_path(&path, method).ok_or_else(|| RequestInfoError::Undetermined(uri.to_string()))?;
        info.path = path;
        info.refine_verb(uri.query().unwrap_or_default());
        Ok(info)
    }

    /// `None` for a verb path without a resource.
    fn read_path(&mut self, path: &str, method: &Method) -> Option<()> {
        let trimmed = path.trim_matches('/');
        let mut parts = trimmed.split('/');
        let prefix = parts.next().unwrap_or_default();
        // The prefix, the group if there is one, the version and the beginning of a resource.
        let least = match prefix {
            "api" => 3,
            "apis" => 4,
            _ => return Some(()),
        };
        let count = trimmed.split('/').count();
        if count >= 3 {
            prefix.clone_into(&mut self.api_prefix);
        }
        if count < least {
            return Some(());
        }
        if prefix == "apis" {
            parts.next()?.clone_into(&mut self.api_group);
        }
        parts.next()?.clone_into(&mut self.api_version);
        self.is_resource_request = true;
        let mut parts: Vec<&str> = parts.collect();
        self.verb = match SPECIAL_VERBS.iter().find(|verb| parts.first() == Some(verb)) {
            Some(_) if parts.len() < 2 => return None,
            Some(verb) => {
                parts.remove(0);
                Cow::Borrowed(verb)
            }
            None => Cow::Borrowed(verb_of(method)),
        };
        self.read_parts(&parts);
        Some(())
    }

    fn read_parts(&mut self, mut parts: &[&str]) {
        if let ["namespaces", namespace, after @ ..] = parts {
            (*namespace).clone_into(&mut self.namespace);
            if after.first().is_some_and(|segment| !NAMESPACE_SUBRESOURCES.contains(segment)) {
                parts = after;
            }
        }
        let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
        self.resource = part(0);
        self.name = part(1);
        // Everything below a proxied object is the object's business.
        if self.verb != "proxy" {
            self.subresource = part(2);
        }
        self.parts = parts.iter().map(|&part| part.to_owned()).collect();
    }

    /// Tells lists and watches from gets and collections from objects.
    fn refine_verb(&mut self, query: &str) {
        let by_path = SPECIAL_VERBS.contains(&&*self.verb);
        if !self.is_resource_request || !self.name.is_empty() {
            // A name in the path leaves the verb as it is, and selectors mean nothing then.
            return;
        }
        let query = Query::parse(query);
        match &*self.verb {
            "get" => {
                self.verb = Cow::Borrowed(if query.is_watch() { "watch" } else { "list" });
                self.name = query.selected_name().unwrap_or_default();
                self.limit =
                    query.first("limit").and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0);
            }
            "delete" => self.verb = Cow::Borrowed("deletecollection"),
            _ => {}
        }
        // The deprecated paths do not treat selectors alike, so nobody is authorized by them there.
        if !by_path && VERBS_WITH_SELECTORS.contains(&&*self.verb) {
            self.field_selector = query.first("fieldSelector").unwrap_or_default().to_owned();
            self.label_selector = query.first("labelSelector").unwrap_or_default().to_owned();
        }
    }

    /// Whether the request may last: neither deadlines nor the limit on requests in flight apply.
    #[must_use]
    pub fn is_long_running(&self) -> bool {
        LONG_RUNNING_VERBS.contains(&&*self.verb)
            || self.is_resource_request && LONG_RUNNING_SUBRESOURCES.contains(&&*self.subresource)
    }

    /// Whether the request only reads: it counts against the limit for reads.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(&*self.verb, "get" | "list" | "watch")
    }
}

fn decode(path: &str) -> Result<String, RequestInfoError> {
    if !path.contains('%') {
        return Ok(path.to_owned());
    }
    let digits = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count();
    if path.split('%').skip(1).any(|after| digits(after) < 2) {
        return Err(RequestInfoError::BadEscape);
    }
    Ok(percent_decode_str(path).decode_utf8_lossy().into_owned())
}

fn lower_case(method: &Method) -> Cow<'static, str> {
    match *method {
        Method::GET => Cow::Borrowed("get"),
        Method::HEAD => Cow::Borrowed("head"),
        Method::POST => Cow::Borrowed("post"),
        Method::PUT => Cow::Borrowed("put"),
        Method::PATCH => Cow::Borrowed("patch"),
        Method::DELETE => Cow::Borrowed("delete"),
        Method::OPTIONS => Cow::Borrowed("options"),
        ref other => Cow::Owned(other.as_str().to_ascii_lowercase()),
    }
}

fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// The query parameters, decoded; of several with one name the first counts.
struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    fn parse(query: &'a str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).collect())
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    fn is_watch(&self) -> bool {
        self.first("watch").is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// The name the field selector demands, unless any of the list's parameters cannot be read: then the
    /// request will be refused, and what it was about is not certain.
    fn selected_name(&self) -> Option<String> {
        let selector = fields::Selector::parse(self.first("fieldSelector")?).ok()?;
        let name = selector.requires_exact_match("metadata.name")?;
        let number = |name| self.first(name).is_none_or(|value| go::parse_int(value).is_ok());
        let readable = number("limit")
            && number("timeoutSeconds")
            && self.first("labelSelector").is_none_or(|text| labels::Selector::parse(text).is_ok());
        (readable && path_segment(name).is_empty()).then(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests;
