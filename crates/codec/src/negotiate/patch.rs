use super::NegotiationError;

/// What kind of patch a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902, `application/json-patch+json`.
    Json,
    /// RFC 7386, `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`.
    StrategicMerge,
    /// Server-side apply, `application/apply-patch+yaml`.
    Apply,
}

impl PatchType {
    /// What built-in resources take, in upstream's order.
    pub const BUILT_IN: &[Self] = &[Self::Json, Self::Merge, Self::StrategicMerge, Self::Apply];
    /// What custom resources take, in upstream's order.
    pub const CUSTOM: &[Self] = &[Self::Json, Self::Merge, Self::Apply];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::StrategicMerge => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// What kind of patch a body is by its `Content-Type`, of which everything from a semicolon on is
/// ignored.
///
/// # Errors
///
/// [`NegotiationError::UnsupportedMediaType`] when it is none of those offered.
pub fn negotiate_patch(content_type: &str, offer: &[PatchType]) -> Result<PatchType, NegotiationError> {
    let name = content_type.split(';').next().unwrap_or_default();
    let found = offer.iter().copied().find(|patch| patch.as_str() == name);
    let accepted = || offer.iter().map(|patch| patch.as_str().to_owned()).collect();
    found.ok_or_else(|| NegotiationError::UnsupportedMediaType { accepted: accepted() })
}
