use std::{error::Error, io, sync::Arc, time::Duration};

use concord_server::Request;

/// Why there is no answer.
///
/// The texts say what happened and name no address: they may reach clients.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// There is no connection.
    #[error("cannot connect: {0}")]
    Connect(Arc<io::Error>),
    /// There was no connection in time.
    #[error("no connection within {0:?}")]
    ConnectTimeout(Duration),
    /// The connection broke before there was an answer.
    #[error("no answer: {}", innermost(&**.0))]
    NoAnswer(Arc<dyn Error + Send + Sync>),
    /// Who asks cannot be told, so the other server would take the request for somebody else's.
    #[error("the user's name, groups or extras cannot be carried in a header")]
    Identity,
    /// The connection of the client cannot be upgraded.
    #[error("the connection cannot be upgraded")]
    NotUpgradable,
    /// The other side neither upgraded the connection nor said why not.
    #[error("invalid upgrade response: status code {0}")]
    UpgradeResponse(u16),
}

/// Hyper's own texts say little; what caused them says more.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// There is no answer to a request.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: ForwardError,
    /// The request as it came, if another server may be asked: nothing of it was sent, or it is a read without a body.
    pub request: Option<Box<Request>>,
}
