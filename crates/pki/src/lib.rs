//! The certificates a server makes for itself: an authority of its own and a serving certificate
//! signed by it.
//!
//! Files are named as kubeadm names them (`ca.crt`, `ca.key`, `apiserver.crt`, `apiserver.key`), so
//! that tools which know the one find their way in the other. An authority, once made, is never
//! overwritten: clients trust it. The serving certificate is issued anew whenever a client would, now or
//! soon, refuse it.
//!
//! The crate never decides what time it is or what a server is called, never talks to the network and
//! never deletes anything.
//!
//! Start with [`ServingPki::open_or_create`], then [`Authority`] for what happens underneath.

mod authority;
mod error;
mod files;
mod names;
mod serving;

pub use authority::{Authority, CertifiedPair};
pub use error::Error;
pub use names::ServingNames;
pub use serving::{RENEW_BEFORE, ServingPki};
