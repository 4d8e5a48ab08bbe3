//! Answering requests for documents.

use std::{ops::ControlFlow, sync::Arc};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use concord_endpoints::ApiSet;
use concord_server::{
    Handler, Request, RequestContext as _, Response, Served, full, not_found, text, with_body,
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, EXPIRES, LOCATION, REFERER, VARY},
};
use jiff::{Timestamp, ToSpan as _, fmt::rfc2822::DateTimePrinter, tz::TimeZone};
use serde_json::{Map, Value};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinError,
};

use crate::{
    annotations::Annotations,
    components::{Definitions, Dialect},
    document::Service,
    everything::Kept,
    extensions::{ExtensionDocumentSource, ExtensionDocuments},
    leaf::{Document, Form},
    negotiate::{content_type, form, knows, takes_gzip},
    packed::{Packed, Recent},
    publication::{Context, Publication, Published, url},
};

/// Where the index is, and the document of version 2.
const V3: &str = "/openapi/v3";
const V2: &str = "/openapi/v2";

/// Answers requests below `/openapi` with documents about what is served at the moment.
pub struct OpenApi {
    set: Box<dyn Fn() -> Arc<ApiSet> + Send + Sync>,
    extensions: Box<ExtensionDocumentSource>,
    context: Arc<Context>,
    current: ArcSwapOption<Publication>,
}

/// What documents are made from, besides the resources.
pub struct Contents {
    /// The version of the API as a whole, such as `1.36`.
    pub release: String,
    /// Gives parts of schemas, such as descriptions, by the names of the definitions they are added to. It is called when
    /// documents are made.
    pub annotations: fn() -> Map<String, Value>,
    /// Gives the `spec` of the CustomResourceDefinition that a resource was made from.
    pub definitions: Box<Definitions>,
    /// What else the server has at paths of its own.
    pub services: Vec<&'static Service>,
}

/// What a request asks for.
enum Wanted<'a> {
    Index,
    Leaf(&'a str),
    Everything,
}

/// What a request says besides.
struct Asked<'a> {
    key: Option<&'a str>,
    hash: Option<String>,
    /// Whether a server of the fleet has sent the client here from an address that it did not know.
    is_sent: bool,
    headers: &'a HeaderMap,
}

/// Why there is no document.
enum Failure {
    NotFound,
    NotAcceptable,
    Internal(String),
}

impl OpenApi {
    /// Publishes what `set` gives.
    pub fn new(set: impl Fn() -> Arc<ApiSet> + Send + Sync + 'static, contents: Contents) -> Self {
        let context = Context {
            release: contents.release,
            annotations: Annotations::new(contents.annotations),
            definitions: contents.definitions,
            services: contents.services,
            recent: Recent::default(),
            whole: Arc::new(Semaphore::new(1)),
            kept: Kept::default(),
        };
        let nothing = Arc::new(ExtensionDocuments::default());
        Self {
            set: Box::new(set),
            extensions: Box::new(move || nothing.clone()),
            context: Arc::new(context),
            current: ArcSwapOption::empty(),
        }
    }

    /// Publishes what other servers say, too.
    #[must_use]
    pub fn with_extensions(
        self,
        extensions: impl Fn() -> Arc<ExtensionDocuments> + Send + Sync + 'static,
    ) -> Self {
        Self { extensions: Box::new(extensions), ..self }
    }

    /// The paths for the index of the server.
    pub fn paths() -> [String; 2] {
        [V2.to_owned(), V3.to_owned()]
    }

    fn publication(&self) -> Arc<Publication> {
        let (set, extensions) = ((self.set)(), (self.extensions)());
        let current = self.current.load_full();
        if let Some(current) = current.as_ref().filter(|current| current.is_of(&set, &extensions)) {
            return current.clone();
        }
        // Whoever is here at the same time makes the same; one of the two is kept.
        let publication =
            Arc::new(Publication::new(set, extensions, self.context.clone(), current.as_deref()));
        self.current.store(Some(publication.clone()));
        publication
    }

    async fn answer(&self, wanted: &Wanted<'_>, asked: &Asked<'_>) -> Result<Response, Failure> {
        let mut publication = self.publication();
        // What is about all documents is made by one at a time, and from what there is when it is their turn: however fast
        // things change, nothing is made that nobody is told.
        let is_made = match wanted {
            Wanted::Index => publication.known_index().is_some(),
            Wanted::Leaf(_) => true,
            Wanted::Everything => form(asked.headers, Dialect::V2).is_none_or(|form| {
                let is_known = |hash: &str| knows(asked.headers, &tag(hash, form, false));
                let known = publication.known_everything();
                known.is_some_and(|known| known.has(form) || is_known(known.hash()))
            }),
        };
        if !is_made {
            let turn = self.context.whole.clone().acquire_owned().await.map_err(Failure::internal)?;
            publication = self.publication();
            let index = matches!(wanted, Wanted::Index);
            let making = make_whole(publication.clone(), index, asked.headers.clone(), turn);
            // In a task of its own: if the client gave up, the next one would begin anew beside what goes on.
            tokio::spawn(making).await.flatten().map_err(Failure::internal)?;
        }
        match wanted {
            Wanted::Index => {
                let index = publication.index().await.map_err(Failure::internal)?;
                Ok(asked.index(&index))
            }
            Wanted::Leaf(key) => {
                let leaf = publication.leaf(key).ok_or(Failure::NotFound)?;
                asked.document(&publication, leaf).await
            }
            Wanted::Everything => asked.everything(&publication).await,
        }
    }
}

/// Makes what is about all documents, the index or what these headers ask for of version 2, and gives up the turn.
async fn make_whole(
    publication: Arc<Publication>,
    index: bool,
    headers: HeaderMap,
    _turn: OwnedSemaphorePermit,
) -> Result<(), JoinError> {
    if index {
        return publication.index().await.map(drop);
    }
    let everything = publication.everything().await?;
    match form(&headers, Dialect::V2) {
        // Who has it can be told so without making it.
        Some(form) if !knows(&headers, &tag(everything.hash(), form, false)) => {
            everything.published(form).await.map(drop)
        }
        _ => Ok(()),
    }
}

#[async_trait]
impl Handler for OpenApi {
    async fn handle(&self, request: Request) -> Response {
        let info = request.info();
        let wanted = match info.path.strip_prefix(V3) {
            Some("") => Wanted::Index,
            Some(rest) if rest.starts_with('/') => Wanted::Leaf(&rest[1..]),
            _ if info.path == V2 => Wanted::Everything,
            _ => return not_found(),
        };
        let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
        let hash = query.into_iter().find(|(name, _)| name == "hash").map(|(_, hash)| hash.into_owned());
        let key = if let Wanted::Leaf(key) = wanted { Some(key) } else { None };
        let hash = hash.filter(|hash| !hash.is_empty() && key.is_some());
        let is_sent = is_sent(request.headers(), &info.path);
        let asked = Asked { key, hash, is_sent, headers: request.headers() };
        let answer = self.answer(&wanted, &asked).await;
        let mut response = answer.unwrap_or_else(|failure| failure.response());
        response.extensions_mut().insert(Served);
        response
    }
}

impl Asked<'_> {
    fn index(&self, index: &Published) -> Response {
        let gzip = takes_gzip(self.headers);
        let body = if gzip { index.packed.gzip() } else { index.bytes.clone() };
        let mut response = with_body(StatusCode::OK, "application/json", body);
        if gzip {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let tag = tag(&index.hash, Form::Json, gzip);
        set_tag(response.headers_mut(), &tag);
        self.unless_known(response, &tag)
    }

    async fn document(
        &self,
        publication: &Arc<Publication>,
        document: &Arc<Document>,
    ) -> Result<Response, Failure> {
        let dialect = Dialect::V3;
        let form = form(self.headers, dialect).ok_or(Failure::NotAcceptable)?;
        let replaced = self.hash.as_ref().filter(|_| form == Form::Json);
        let replaced = replaced.and_then(|hash| Some((document.replaced(hash)?.clone(), hash)));
        let (packed, hash) = match (replaced, document.known_hash()) {
            (Some((packed, hash)), _) => (Some(packed), Arc::from(hash.as_str())),
            // Who has the document, or an old address, can be told so without making it.
            (None, Some(hash)) => (None, hash),
            (None, None) => {
                let (packed, hash) =
                    document.published(form, publication).await.map_err(Failure::internal)?;
                (Some(packed), hash)
            }
        };
        let mut response = match self.begin(&hash, form, dialect) {
            ControlFlow::Continue(response) => response,
            ControlFlow::Break(response) => return Ok(response),
        };
        let packed = match packed {
            Some(packed) => packed,
            None => {
                let (packed, made) =
                    document.published(form, publication).await.map_err(Failure::internal)?;
                if made != hash {
                    // Nobody may take it for what the hash is of, nor keep it.
                    response = unhashed(&made, form, dialect, takes_gzip(self.headers));
                }
                packed
            }
        };
        fill(&mut response, packed, takes_gzip(self.headers)).await?;
        Ok(response)
    }

    async fn everything(&self, publication: &Arc<Publication>) -> Result<Response, Failure> {
        let (dialect, gzip) = (Dialect::V2, takes_gzip(self.headers));
        let form = form(self.headers, dialect).ok_or(Failure::NotAcceptable)?;
        let everything = publication.everything().await.map_err(Failure::internal)?;
        let mut response = match self.begin(everything.hash(), form, dialect) {
            ControlFlow::Continue(response) => response,
            ControlFlow::Break(response) => return Ok(response),
        };
        let sendable = everything.published(form).await.map_err(Failure::internal)?;
        if gzip {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *response.body_mut() = sendable.body(gzip);
        Ok(response)
    }

    /// The answer with the document of that hash, before it has a body; or a whole answer, if there is no need of one.
    fn begin(&self, hash: &str, form: Form, dialect: Dialect) -> ControlFlow<Response, Response> {
        let gzip = takes_gzip(self.headers);
        let mut response = unhashed(hash, form, dialect, gzip);
        let tag = tag(hash, form, gzip);
        match (self.key, &self.hash) {
            // Whoever sent the client here has another document, of another release, and would send it back.
            (Some(_), Some(asked)) if *asked != *hash && self.is_sent => {}
            (Some(key), Some(asked)) if *asked != *hash => {
                return ControlFlow::Break(redirect(response, &url(key, hash)));
            }
            (Some(_), Some(_)) => keep_for_ever(response.headers_mut()),
            _ => {}
        }
        match knows(self.headers, &tag) {
            true => ControlFlow::Break(self.unless_known(response, &tag)),
            false => ControlFlow::Continue(response),
        }
    }

    /// The answer, without what the client has already.
    fn unless_known(&self, mut response: Response, tag: &str) -> Response {
        if knows(self.headers, tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().remove(CONTENT_ENCODING);
            *response.body_mut() = full("");
        }
        response
    }
}

/// The answer with the document of that hash for whoever did not ask for the hash, before it has a body.
fn unhashed(hash: &str, form: Form, dialect: Dialect, gzip: bool) -> Response {
    let mut response = with_body(StatusCode::OK, content_type(form, dialect), Vec::new().into());
    set_tag(response.headers_mut(), &tag(hash, form, gzip));
    response
}

/// What tells this document in this form from all others. Compressed, it has other bytes and the same content.
fn tag(hash: &str, form: Form, gzip: bool) -> String {
    let weak = if gzip { "W/" } else { "" };
    match form {
        Form::Json => format!("{weak}\"{hash}\""),
        Form::Protobuf => format!("{weak}\"{hash}-protobuf\""),
    }
}

fn set_tag(headers: &mut HeaderMap, tag: &str) {
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Ok(value) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, value);
    }
}

/// Puts a document into an answer.
async fn fill(response: &mut Response, packed: Packed, gzip: bool) -> Result<(), Failure> {
    if gzip {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        *response.body_mut() = full(packed.gzip());
        return Ok(());
    }
    let plain = tokio::task::spawn_blocking(move || packed.plain()).await.map_err(Failure::internal)?;
    *response.body_mut() = full(plain.map_err(Failure::internal)?);
    Ok(())
}

impl Failure {
    fn internal(error: impl std::fmt::Display) -> Self {
        Self::Internal(error.to_string())
    }

    fn response(self) -> Response {
        match self {
            Self::NotFound => not_found(),
            Self::NotAcceptable => {
                let mut response = Response::new(full(""));
                *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
                response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
                response
            }
            Self::Internal(error) => {
                tracing::error!(error, "An OpenAPI document could not be made.");
                text(StatusCode::INTERNAL_SERVER_ERROR, "the document could not be made\n")
            }
        }
    }
}

/// Whether a client says that it was sent here from the same document with another hash. Go's clients say from where they
/// were sent; of others nothing is known, and they are sent on again.
fn is_sent(headers: &HeaderMap, path: &str) -> bool {
    let from = headers.get(REFERER).and_then(|from| from.to_str().ok()).unwrap_or_default();
    from.split_once('?').is_some_and(|(place, query)| place.ends_with(path) && query.contains("hash="))
}

/// A document that has changed since the client read the index is somewhere else.
fn redirect(mut response: Response, location: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(location) else { return not_found() };
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
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
