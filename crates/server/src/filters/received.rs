use async_trait::async_trait;
use tokio::time::Instant;

use crate::{
    context::Received,
    http::{Handler, Request, Response},
};

/// Takes note of when a request arrived: deadlines and latencies count from here.
pub(crate) struct ReceivedTimestamp<H>(pub(crate) H);

#[async_trait]
impl<H: Handler> Handler for ReceivedTimestamp<H> {
    async fn handle(&self, mut request: Request) -> Response {
        request.extensions_mut().insert(Received(Instant::now()));
        self.0.handle(request).await
    }
}
