//! What the server answers when a patch is refused.

/// The kind of Status an error of this crate becomes. The crate knows codes and reasons, not the Status
/// object: that belongs to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 400 BadRequest with the error's own text.
    BadRequest,
    /// 409 Conflict, with one cause per conflicting field.
    Conflict,
    /// 413 RequestEntityTooLarge.
    RequestEntityTooLarge,
    /// 422 Invalid with a fixed text: upstream does not tell the client what was wrong.
    Invalid,
    /// 500 without a reason, with the error's own text.
    Untyped,
}

impl Answer {
    /// The text of every [`Answer::Invalid`].
    pub const OPAQUE: &'static str = "the server rejected our request due to an error in our request";

    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Conflict => 409,
            Self::RequestEntityTooLarge => 413,
            Self::Invalid => 422,
            Self::Untyped => 500,
        }
    }

    /// The Status reason; `None` where upstream sends none.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::BadRequest => Some("BadRequest"),
            Self::Conflict => Some("Conflict"),
            Self::RequestEntityTooLarge => Some("RequestEntityTooLarge"),
            Self::Invalid => Some("Invalid"),
            Self::Untyped => None,
        }
    }

    /// The Status message for an error with this text.
    pub(crate) fn message(self, error: &dyn std::error::Error) -> String {
        match self {
            Self::RequestEntityTooLarge => format!("Request entity too large: {error}"),
            Self::Invalid => Self::OPAQUE.to_owned(),
            Self::BadRequest | Self::Conflict | Self::Untyped => error.to_string(),
        }
    }
}
