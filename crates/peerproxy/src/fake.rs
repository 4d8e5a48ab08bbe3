//! A transport that answers as tests want.

use std::{future::Future, net::SocketAddr, pin::Pin};

use async_trait::async_trait;
use concord_server::{Request, Response, UserInfo};
use parking_lot::Mutex;

use crate::transport::{SendError, Transport};

type Answer = Pin<Box<dyn Future<Output = Result<Response, SendError>> + Send>>;

/// Answers every request with what a function says, and remembers to whom it was sent.
pub(crate) struct Fake<F> {
    answer: F,
    pub(crate) sent: Mutex<Vec<(u16, String)>>,
}

impl<F: Fn(u16, Request) -> Answer + Send + Sync + 'static> Fake<F> {
    pub(crate) fn new(answer: F) -> Self {
        Self { answer, sent: Mutex::default() }
    }
}

#[async_trait]
impl<F: Fn(u16, Request) -> Answer + Send + Sync + 'static> Transport for Fake<F> {
    async fn send(&self, to: SocketAddr, user: &UserInfo, request: Request) -> Result<Response, SendError> {
        self.sent.lock().push((to.port(), user.name.clone()));
        (self.answer)(to.port(), request).await
    }

    fn forget(&self, _: SocketAddr) {}
}
