/// Why something of this crate cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No key to sign with in a file that should have one.
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
    /// No key to verify with in a file that should have some.
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKeys,
    /// A signature could not be made.
    #[error("the token could not be signed")]
    Sign,
    /// The issuer cannot be.
    #[error("service-account-issuer {0}")]
    Issuer(String),
    /// How long tokens may live at most is out of bounds.
    #[error("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")]
    MaxExpiration,
    /// A URL that relying parties cannot use.
    #[error("{0}")]
    Discovery(String),
    /// A resource that service accounts cannot do without is not served.
    #[error("{0} of v1 are not served")]
    NotServed(&'static str),
}
