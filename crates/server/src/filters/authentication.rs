use std::{sync::Arc, time::Instant};

use concord_meta::Status;
use http::{header::AUTHORIZATION, request::Parts};

use crate::{
    Accept, Auditing, Authenticated, Authenticator, FrontProxied, RequestContext as _, Unauthenticated,
    audit::AuditNotes,
    authentication::IdentityHeaders,
    http::{Filter, Request, Response},
    metrics::Metrics,
    respond_status,
};

/// Finds out who makes a request, and refuses those with wrong credentials. Handlers see the user, never
/// the credentials.
pub(crate) struct Authentication<H, A> {
    pub(crate) inner: H,
    pub(crate) authenticator: A,
    /// What only proxies may say, and nobody a second time.
    pub(crate) identity_headers: IdentityHeaders,
    /// Where those are written down who are refused; the others are by a filter further in, which knows who they are.
    pub(crate) auditing: Option<Arc<Auditing>>,
    pub(crate) metrics: Arc<Metrics>,
}

impl<H, A: Authenticator> Authentication<H, A> {
    /// Who makes the request. What there is to say about the credentials is left for whoever audits.
    async fn authenticate(&self, parts: &mut Parts) -> Authenticated {
        if self.auditing.is_none() {
            return self.authenticator.authenticate(parts).await;
        }
        let (authenticated, notes) = AuditNotes::during(self.authenticator.authenticate(parts)).await;
        parts.extensions.insert(notes);
        authenticated
    }
}

impl<H: Filter, A: Authenticator> Filter for Authentication<H, A> {
    async fn call(&self, request: Box<Request>) -> Response {
        let http2 = request.version() == http::Version::HTTP_2;
        let (mut parts, body) = request.into_parts();
        let begun = Instant::now();
        let authenticated = self.authenticate(&mut parts).await;
        self.metrics.access().authentication(&authenticated, begun.elapsed());
        match authenticated {
            Ok(Some(user)) => {
                // Opening streams costs an unknown client nothing, so it must not go on doing it over one
                // connection. Upstream's feature gate UnauthenticatedHTTP2DOSMitigation, which is on.
                if http2 && user.is_anonymous() && parts.extensions.get::<FrontProxied>().is_none() {
                    parts.connection().close();
                }
                parts.headers.remove(AUTHORIZATION);
                self.identity_headers.strip(&mut parts.headers);
                parts.extensions.insert(user);
                self.inner.call(Box::new(Request::from_parts(parts, body))).await
            }
            refused => {
                if let Err(Unauthenticated(reason)) = refused {
                    // Anybody can cause this, as often as they like.
                    tracing::debug!(reason, "Credentials were refused.");
                }
                if http2 {
                    parts.connection().close();
                }
                let status = Status::unauthorized();
                if let Some(auditing) = &self.auditing {
                    super::audit::refused(auditing, &self.metrics, &parts, &status);
                }
                respond_status(&status, &Accept::of(&parts))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use http::{HeaderName, HeaderValue, StatusCode};

    use super::*;
    use crate::{
        Authentication as Options, TokenFile,
        context::ConnectionHandle,
        http::{
            Handler,
            testing::{read, request},
            text,
        },
    };

    /// Answers with the user and the names of the headers.
    struct Tells;

    #[async_trait]
    impl Handler for Tells {
        async fn handle(&self, request: Request) -> Response {
            let names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
            text(StatusCode::OK, format!("{} {}", request.user().name, names.join(",")))
        }
    }

    async fn ask(authorization: Option<&'static str>, version: http::Version) -> (u16, String, bool) {
        let tokens = TokenFile::parse("secret,alice,1", "t.csv").expect("valid");
        let options = Options { tokens: vec![Arc::new(tokens)], ..Options::default() };
        let filter = Authentication {
            inner: Tells,
            authenticator: options.into_authenticator(),
            identity_headers: IdentityHeaders::new(None),
            auditing: None,
            metrics: Arc::new(Metrics::new()),
        };
        let connection = ConnectionHandle::default();
        let mut request = request("GET", "/");
        *request.version_mut() = version;
        request.extensions_mut().insert(connection.clone());
        for (name, value) in [("x-remote-user", "root"), ("x-remote-extra-a", "b"), ("accept", "*/*")] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static(authorization));
        }
        let (status, body) = read(filter.call(request.into()).await).await;
        (status, body, connection.is_closing())
    }

    /// Has something to say about every token.
    struct Talks;

    #[async_trait]
    impl crate::TokenAuthenticator for Talks {
        async fn authenticate_token(&self, token: &str) -> Authenticated {
            crate::note_for_audit("stale-token", token);
            Err(Unauthenticated("stale".to_owned()))
        }
    }

    #[tokio::test]
    async fn what_is_said_about_credentials_is_audited() {
        let (events, heard) = std::sync::mpsc::channel();
        let text = b"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]";
        let policy = concord_audit::Policy::parse(text, |_| {}).expect("a policy");
        let sink: crate::AuditSink = Arc::new(move |event| events.send(event.clone()).expect("heard"));
        let options = Options { tokens: vec![Arc::new(Talks)], ..Options::default() };
        let filter = Authentication {
            inner: Tells,
            authenticator: options.into_authenticator(),
            identity_headers: IdentityHeaders::new(None),
            auditing: Some(Arc::new(Auditing { policy, sink })),
            metrics: Arc::default(),
        };
        let mut request = request("GET", "/api");
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer old"));
        assert_eq!(filter.call(request.into()).await.status(), 401);
        let event = heard.try_recv().expect("an event");
        assert_eq!(event.annotations.get("stale-token").map(String::as_str), Some("old"));
    }

    #[tokio::test]
    async fn handlers_see_the_user_and_no_credentials() {
        use http::Version;
        let unauthorized = concat!(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
            r#""message":"Unauthorized","reason":"Unauthorized","code":401}"#,
            "\n"
        );
        for (authorization, version, status, body, closes) in [
            (Some("Bearer secret"), Version::HTTP_2, 200, "alice accept", false),
            (None, Version::HTTP_11, 200, "system:anonymous accept", false),
            (None, Version::HTTP_2, 200, "system:anonymous accept", true),
            (Some("Bearer wrong"), Version::HTTP_11, 401, unauthorized, false),
            (Some("Bearer wrong"), Version::HTTP_2, 401, unauthorized, true),
            (Some("Basic eA=="), Version::HTTP_11, 200, "system:anonymous accept", false),
        ] {
            let answer = ask(authorization, version).await;
            assert_eq!((answer.0, &*answer.1, answer.2), (status, body, closes), "{authorization:?}");
        }
    }
}
