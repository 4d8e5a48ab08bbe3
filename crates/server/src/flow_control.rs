//! Who waits when there is too much to do.

use async_trait::async_trait;
use http::HeaderValue;

use crate::{Attributes, Deadline};

/// Decides which requests run now, which wait and which are sent away.
#[async_trait]
pub trait FlowControl: Send + Sync + 'static {
    /// Waits until the request may run.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue.
    async fn admit(&self, request: &Attributes<'_>, deadline: Deadline) -> Admission;
}

/// What was decided about a request.
pub struct Admission {
    /// The uid of the FlowSchema that the request belongs to, which answers tell.
    pub flow_schema: HeaderValue,
    /// The uid of its priority level.
    pub priority_level: HeaderValue,
    /// The request's seat, to be dropped when it is done; `None` if it is sent away.
    pub seat: Option<Seat>,
}

/// A seat: whoever has it runs.
pub struct Seat(Option<Box<dyn Send>>);

impl Seat {
    /// A seat of which there are as many as anybody wants.
    #[must_use]
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// A seat that is given back when `guard` is dropped.
    pub fn new(guard: impl Send + 'static) -> Self {
        Self(Some(Box::new(guard)))
    }

    /// Whether it has to be given back.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.0.is_some()
    }
}
