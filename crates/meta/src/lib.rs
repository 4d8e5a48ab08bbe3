//! The words of the Kubernetes API as values.
//!
//! What every API server says, whatever resources it serves: how an error looks ([`Status`],
//! [`field`]), what groups, versions, kinds and resources are called ([`GroupVersionKind`] and its
//! relatives), how objects are selected ([`labels`], [`fields`]), what a name or an object's
//! metadata may contain ([`names`], [`objectmeta`]), what the query parameters of a request mean
//! ([`options`]) and how amounts of resources are written ([`Quantity`]).
//!
//! Clients match on these texts and codes, so they are kube-apiserver's, including its oddities;
//! every table test here is text in, text out. The crate never does I/O, never looks at a clock and
//! never draws a random number; objects are `serde_json` values and nothing panics on a bad one.
//!
//! Start with [`Status`], [`field::Error`] and [`options::ListOptions`].

mod confidential;
pub mod field;
pub mod fields;
pub mod go;
mod groups;
pub mod labels;
pub mod names;
pub mod objectmeta;
pub mod options;
mod quantity;
mod resource_version;
mod status;
mod user;
pub mod versions;

pub use confidential::{REDACTED, is_confidential};
pub use groups::{
    GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, InvalidGroupVersion,
    compare_kube_aware_versions,
};
pub use quantity::{Quantity, QuantityError, QuantityFormat};
pub use resource_version::{ResourceVersion, parse_resource_version};
pub use status::{CauseType, Outcome, Reason, RequestAttributes, Status, StatusCause, StatusDetails};
pub use user::UserInfo;
