//! Errors of evaluation.

/// Why an evaluation has no value. The texts are cel-go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression failed: a missing key, a division by zero and the like.
    #[error("{0}")]
    Failed(String),
    /// The expression costs more than one may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// All expressions together cost more than they may.
    #[error("validation failed due to running out of cost budget, no further validation rules will be run")]
    Budget,
}

impl EvalError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Whether `||` and `&&` may ignore it. A limit is never ignored.
    pub(crate) fn is_absorbable(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}
