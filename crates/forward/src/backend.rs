use std::sync::Arc;

use bytes::Bytes;
use concord_server::{Body, Request, RequestContext as _, Response, UserInfo};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::HOST,
    request::Parts,
    uri::{Authority, PathAndQuery, Scheme},
};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::TrySendError,
};

use crate::{
    Connector, Failure, ForwardError,
    body::{AtEnd, Carried},
    headers,
    http2::Unanswered,
    pool::{Pool, Ready},
    upgrade,
};

/// How often a request is sent on another connection because the one it was given to had just been closed, before any of
/// it was sent. A server that ends closes all its connections, so a second may be closed as well.
const ATTEMPTS: usize = 3;

/// Another server that requests are sent on to, with the connections to it.
pub struct Backend {
    authority: Authority,
    pool: Pool,
}

impl Backend {
    /// Sends requests on connections of this connector, for the host `authority`.
    pub fn new(authority: Authority, connector: Connector) -> Self {
        Self { authority, pool: Pool::new(Arc::new(connector)) }
    }

    /// Sends a client's request on, as `user`, and passes the answer back as it comes. `marks` are headers to set, whatever
    /// the client says.
    ///
    /// The answer's body ends early with an error if the other server does. If the future or the body is dropped, the
    /// other server learns that nobody waits any more.
    ///
    /// # Errors
    ///
    /// [`Failure`], if there is no answer; with the request, if it may be sent to somebody else.
    pub async fn forward(
        &self,
        request: Request,
        user: &UserInfo,
        marks: &[(HeaderName, HeaderValue)],
    ) -> Result<Response, Failure> {
        let (original, body) = request.into_parts();
        let head = || Head::outward(&original, user, marks);
        if headers::is_upgrade(&original.headers) {
            let head = head().map_err(|error| Failure { error, request: None })?;
            return Box::pin(upgrade::carry(self, original, head, body)).await;
        }
        match self.send(head, body).await {
            Ok(mut answer) => {
                headers::inward(answer.headers_mut());
                Ok(answer)
            }
            Err(Unanswered { error, body }) => {
                let request = body.map(|body| Box::new(Request::from_parts(original, body)));
                Err(Failure { error, request })
            }
        }
    }

    /// Asks the other server something on our own behalf. Headers are sent as they are.
    ///
    /// # Errors
    ///
    /// [`ForwardError`], if there is no answer.
    pub async fn ask(&self, request: Request) -> Result<Response, ForwardError> {
        let (parts, body) = request.into_parts();
        let head = || {
            let headers = parts.headers.clone();
            Ok(Head { method: parts.method.clone(), uri: parts.uri.clone(), headers })
        };
        self.send(head, body).await.map_err(|unanswered| unanswered.error)
    }

    /// Sends a request; `head` makes what it says before its body, anew for each attempt.
    async fn send(
        &self,
        head: impl Fn() -> Result<Head, ForwardError>,
        mut body: Body,
    ) -> Result<Response, Unanswered> {
        let mut attempt = 1;
        loop {
            let ready = match self.pool.ready().await {
                Ok(ready) => ready,
                Err(error) => return Err(Unanswered { error, body: Some(body) }),
            };
            let head = head().map_err(|error| Unanswered { error, body: None })?;
            // A read may be repeated whatever became of the first; anything else only if it was never sent.
            let repeatable = body.is_end_stream() && [Method::GET, Method::HEAD].contains(&head.method);
            let failed = match self.send_on(ready, head, body).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            body = match failed.body {
                Some(body) => body,
                None if repeatable => concord_server::full(Bytes::new()),
                None => return Err(failed),
            };
            if attempt == ATTEMPTS {
                return Err(Unanswered { error: failed.error, body: Some(body) });
            }
            attempt += 1;
        }
    }

    async fn send_on(&self, ready: Ready, head: Head, body: Body) -> Result<Response, Unanswered> {
        match ready {
            Ready::Http2(connection, share) => {
                let sent = connection.send(self.absolute(head, body), share).await;
                sent.map(of_no_connection)
            }
            Ready::Http1(mut sender) => {
                let sent = sender.try_send_request(self.relative(head, body)).await;
                sent.map(|answer| carried(answer, AtEnd::new(self.pool.give_back(sender))))
                    .map_err(Unanswered::from)
            }
        }
    }

    /// The request as HTTP/2 has it: the host is a part of what is asked for.
    fn absolute(&self, head: Head, body: Body) -> http::Request<Body> {
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(Scheme::HTTPS);
        uri.authority = Some(self.authority.clone());
        uri.path_and_query = Some(path_and_query(&head.uri));
        let uri = Uri::from_parts(uri).expect("scheme, authority and path make a URI");
        head.request(uri, body)
    }

    /// The request as HTTP/1 has it: the host is a header.
    pub(crate) fn relative(&self, head: Head, body: Body) -> http::Request<Body> {
        let uri = Uri::from(path_and_query(&head.uri));
        let mut request = head.request(uri, body);
        let host = HeaderValue::try_from(self.authority.as_str()).expect("an authority is a valid header");
        request.headers_mut().insert(HOST, host);
        request
    }

    pub(crate) fn connector(&self) -> &Connector {
        self.pool.connector()
    }
}

fn path_and_query(uri: &Uri) -> PathAndQuery {
    uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// What a request says before its body.
pub(crate) struct Head {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Head {
    /// That of a client's request, as it is sent on: without what this server knows of the request, which is much.
    fn outward(
        original: &Parts,
        user: &UserInfo,
        marks: &[(HeaderName, HeaderValue)],
    ) -> Result<Self, ForwardError> {
        let headers = headers::outward(&original.headers, user, original.peer_address(), marks)?;
        Ok(Self { method: original.method.clone(), uri: original.uri.clone(), headers })
    }

    fn request(self, uri: Uri, body: Body) -> http::Request<Body> {
        let mut request = http::Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers;
        request
    }
}

/// An answer, and what happens to its connection at its end.
pub(crate) fn carried(answer: http::Response<Incoming>, at_end: AtEnd) -> Response {
    of_no_connection(answer.map(|body| Carried::boxed(body, at_end)))
}

/// An answer without what is known of its connection, which is of no interest to the client.
fn of_no_connection(answer: http::Response<Body>) -> Response {
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    response
}

impl From<TrySendError<http::Request<Body>>> for Unanswered {
    fn from(mut failed: TrySendError<http::Request<Body>>) -> Self {
        let body = failed.take_message().map(http::Request::into_body);
        Self { error: ForwardError::NoAnswer(Arc::new(failed.into_error())), body }
    }
}
