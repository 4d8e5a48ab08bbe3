use tokio::time::Instant;

use crate::{
    context::Received,
    http::{Filter, Request, Response},
};

/// Takes note of when a request arrived: deadlines and latencies count from here.
pub(crate) struct ReceivedTimestamp<H>(pub(crate) H);

impl<H: Filter> Filter for ReceivedTimestamp<H> {
    async fn call(&self, mut request: Box<Request>) -> Response {
        request.extensions_mut().insert(Received(Instant::now()));
        self.0.call(request).await
    }
}
