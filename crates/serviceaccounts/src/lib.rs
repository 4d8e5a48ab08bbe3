//! Service accounts: their tokens, made and checked, and what pods get of them.
//!
//! A [`TokenGenerator`] signs tokens, a [`ServiceAccountAuthenticator`] finds out whose a token is. Between them is nothing
//! but keys and the log: a token is good if one of the keys signed it and the objects it is bound to are still the same
//! ones. The signature of a token is checked once and remembered; what it is bound to is looked up in the newest
//! snapshot for every request, so that a token ends with its pod, its secret or its account.
//!
//! Around them: [`TokenRequests`] and [`TokenReviews`] are the APIs, [`OpenId`] tells others with which keys they can
//! check tokens themselves, and [`ServiceAccountAdmission`] gives pods an account and a volume with a token.
//!
//! The crate never reads files, and neither keys nor tokens are part of its errors or logs.

mod admission;
mod authenticator;
mod claims;
mod config;
mod error;
mod issuer;
mod jwt;
mod keys;
mod objects;
mod openid;
#[cfg(test)]
mod testing;
mod token_request;
mod token_review;

pub use admission::ServiceAccountAdmission;
pub use authenticator::ServiceAccountAuthenticator;
pub use claims::LEGACY_ISSUER;
pub use config::Config;
pub use error::Error;
pub use issuer::TokenGenerator;
pub use keys::{Algorithm, PublicKey, SigningKey, VerificationKeys};
pub use objects::Objects;
pub use openid::OpenId;
pub use token_request::TokenRequests;
pub use token_review::TokenReviews;
