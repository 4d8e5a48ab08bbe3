//! The certificates a server makes for itself: an authority of its own, a serving certificate and an
//! administrator's client certificate signed by it, the kubeconfig that holds the latter, the certificate by which servers
//! behind this one know it, of an authority of its own, and the key that signs the tokens of service accounts.
//! Also whom a server believes when it is the client itself ([`Trust`]).
//!
//! Files are named as kubeadm names them (`ca.crt`, `ca.key`, `apiserver.crt`, `apiserver.key`; the
//! administrator's are `admin.crt` and `admin.key`, the key of service accounts `sa.key` and `sa.pub`), so that tools which know the one find their way in the
//! other. An authority, once made, is never overwritten: clients trust it. The other certificates are issued
//! anew whenever a client or a server would, now or soon, refuse them. Several servers may share a directory:
//! only one at a time makes something in it, and the others find it made.
//!
//! The crate never decides what time it is or what a server is called, never talks to the network and
//! never deletes anything.
//!
//! Start with [`ServingPki::open_or_create`] and [`AdminPki::open_or_create`], then [`Authority`] for what
//! happens underneath.

mod admin;
mod authority;
mod bundle;
mod client;
mod directory;
mod error;
mod files;
mod front_proxy;
mod kubeconfig;
mod names;
mod service_accounts;
mod serving;
mod trust;

pub use admin::AdminPki;
pub use authority::{Authority, CertifiedPair};
pub use bundle::combine_bundles;
pub use error::Error;
pub use front_proxy::FrontProxyPki;
pub use kubeconfig::Kubeconfig;
pub use names::ServingNames;
pub use service_accounts::ServiceAccountKey;
pub use serving::{RENEW_BEFORE, ServingPki, load_identity};
pub use trust::{ClientIdentity, Trust, TrustError, client_tls};
