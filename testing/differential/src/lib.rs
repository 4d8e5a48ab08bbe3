//! Sends the same requests to any two Kubernetes API servers and tells where status, headers and bodies differ, apart
//! from what must differ: uids, times and revisions.
//!
//! The requests are tables that a person can read (`tables/`): each case is a request as it goes over the wire, and may
//! carry the answer that kube-apiserver gave, in short. So one table serves three ends: comparing two servers, writing
//! down what one answers, and testing Concord where there is no other server.
//!
//! It never repairs what a table says: odd requests are sent byte for byte, and every wait and every answer is bounded.
//!
//! Start with [`Case`] and [`Session`]; [`Server`] is where to send them.

mod compare;
mod expand;
mod kubeconfig;
mod mask;
mod session;
mod short;
mod table;
mod wire;

pub use compare::differences;
pub use expand::Variables;
pub use kubeconfig::{Server, load};
pub use session::{Outcome, Session};
pub use short::short;
pub use table::{Case, Sweep, Table};
pub use wire::{Answer, Wire};
