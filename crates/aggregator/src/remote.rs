//! Connections to other servers, and what is asked of them on this server's own behalf.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use concord_forward::{Connector, Dial, ForwardError, Io};
use concord_meta::go::quote;
use concord_pki::{ClientIdentity, Trust, client_tls};
use concord_server::{Body, BoxError, Request, full};
use concord_webhook::{InvalidConfig, Resolver, ServiceReference, dial_service, reason};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::HeaderName, uri::Authority};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::time::timeout;

use crate::service::Backend;

/// Those who may do everything.
pub(crate) const MASTERS: &[&str] = &["system:masters"];

/// How long a connection may take to be there. Upstream has 30 seconds; a client waits for that long then.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");

/// What another server is asked for.
pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    /// As whom, in upstream's words; those in the group of masters may read everything.
    pub(crate) user: &'static str,
    pub(crate) groups: &'static [&'static str],
    pub(crate) accept: &'static str,
    /// The tag of what is known already.
    pub(crate) known: Option<&'a str>,
    /// How long it all may take, to the last byte of the answer.
    pub(crate) timeout: Duration,
    /// How long the answer may be.
    pub(crate) limit: usize,
}

/// An answer that is all there.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why there is none. The texts are Go's.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum AskError {
    #[error("{verb} {}: {reason}", quote(url))]
    Transport { verb: &'static str, url: String, reason: String },
    #[error(
        "{verb} {}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        quote(url)
    )]
    Timeout { verb: &'static str, url: String },
    #[error("the answer to {url} is longer than {limit} bytes")]
    TooLarge { url: String, limit: usize },
}

/// Another server.
pub(crate) struct Remote {
    forward: concord_forward::Backend,
    connector: Box<dyn Fn() -> Connector + Send + Sync>,
    authority: Authority,
    /// Where it is, for texts.
    reference: ServiceReference,
    resolver: Arc<dyn Resolver>,
}

/// All other servers, each with its connections. APIServices of one server share them.
pub(crate) struct Remotes {
    resolver: Arc<dyn Resolver>,
    identity: Option<Arc<ClientIdentity>>,
    known: Mutex<HashMap<Backend, Arc<Remote>>>,
}

impl Remotes {
    /// Shows this to other servers.
    pub(crate) fn new(resolver: Arc<dyn Resolver>, identity: Option<Arc<ClientIdentity>>) -> Self {
        Self { resolver, identity, known: Mutex::default() }
    }

    /// The server behind a Service.
    pub(crate) fn get(&self, backend: &Backend) -> Result<Arc<Remote>, InvalidConfig> {
        if let Some(remote) = self.known.lock().get(backend) {
            return Ok(remote.clone());
        }
        let remote = Arc::new(Remote::new(backend, &self.resolver, self.identity.clone())?);
        Ok(self.known.lock().entry(backend.clone()).or_insert(remote).clone())
    }

    /// Forgets the connections to a server, which may be somewhere else by now. Requests under way go on.
    pub(crate) fn forget(&self, backend: &Backend) {
        self.known.lock().remove(backend);
    }

    /// Forgets all that nobody needs any more.
    pub(crate) fn retain(&self, is_needed: impl Fn(&Backend) -> bool) {
        self.known.lock().retain(|backend, _| is_needed(backend));
    }
}

struct ServiceDial(ServiceReference, Arc<dyn Resolver>);

#[async_trait]
impl Dial for ServiceDial {
    async fn dial(&self) -> io::Result<Box<dyn Io>> {
        let stream = dial_service(self.0.clone(), self.1.clone()).await?;
        Ok(Box::new(stream))
    }
}

impl Remote {
    fn new(
        backend: &Backend,
        resolver: &Arc<dyn Resolver>,
        identity: Option<Arc<ClientIdentity>>,
    ) -> Result<Self, InvalidConfig> {
        let host = backend.server_name();
        let invalid = |_| InvalidConfig::Url(format!("{host} is no name of a server"));
        let server_name = ServerName::try_from(host.clone()).map_err(invalid)?;
        let authority = format!("{host}:{}", backend.port).parse::<Authority>();
        let authority = authority.map_err(|error| InvalidConfig::Url(error.to_string()))?;
        let tls = client_tls(&trust(backend), identity)?;
        let reference = ServiceReference {
            namespace: backend.namespace.clone(),
            name: backend.name.clone(),
            path: String::new(),
            port: backend.port,
        };
        let dial = Arc::new(ServiceDial(reference.clone(), resolver.clone()));
        let connector = move || Connector::new(dial.clone(), &tls, server_name.clone(), CONNECT_TIMEOUT);
        Ok(Self {
            forward: concord_forward::Backend::new(authority.clone(), connector()),
            connector: Box::new(connector),
            authority,
            reference,
            resolver: resolver.clone(),
        })
    }

    /// What requests are sent on with.
    pub(crate) fn forward(&self) -> &concord_forward::Backend {
        &self.forward
    }

    /// Where it is at the moment, as a URL.
    pub(crate) fn locate(&self) -> Result<String, String> {
        let address = self.resolver.resolve(&self.reference).map_err(|error| error.to_string())?;
        Ok(format!("https://{address}"))
    }

    /// Asks on a connection that others use, too.
    pub(crate) async fn ask(&self, question: &Question<'_>) -> Result<Answer, AskError> {
        ask(&self.forward, &self.url(question.path), question).await
    }

    /// Asks on a connection of its own, which may lead somewhere else.
    pub(crate) async fn ask_anew(&self, question: &Question<'_>) -> Result<Answer, AskError> {
        let forward = concord_forward::Backend::new(self.authority.clone(), (self.connector)());
        ask(&forward, &self.url(question.path), question).await
    }

    fn url(&self, path: &str) -> String {
        let base = self.locate().unwrap_or_else(|_| format!("https://{}", self.authority));
        format!("{base}{path}")
    }
}

async fn ask(
    forward: &concord_forward::Backend,
    url: &str,
    question: &Question<'_>,
) -> Result<Answer, AskError> {
    let verb = if question.method == Method::DELETE { "Delete" } else { "Get" };
    let transport = |reason: String| AskError::Transport { verb, url: url.to_owned(), reason };
    let mut request = http::Request::builder()
        .method(question.method.clone())
        .uri(question.path)
        .header(USER, question.user)
        .header(http::header::USER_AGENT, "Go-http-client/2.0");
    for group in question.groups {
        request = request.header(GROUP, *group);
    }
    if !question.accept.is_empty() {
        request = request.header(http::header::ACCEPT, question.accept);
    }
    if let Some(known) = question.known.and_then(|known| HeaderValue::from_str(known).ok()) {
        request = request.header(http::header::IF_NONE_MATCH, known);
    }
    let request: Request = request.body(full("")).map_err(|error| transport(error.to_string()))?;
    let whole = async {
        let answer = forward.ask(request).await.map_err(|error| transport(go_reason(&error)))?;
        let (parts, body) = answer.into_parts();
        let body = match read(body, question.limit).await {
            Ok(Some(body)) => body,
            Ok(None) => return Err(AskError::TooLarge { url: url.to_owned(), limit: question.limit }),
            Err(error) => return Err(transport(error.to_string())),
        };
        Ok(Answer { status: parts.status, headers: parts.headers, body })
    };
    match timeout(question.timeout, whole).await {
        Ok(answer) => answer,
        Err(_) => Err(AskError::Timeout { verb, url: url.to_owned() }),
    }
}

/// A whole body; `None` if it is longer than the limit.
async fn read(mut body: Body, limit: usize) -> Result<Option<Bytes>, BoxError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if whole.len() + data.len() > limit {
            return Ok(None);
        }
        whole.extend_from_slice(&data);
    }
    Ok(Some(whole.freeze()))
}

/// What Go would say about a request that got no answer.
pub(crate) fn go_reason(error: &ForwardError) -> String {
    match error {
        ForwardError::Connect(error) => reason(&**error),
        ForwardError::ConnectTimeout(_) => "net/http: TLS handshake timeout".to_owned(),
        ForwardError::NoAnswer(error) => reason(&**error),
        other => other.to_string(),
    }
}

/// Whom an APIService believes that it is its server.
fn trust(backend: &Backend) -> Trust {
    match (backend.insecure_skip_tls_verify, &backend.ca_bundle[..]) {
        (true, _) => Trust::Anybody,
        (false, []) => Trust::System,
        (false, bundle) => Trust::Bundle(bundle.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_too_long_is_not_read_on() {
        let whole = read(full("12345"), 5).await.expect("no error");
        assert_eq!(whole.as_deref(), Some(&b"12345"[..]));
        assert_eq!(read(full("123456"), 5).await.expect("no error"), None);
    }

    #[test]
    fn whom_an_api_service_believes() {
        let backend = |bundle: &'static [u8], insecure_skip_tls_verify| Backend {
            namespace: "ns".to_owned(),
            name: "api".to_owned(),
            port: 443,
            ca_bundle: Bytes::from_static(bundle),
            insecure_skip_tls_verify,
        };
        assert_eq!(trust(&backend(b"", false)), Trust::System);
        assert_eq!(trust(&backend(b"pem", false)), Trust::Bundle(b"pem".to_vec()));
        assert_eq!(trust(&backend(b"", true)), Trust::Anybody);
    }
}
