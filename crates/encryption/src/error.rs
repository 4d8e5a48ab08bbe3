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
    /// What a key management service encrypted was not stored as it is.
    #[error("{0}")]
    Malformed(String),
    /// A key management service has not said yet which key it uses.
    #[error("got unexpected nil transformer")]
    NoState,
    /// A key management service does not give the key.
    #[error("{0}")]
    Service(String),
    /// What each provider that could have written it said.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<OpenError>),
}

/// Why a value could not be sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The system has no random numbers.
    #[error("unable to read sufficient random bytes")]
    Random,
    /// A key management service has not said yet which key it uses.
    #[error("got unexpected nil transformer")]
    NoKey,
    /// And did not say for too long that it is still the same.
    #[error("{0}")]
    Expired(String),
}

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
    /// A key management service of the first version is asked for.
    #[error(
        "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set \
         --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
    )]
    KmsV1,
}

/// As upstream prints several errors.
fn aggregate(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.to_string(),
        all => format!("[{}]", all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}
