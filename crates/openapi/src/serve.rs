//! Answering requests for documents.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use concord_endpoints::ApiSet;
use concord_server::{
    Handler, Request, RequestContext as _, Response, Served, full, not_found, text, with_body,
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY},
};
use jiff::{Timestamp, ToSpan as _, fmt::rfc2822::DateTimePrinter, tz::TimeZone};

use crate::publication::{Publication, Published, url};

/// Where the index is.
const ROOT: &str = "/openapi/v3";

/// Answers requests below `/openapi` with documents about what is served at the moment.
pub struct OpenApi {
    set: Box<dyn Fn() -> Arc<ApiSet> + Send + Sync>,
    release: Arc<str>,
    current: ArcSwapOption<Publication>,
}

/// What a request asks for, and what it knows already.
struct Wanted<'a> {
    /// `None` for the index.
    key: Option<&'a str>,
    hash: Option<String>,
    headers: &'a HeaderMap,
}

impl OpenApi {
    /// Publishes what `set` gives. `release` is the version of the API as a whole, such as `1.36`.
    pub fn new(set: impl Fn() -> Arc<ApiSet> + Send + Sync + 'static, release: &str) -> Self {
        Self { set: Box::new(set), release: release.into(), current: ArcSwapOption::empty() }
    }

    /// The paths for the index of the server.
    pub fn paths() -> [String; 1] {
        [ROOT.to_owned()]
    }

    fn publication(&self) -> Arc<Publication> {
        let set = (self.set)();
        let current = self.current.load_full();
        if let Some(current) = current.as_ref().filter(|current| current.is_of(&set)) {
            return current.clone();
        }
        // Whoever is here at the same time makes the same; one of the two is kept.
        let publication = Arc::new(Publication::new(set, self.release.clone(), current.as_deref()));
        self.current.store(Some(publication.clone()));
        publication
    }

    /// The index or the document of that key; `None` if there is no such document.
    async fn find(&self, key: Option<&str>) -> Option<serde_json::Result<Published>> {
        let publication = self.publication();
        let leaf = match key {
            Some(key) => Some(publication.leaf(key)?.clone()),
            None => None,
        };
        let known = leaf.as_ref().map_or_else(|| publication.known_index(), |leaf| leaf.known());
        if let Some(known) = known {
            return Some(Ok(known));
        }
        // It takes milliseconds, the index more of them, during which no other request should have to wait.
        let making = tokio::task::spawn_blocking(move || match leaf {
            Some(leaf) => leaf.published(&publication),
            None => publication.index(),
        });
        Some(making.await.unwrap_or_else(|error| Err(serde::ser::Error::custom(error))))
    }

    async fn answer(&self, wanted: &Wanted<'_>) -> Response {
        match self.find(wanted.key).await {
            None => not_found(),
            Some(_) if !accepts_json(wanted.headers) => {
                let mut response = Response::new(full(""));
                *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
                response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
                response
            }
            Some(Ok(published)) => wanted.respond(&published),
            Some(Err(error)) => {
                tracing::error!(%error, "An OpenAPI document could not be made.");
                text(StatusCode::INTERNAL_SERVER_ERROR, "the document could not be made\n")
            }
        }
    }
}

#[async_trait]
impl Handler for OpenApi {
    async fn handle(&self, request: Request) -> Response {
        let info = request.info();
        let Some(rest) = info.path.strip_prefix(ROOT) else { return not_found() };
        let key = match rest.strip_prefix('/') {
            Some(key) => Some(key),
            None if rest.is_empty() => None,
            None => return not_found(),
        };
        let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
        let hash = query.into_iter().find(|(name, _)| name == "hash").map(|(_, hash)| hash.into_owned());
        let hash = hash.filter(|hash| !hash.is_empty());
        let mut response = self.answer(&Wanted { key, hash, headers: request.headers() }).await;
        response.extensions_mut().insert(Served);
        response
    }
}

impl Wanted<'_> {
    fn respond(&self, published: &Published) -> Response {
        let mut response = with_body(StatusCode::OK, "application/json", published.bytes.clone());
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        let etag = format!("\"{}\"", published.hash);
        if let Ok(value) = HeaderValue::from_str(&etag) {
            headers.insert(ETAG, value);
        }
        match (self.key, &self.hash) {
            (Some(key), Some(hash)) if **hash != *published.hash => {
                return redirect(response, &url(key, &published.hash));
            }
            (Some(_), Some(_)) => keep_for_ever(headers),
            _ => {}
        }
        if knows(self.headers, &etag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = full("");
        }
        response
    }
}

/// A document that has changed since the client read the index is somewhere else.
fn redirect(mut response: Response, location: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(location) else { return not_found() };
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    *response.body_mut() = full("");
    response.headers_mut().insert(LOCATION, location);
    response
}

/// What an address with a hash gives never changes.
fn keep_for_ever(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    let expires = Timestamp::now().to_zoned(TimeZone::UTC).checked_add(1.year());
    let expires = expires.and_then(|at| DateTimePrinter::new().timestamp_to_rfc9110_string(&at.timestamp()));
    if let Some(expires) = expires.ok().and_then(|text| HeaderValue::from_str(&text).ok()) {
        headers.insert(EXPIRES, expires);
    }
}

/// Whether the client has the document of that tag. Weak and strong tags are the same to a reader.
fn knows(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = tags.flat_map(|tags| tags.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

/// Whether the client takes JSON, the only form there is.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut clauses =
        headers.get_all(ACCEPT).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let takes = |clause: &[u8]| {
        let media_type = clause.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        [&b"application/json"[..], b"application/*", b"*/*"]
            .iter()
            .any(|of| media_type.eq_ignore_ascii_case(of))
    };
    let is_blank = |clause: &[u8]| clause.trim_ascii().is_empty();
    headers.get_all(ACCEPT).iter().all(|value| is_blank(value.as_bytes())) || clauses.any(takes)
}
