//! The way of a request through the server.

use std::sync::Arc;

use http::HeaderValue;

use crate::{
    AllowedOrigins, Auditing, Authenticator, Authorizer, FlowControl, Metrics, RequestLimits, ShutdownToken,
    StorageVersions,
    authentication::IdentityHeaders,
    filters::{
        Audit, AuditId, Authentication, Authorization, CacheControl, Cors, Goaway, Gzip, Hsts, HttpLog,
        Impersonation, MaxInFlight, PanicRecovery, PriorityAndFairness, ReceivedTimestamp, RequestDeadline,
        RequestInfoFilter, RequestMetrics, RetryAfter, StorageVersionPrecondition, Timeout, WarningRecorder,
        WatchTermination,
    },
    http::{Chained, Handler},
};

/// What the filters are to know.
pub(crate) struct Chain<A> {
    pub(crate) authenticator: A,
    pub(crate) identity_headers: IdentityHeaders,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) auditing: Option<Arc<Auditing>>,
    pub(crate) limits: RequestLimits,
    pub(crate) flow_control: Option<Arc<dyn FlowControl>>,
    pub(crate) hsts: Option<HeaderValue>,
    pub(crate) allowed_origins: Option<AllowedOrigins>,
    pub(crate) goaway_chance: f64,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) draining: ShutdownToken,
    pub(crate) storage_versions: Option<Arc<dyn StorageVersions>>,
}

impl<A: Authenticator> Chain<A> {
    /// Builds the handler chain around `routes`. As in upstream's function of this kind, each line wraps the
    /// lines above it: **the last line is the outermost filter**, the first to see a request and the last to
    /// see its answer. The order is upstream's.
    ///
    /// Upstream counts running requests here, to wait for them at the end. Connections do that, see
    /// `server.rs`: each knows its requests, also those whose answers are still on their way.
    ///
    /// Of upstream's other lines three have nothing to do here. One answers 503 instead of 404 until all handlers are
    /// installed: routes are complete before the first connection is taken, and what definitions add is waited for where it
    /// is looked up. One begins spans of OpenTelemetry, which nobody collects. One keeps times of webhooks and queues for
    /// metrics, which those count who spend them.
    pub(crate) fn build(self, routes: impl Handler) -> Arc<dyn Handler> {
        let Self { authenticator, identity_headers, authorizer, auditing, metrics, draining, .. } = self;
        let storage_versions = self.storage_versions;
        // Where requests wait for their turn, those that have it are only counted.
        let limit = |limit| if self.flow_control.is_some() { 0 } else { limit };
        let reads = (limit(self.limits.max_in_flight), metrics.read_only.clone());
        let writes = (limit(self.limits.max_mutating_in_flight), metrics.mutating.clone());

        let handler = routes;
        // Innermost: it needs the answer as the handler made it, with a length if it has one.
        let handler = Gzip(handler);
        // Inside authorization, so that nobody learns more than that it is forbidden; before anything is admitted.
        let handler = StorageVersionPrecondition { inner: handler, versions: storage_versions };
        // After everything that can say who the user is, before everything that does what the user wants.
        let handler =
            Authorization { inner: handler, authorizer: authorizer.clone(), metrics: metrics.clone() };
        // After authentication, since some users are never sent away; before authorization, which may cost.
        let handler = MaxInFlight::new(handler, reads, writes);
        // Outside of the limits, which only count where requests wait: who waits does not run.
        let handler = PriorityAndFairness { inner: handler, control: self.flow_control };
        // After authentication, which says who wants to be somebody else, and outside of everything that asks who the
        // user is.
        let handler = Impersonation { inner: handler, authorizer, metrics: metrics.clone() };
        // Outside of everything that refuses a user who is known, and of impersonation, so that both users are.
        let handler = Audit { inner: handler, auditing: auditing.clone(), metrics: metrics.clone() };
        // Before everything that asks who the user is.
        let handler = Authentication {
            inner: handler,
            authenticator,
            identity_headers,
            auditing: auditing.clone(),
            metrics: metrics.clone(),
        };
        // Outside authentication: a browser's question whether it may ask comes without credentials.
        let handler = Cors { inner: handler, allowed: self.allowed_origins };
        // Inside the timeout, which answers without waiting for warnings; outside of all who warn.
        let handler = WarningRecorder(handler);
        // Outside of everything that can take long.
        let handler = Timeout(handler);
        // Just outside the timeout, which needs it.
        let handler = RequestDeadline {
            inner: handler,
            most: self.limits.timeout,
            auditing: auditing.clone(),
            metrics: metrics.clone(),
        };
        // Outside of whoever lasts.
        let handler = WatchTermination { inner: handler, draining: draining.clone() };
        // Before any work is done: the connection may as well be closed for a request that is refused.
        let handler = Goaway { inner: handler, chance: self.goaway_chance };
        // Outside of everything that makes answers, errors included: none of them may be cached.
        let handler = CacheControl(handler);
        // For every answer that a browser may see.
        let handler = Hsts { inner: handler, directives: self.hsts };
        // Outside of all work: a server that ends takes on nothing new.
        let handler = RetryAfter { inner: handler, draining };
        // Outside of everything that refuses, so that refusals are logged.
        let handler = HttpLog(handler);
        // Outside of everything that takes time.
        let handler = RequestMetrics { inner: handler, metrics };
        // Before everybody who asks what the request is about, which are nearly all.
        let handler = RequestInfoFilter(handler);
        // As early as possible: time counts from here.
        let handler = ReceivedTimestamp(handler);
        // Outside of all that could panic, filters included.
        let handler = PanicRecovery(handler);
        // Outermost: from here on, whatever is logged or answered about the request can name it.
        let handler = AuditId(handler);
        Arc::new(Chained(handler))
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use http::StatusCode;

    use super::*;
    use crate::{
        AlwaysAllow, Basics, RequestContext as _, Served, TokenFile,
        http::{
            Request, Response,
            testing::{read, request},
            text,
        },
    };

    fn chain(authorizer: Arc<dyn Authorizer>, metrics: &Arc<Metrics>) -> Chain<impl Authenticator> {
        let tokens = TokenFile::parse("secret,alice,1", "t.csv").expect("valid");
        let authentication =
            crate::Authentication { tokens: vec![Arc::new(tokens)], ..crate::Authentication::default() };
        Chain {
            authenticator: authentication.into_authenticator(),
            identity_headers: IdentityHeaders::new(None),
            authorizer,
            auditing: None,
            limits: RequestLimits::default(),
            flow_control: None,
            hsts: None,
            allowed_origins: None,
            goaway_chance: 0.0,
            metrics: metrics.clone(),
            draining: ShutdownToken::default(),
            storage_versions: None,
        }
    }

    /// Panics, or tells what the filters said.
    struct Tells;

    #[async_trait]
    impl Handler for Tells {
        async fn handle(&self, request: Request) -> Response {
            assert!(request.headers().contains_key("audit-id"), "the id comes before everything else");
            assert!(request.uri().path() != "/panic", "on purpose");
            request.warnings().add("careful");
            let (info, user) = (request.info(), request.user());
            let deadline = request.deadline().moment().is_some();
            let mut response = text(StatusCode::OK, format!("{} {} {deadline}", user.name, info.verb));
            response.extensions_mut().insert(Served);
            response
        }
    }

    async fn ask(authorizer: Arc<dyn Authorizer>, uri: &str, token: &str) -> (u16, String) {
        let mut request = request("GET", uri);
        if !token.is_empty() {
            let value = format!("Bearer {token}").parse().expect("a header value");
            request.headers_mut().insert("authorization", value);
        }
        let response = chain(authorizer, &Arc::default()).build(Tells).handle(request).await;
        assert_eq!(response.headers()["cache-control"], "no-cache, private", "{uri}");
        assert!(response.headers().contains_key("audit-id"), "{uri}");
        assert_eq!(response.headers().contains_key("warning"), response.status() == 200, "{uri}");
        read(response).await
    }

    #[tokio::test]
    async fn every_answer_has_every_header_and_every_handler_knows_everything() {
        let ok = |text: &str| (200, text.to_owned());
        assert_eq!(ask(Arc::new(AlwaysAllow), "/api/v1/pods", "secret").await, ok("alice list true"));
        assert_eq!(
            ask(Arc::new(AlwaysAllow), "/api/v1/pods?watch", "").await,
            ok("system:anonymous watch false")
        );
        assert_eq!(ask(Arc::new(Basics), "/api", "secret").await, ok("alice get true"));
        for (uri, token, status) in
            [("/panic", "", 500), ("/api", "wrong", 401), ("/api?timeout=x", "wrong", 400)]
        {
            assert_eq!(ask(Arc::new(AlwaysAllow), uri, token).await.0, status, "{uri} {token}");
        }
        assert_eq!(ask(Arc::new(Basics), "/api", "").await.0, 403);
    }

    #[tokio::test]
    async fn what_is_refused_is_not_counted_under_its_name() {
        let metrics = Arc::new(Metrics::new());
        let handler = chain(Arc::new(Basics), &metrics).build(Tells);
        for uri in ["/livez", "/api/v1/secret-name"] {
            handler.handle(request("GET", uri)).await;
        }
        let text = read(metrics.scrape()).await.1;
        assert!(text.contains(r#"subresource="/livez""#) && !text.contains("secret-name"), "{text}");
        assert!(text.contains("authorization_attempts_total{result=\"no-opinion\"} 1\n"), "{text}");
    }
}
