use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_pki::client_tls;
use http::{Method, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::{runtime::Handle, task::JoinSet, time::timeout_at};

use crate::{
    Address, CallError, ClientConfig, InvalidConfig, Resolver, Target, dial::Dialer, error::reason, response,
};

/// How long an answer may be, unless told otherwise: twice what an object may be, since a patch is in base64.
pub const DEFAULT_ANSWER_LIMIT: usize = 8 << 20;

/// Who is calling, as webhooks see it: upstream's words, for those who look.
const USER_AGENT: &str = "kube-apiserver-admission";

/// How many webhooks are remembered with their connections; upstream's number.
const MAX_ENDPOINTS: usize = 200;

/// How many unused connections to one webhook are kept, and for how long; Go keeps so many and so long.
const MAX_IDLE: usize = 25;
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// What became of a call. For metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called<'a> {
    /// Who was called, with the port if it was given.
    pub host: &'a str,
    /// The status of the answer; `None` if there was none.
    pub code: Option<u16>,
    /// How long it took.
    pub took: Duration,
    /// How many bytes were sent.
    pub sent: usize,
    /// How many bytes were answered; `None` if not all of them arrived, or it was no success.
    pub received: Option<usize>,
}

type CallObserver = dyn Fn(&Called<'_>) + Send + Sync;

/// Calls webhooks, and keeps the connections to them.
pub struct Client {
    resolver: Arc<dyn Resolver>,
    /// Where its connections live, whoever calls: they are shared, and must neither wait for a thread that gives way to others
    /// nor end with it.
    home: Option<Handle>,
    answer_limit: usize,
    observer: Option<Box<CallObserver>>,
    endpoints: Mutex<Endpoints>,
}

/// The webhooks that were called, with when they were last.
#[derive(Default)]
struct Endpoints {
    calls: u64,
    known: HashMap<ClientConfig, (u64, Arc<Endpoint>)>,
}

/// One webhook, ready to be called.
struct Endpoint {
    client: legacy::Client<HttpsConnector<Dialer>, Full<Bytes>>,
    /// Without a query.
    url: String,
}

impl Client {
    /// Finds Services with `resolver`. Connections belong to the runtime in which this is called.
    pub fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self {
            resolver,
            home: Handle::try_current().ok(),
            answer_limit: DEFAULT_ANSWER_LIMIT,
            observer: None,
            endpoints: Mutex::default(),
        }
    }

    /// Reads answers of up to so many bytes.
    #[must_use]
    pub fn with_answer_limit(self, answer_limit: usize) -> Self {
        Self { answer_limit, ..self }
    }

    /// The same, but somebody hears of every call.
    #[must_use]
    pub fn with_observer(self, observer: impl Fn(&Called<'_>) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Posts a JSON body to a webhook and returns the body of its answer, which is not empty.
    ///
    /// Nothing is left behind if the future is dropped, but the webhook may have been asked.
    ///
    /// # Errors
    ///
    /// [`CallError`], if there is no success within `timeout`.
    pub async fn call(
        &self,
        config: &ClientConfig,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let endpoint = self.endpoint(config)?;
        self.post(&endpoint, endpoint.url.clone(), body, timeout).await
    }

    /// Like [`Client::call`], and tells the webhook how long it may take, in whole seconds: `?timeout=10s`.
    ///
    /// # Errors
    ///
    /// [`CallError`], as for [`Client::call`].
    pub async fn call_telling_timeout(
        &self,
        config: &ClientConfig,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let endpoint = self.endpoint(config)?;
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        let url = format!("{}?timeout={seconds}s", endpoint.url);
        self.post(&endpoint, url, body, timeout).await
    }

    async fn post(
        &self,
        endpoint: &Endpoint,
        url: String,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let begun = tokio::time::Instant::now();
        let uri: Uri = url.parse().map_err(|error| InvalidConfig::Url(format!("{error}")))?;
        let (host, sent) = (uri.authority().map(ToString::to_string).unwrap_or_default(), body.len());
        let request = Request::builder()
            .method(Method::POST)
            .uri(uri)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, USER_AGENT)
            .body(Full::new(body))
            .map_err(|error| InvalidConfig::Url(error.to_string()))?;
        let mut code = None;
        let answer = self.exchange(endpoint, request, url, begun + timeout, &mut code).await;
        if let Some(observer) = &self.observer {
            let received = answer.as_ref().map(Bytes::len).ok();
            observer(&Called { host: &host, code, took: begun.elapsed(), sent, received });
        }
        answer
    }

    async fn exchange(
        &self,
        endpoint: &Endpoint,
        request: Request<Full<Bytes>>,
        url: String,
        deadline: tokio::time::Instant,
        code: &mut Option<u16>,
    ) -> Result<Bytes, CallError> {
        let response = match timeout_at(deadline, self.send(endpoint, request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(reason)) => return Err(CallError::Transport { reason, url }),
            Err(_) => return Err(CallError::Timeout { url }),
        };
        *code = Some(response.status().as_u16());
        match timeout_at(deadline, response::read(response, &url, self.answer_limit)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Body("context deadline exceeded".to_owned())),
        }
    }

    /// Sends a request from where connections live. If there is no answer, it is said why.
    async fn send(
        &self,
        endpoint: &Endpoint,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, String> {
        let sending = endpoint.client.request(request);
        let elsewhere = self.home.as_ref().filter(|home| home.id() != Handle::current().id());
        let Some(home) = elsewhere else { return sending.await.map_err(|error| reason(&error)) };
        // Whoever drops this ends the request, too.
        let mut only = JoinSet::new();
        only.spawn_on(sending, home);
        match only.join_next().await {
            Some(Ok(sent)) => sent.map_err(|error| reason(&error)),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("nothing was sent".to_owned()),
        }
    }

    fn endpoint(&self, config: &ClientConfig) -> Result<Arc<Endpoint>, InvalidConfig> {
        let mut endpoints = self.endpoints.lock();
        endpoints.calls += 1;
        let now = endpoints.calls;
        if let Some((used, endpoint)) = endpoints.known.get_mut(config) {
            *used = now;
            return Ok(endpoint.clone());
        }
        let endpoint = Arc::new(Endpoint::new(config, &self.resolver)?);
        if endpoints.known.len() >= MAX_ENDPOINTS {
            endpoints.forget_one();
        }
        endpoints.known.insert(config.clone(), (now, endpoint.clone()));
        Ok(endpoint)
    }
}

impl Endpoints {
    /// Forgets the one that was not called for longest.
    fn forget_one(&mut self) {
        let oldest = self.known.iter().min_by_key(|(_, (used, _))| *used).map(|(config, _)| config.clone());
        if let Some(config) = oldest {
            self.known.remove(&config);
        }
    }
}

impl Endpoint {
    fn new(config: &ClientConfig, resolver: &Arc<dyn Resolver>) -> Result<Self, InvalidConfig> {
        let (url, server_name, dialer, local) = match &config.target {
            Target::Service(service) => {
                let name = service.server_name();
                let url = format!("https://{name}:{}{}", service.port, clean(&service.path));
                (url, name, Dialer::Service(service.clone(), resolver.clone()), false)
            }
            Target::Url(url) => from_url(url)?,
        };
        let server_name = ServerName::try_from(server_name)
            .map_err(|_| InvalidConfig::Url(format!("{url} names no host")))?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(client_tls(&config.trust(), None)?)
            .https_only()
            .with_server_name_resolver(FixedServerNameResolver::new(server_name))
            .enable_http1();
        // Requests over one HTTP/2 connection would all reach the same replica of the webhook, so only a webhook that
        // has one place is offered it. Upstream does the same.
        let connector = match local {
            true => connector.enable_http2().wrap_connector(dialer),
            false => connector.wrap_connector(dialer),
        };
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { client, url })
    }
}

/// The URL to call, the name its certificate must be for, how it is reached, and whether it is on this machine.
fn from_url(url: &str) -> Result<(String, String, Dialer, bool), InvalidConfig> {
    let uri: Uri = url.parse().map_err(|error| InvalidConfig::Url(format!("parse {url:?}: {error}")))?;
    if uri.scheme_str() != Some("https") {
        return Err(InvalidConfig::Url(format!("{url:?} is not an https URL")));
    }
    let authority = uri.authority().ok_or_else(|| InvalidConfig::Url(format!("{url:?} has no host")))?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let local = host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let port = authority.port_u16();
    let dialer = Dialer::Host(Address { host: host.clone(), port: port.unwrap_or(443) });
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Ok((format!("https://{}{port}{}", authority.host(), clean(uri.path())), host, dialer, local))
}

/// A path as client-go sends it: from the root, without empty parts, dots and a slash at its end.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_client_go_does() {
        for (path, cleaned) in
            [("", "/"), ("/", "/"), ("/a/b/", "/a/b"), ("a//./b", "/a/b"), ("/a/../../b", "/b")]
        {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }

    #[test]
    fn what_a_url_says() {
        for (url, called, host, on_this_machine) in [
            ("https://example.org", "https://example.org/", "example.org", false),
            ("https://LOCALHOST:8443/a/", "https://LOCALHOST:8443/a", "LOCALHOST", true),
            ("https://[::1]:8443/a?b", "https://[::1]:8443/a", "::1", true),
            ("https://10.0.0.1", "https://10.0.0.1/", "10.0.0.1", false),
        ] {
            let (read, name, _, local) = from_url(url).expect(url);
            assert_eq!((read.as_str(), name.as_str(), local), (called, host, on_this_machine));
        }
        for url in ["", "http://example.org", "/a", "https://", "ht tp://x"] {
            assert!(from_url(url).is_err(), "{url}");
        }
    }
}
