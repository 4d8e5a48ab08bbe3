use crate::{
    RequestContext as _,
    http::{Filter, Request, Response},
    random,
};

/// Closes the HTTP/2 connection of a request once in a while, in order and after the answer, so that clients
/// spread again over the servers behind a load balancer.
pub(crate) struct Goaway<H> {
    pub(crate) inner: H,
    /// Of one, how often.
    pub(crate) chance: f64,
}

impl<H: Filter> Filter for Goaway<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        if self.chance > 0.0 && request.version() == http::Version::HTTP_2 && random::fraction() < self.chance
        {
            request.connection().close();
        }
        self.inner.call(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        context::ConnectionHandle,
        http::testing::{Echo, request},
    };

    async fn closed(chance: f64, version: http::Version) -> bool {
        let connection = ConnectionHandle::default();
        let mut request = request("GET", "/");
        *request.version_mut() = version;
        request.extensions_mut().insert(connection.clone());
        Goaway { inner: Echo, chance }.call(request.into()).await;
        connection.is_closing()
    }

    #[tokio::test]
    async fn only_http2_connections_are_closed_and_only_by_chance() {
        assert!(closed(1.0, http::Version::HTTP_2).await);
        assert!(!closed(1.0, http::Version::HTTP_11).await);
        assert!(!closed(0.0, http::Version::HTTP_2).await);
        let mut some = 0;
        for _ in 0..1000 {
            some += usize::from(closed(0.5, http::Version::HTTP_2).await);
        }
        assert!((300..700).contains(&some), "{some} of 1000 at a chance of one half");
    }
}
