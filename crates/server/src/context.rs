//! What the filters of the chain know about a request and tell its handler.
//!
//! All of it travels in the request's extensions; [`RequestContext`] reads it. A request that did not come
//! through the chain, as in a handler's own tests, has harmless defaults.

use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};

use concord_codec::Warnings;
use futures_util::future::BoxFuture;
use http::{Extensions, Method, Uri, request::Parts};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{AuditHandle, RequestInfo, UserInfo, audit::PeerAddress};

/// What is known about a request: implemented by requests and by their parts.
pub trait RequestContext {
    /// The method.
    fn request_method(&self) -> &Method;
    /// Path and query.
    fn request_uri(&self) -> &Uri;
    /// The request's headers.
    fn request_headers(&self) -> &http::HeaderMap;
    /// Where the filters put what they know.
    fn request_extensions(&self) -> &Extensions;

    /// What is asked for.
    fn info(&self) -> Arc<RequestInfo> {
        let known = self.request_extensions().get::<Arc<RequestInfo>>().cloned();
        known.unwrap_or_else(|| {
            let read = RequestInfo::new(self.request_method(), self.request_uri());
            Arc::new(read.unwrap_or_default())
        })
    }

    /// Who asks; anonymous if nobody found out.
    fn user(&self) -> Arc<UserInfo> {
        let known = self.request_extensions().get::<Arc<UserInfo>>().cloned();
        known.unwrap_or_else(|| Arc::new(UserInfo::anonymous()))
    }

    /// Where to put warnings for the client.
    fn warnings(&self) -> WarningsHandle {
        self.request_extensions().get::<WarningsHandle>().cloned().unwrap_or_default()
    }

    /// When the request must be answered.
    fn deadline(&self) -> Deadline {
        self.request_extensions().get::<Deadline>().copied().unwrap_or_default()
    }

    /// When watches must end.
    fn shutdown(&self) -> ShutdownToken {
        self.request_extensions().get::<ShutdownToken>().cloned().unwrap_or_default()
    }

    /// The connection the request came over.
    fn connection(&self) -> ConnectionHandle {
        self.request_extensions().get::<ConnectionHandle>().cloned().unwrap_or_default()
    }

    /// Where the client is; `None` if the request came over no connection.
    fn peer_address(&self) -> Option<IpAddr> {
        self.request_extensions().get::<PeerAddress>().map(|peer| peer.0.to_canonical())
    }

    /// Where to tell what is written down about the request; `None` if nothing is.
    fn audit(&self) -> Option<&AuditHandle> {
        self.request_extensions().get()
    }

    /// When the request arrived; now if nobody took note.
    fn received(&self) -> Instant {
        self.request_extensions().get::<Received>().map_or_else(Instant::now, |received| received.0)
    }
}

impl<B> RequestContext for http::Request<B> {
    fn request_method(&self) -> &Method {
        self.method()
    }

    fn request_uri(&self) -> &Uri {
        self.uri()
    }

    fn request_headers(&self) -> &http::HeaderMap {
        self.headers()
    }

    fn request_extensions(&self) -> &Extensions {
        self.extensions()
    }
}

impl RequestContext for Parts {
    fn request_method(&self) -> &Method {
        &self.method
    }

    fn request_uri(&self) -> &Uri {
        &self.uri
    }

    fn request_headers(&self) -> &http::HeaderMap {
        &self.headers
    }

    fn request_extensions(&self) -> &Extensions {
        &self.extensions
    }
}

/// When a request arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received(pub(crate) Instant);

/// Collects warnings for the client while a request is handled. They become `Warning` headers of the
/// answer, so those added after the handler returned are lost.
#[derive(Debug, Clone, Default)]
pub struct WarningsHandle(Arc<Mutex<Warnings>>);

impl WarningsHandle {
    /// Adds a warning.
    pub fn add(&self, text: &str) {
        self.0.lock().add(text);
    }

    /// The values of the `Warning` headers so far.
    #[must_use]
    pub fn headers(&self) -> Vec<String> {
        self.0.lock().headers().to_vec()
    }
}

/// When a request must be answered, if there is a limit. Long-running requests have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// No limit.
    pub const NONE: Self = Self(None);

    /// This moment.
    #[must_use]
    pub fn at(moment: Instant) -> Self {
        Self(Some(moment))
    }

    /// The moment, if there is a limit.
    #[must_use]
    pub fn moment(self) -> Option<Instant> {
        self.0
    }

    /// This deadline, or `time` from now if that is sooner.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        let sooner = Instant::now() + time;
        Self(Some(self.0.map_or(sooner, |moment| moment.min(sooner))))
    }

    /// Resolves when the deadline has passed; without one, never.
    pub async fn passed(self) {
        match self.0 {
            Some(moment) => sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }
}

/// Tells when the server begins to end, so that watches end in an orderly way.
#[derive(Debug, Clone, Default)]
pub struct ShutdownToken(pub(crate) CancellationToken);

impl ShutdownToken {
    /// Resolves when watches must end.
    pub fn begun(&self) -> impl Future<Output = ()> + Send {
        self.0.cancelled()
    }

    /// Whether watches must end.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// What a handler can do with the connection its request came over.
#[derive(Clone, Default)]
pub struct ConnectionHandle(Arc<ConnectionState>);

#[derive(Default)]
struct ConnectionState {
    closing: CancellationToken,
    upgraded: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl ConnectionHandle {
    /// Of a connection that is also closed when the server drains.
    pub(crate) fn new(draining: &ShutdownToken) -> Self {
        let closing = draining.0.child_token();
        Self(Arc::new(ConnectionState { closing, upgraded: Mutex::default() }))
    }

    /// Closes the connection in order: requests that run on it are finished, new ones must come over
    /// another one.
    pub fn close(&self) {
        self.0.closing.cancel();
    }

    /// Has the server run `work` on the connection after it was upgraded, for instance to a WebSocket: the
    /// answer must be a 101, and `work` gets the connection from the request's `hyper::upgrade::OnUpgrade`.
    /// It runs as part of the connection: it counts as one, and ends with the server at the latest. To end
    /// in order it watches its request's [`ShutdownToken`].
    pub fn run_upgraded(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.upgraded.lock().push(Box::pin(work));
    }

    pub(crate) fn closing(&self) -> impl Future<Output = ()> + Send {
        self.0.closing.cancelled()
    }

    #[cfg(test)]
    pub(crate) fn is_closing(&self) -> bool {
        self.0.closing.is_cancelled()
    }

    pub(crate) fn take_upgraded(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut self.0.upgraded.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::request;

    #[test]
    fn what_no_filter_said_has_a_harmless_default() {
        let request = request("GET", "/api/v1/namespaces/a/pods/b");
        assert_eq!((&*request.info().resource, &*request.info().name), ("pods", "b"));
        assert!(request.user().is_anonymous());
        assert_eq!(request.deadline(), Deadline::NONE);
        assert!(!request.shutdown().has_begun());
        assert!(request.into_parts().0.warnings().headers().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_sooner_deadline_counts() {
        let now = Instant::now();
        let minute = Deadline::at(now + Duration::from_secs(60));
        assert_eq!(minute.within(Duration::from_secs(34)).moment(), Some(now + Duration::from_secs(34)));
        assert_eq!(minute.within(Duration::from_secs(90)), minute);
        assert_eq!(
            Deadline::NONE.within(Duration::from_secs(1)).moment(),
            Some(now + Duration::from_secs(1))
        );
        minute.passed().await;
        assert_eq!(now.elapsed(), Duration::from_secs(60));
    }
}
