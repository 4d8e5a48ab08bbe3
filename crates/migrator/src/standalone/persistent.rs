//! A server that is asked again when there is no answer.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{Answer, Ask, Server};

/// How often something is asked before it counts that there is no answer. Behind one address there may be several servers,
/// of which one is gone: the next attempt reaches another one.
const TRIES: u32 = 4;

/// The first pause; the next ones are twice as long each.
const PAUSE: Duration = Duration::from_millis(50);

/// Whatever is asked here may be asked twice: what changes something says of which state.
pub(crate) struct Persistent<S>(pub(crate) Arc<S>);

#[async_trait]
impl<S: Server> Server for Persistent<S> {
    async fn ask(&self, ask: Ask, path: &str) -> Result<Answer, String> {
        for tries in 1..TRIES {
            if let Ok(answer) = self.0.ask(ask.clone(), path).await {
                return Ok(answer);
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
        }
        self.0.ask(ask, path).await
    }
}
