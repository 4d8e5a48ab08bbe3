use concord_meta::field::Error as FieldError;

/// Why a stored value cannot be opened, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The value was encrypted, and nobody here encrypts.
    #[error("identity transformer tried to read encrypted data")]
    Encrypted,
    /// No provider wrote this.
    #[error("no matching prefix found")]
    NoProvider,
    /// A provider of this kind wrote it, but with a key that is not known.
    #[error("no matching key was found for the provided {0} transformer")]
    NoKey(&'static str),
    /// There is less than any value takes.
    #[error("the stored data was shorter than the required size")]
    TooShort,
    /// Not a number of whole blocks.
    #[error("the stored data is not a multiple of the block size")]
    NoBlocks,
    /// The last block does not say how long the value is.
    #[error("invalid PKCS7 data (empty or not padded)")]
    NotPadded,
    /// The padding is not what it should be.
    #[error("invalid padding on input")]
    Padding,
    /// The value, its key or its place is not what it was when it was sealed.
    #[error("cipher: message authentication failed")]
    Authentication,
    /// The same, for secretbox.
    #[error("output array was not large enough for encryption")]
    Secretbox,
    /// What each provider that could have written it said.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<OpenError>),
}

/// A value could not be sealed: the system has no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unable to read sufficient random bytes")]
pub struct SealError;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is nothing in the file.
    #[error("the encryption provider configuration is empty")]
    Empty,
    /// It cannot be read.
    #[error("error decoding encryption provider configuration: {0}")]
    Malformed(String),
    /// It is about something else.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    Kind {
        /// What it says it is.
        kind: String,
        /// In which version.
        api_version: String,
    },
    /// It contradicts itself.
    #[error("{}", aggregate(.0))]
    Invalid(Vec<FieldError>),
    /// One of its rules would never be used.
    #[error("resource {resource:?} is masked by earlier rule {rule:?}")]
    Masked {
        /// The resource as it is written in the file.
        resource: String,
        /// What was said about it before.
        rule: String,
    },
    /// A key management service is asked for.
    #[error("key management services are not supported yet: provider {0:?}")]
    Kms(String),
}

/// As upstream prints several errors.
fn aggregate(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.to_string(),
        all => format!("[{}]", all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}
