//! Who the servers of a fleet are, and which versions each of them stores objects in.
//!
//! The decisions are made in `concord-storageversion`; this crate carries them out. [`FleetView`] keeps what the log says
//! about leases and StorageVersions, fed by the replica. [`Fleet`] is this server's part in it: [`Fleet::gate`] is what
//! every write of the registry passes, and three tasks do the rest: one keeps the identity lease (`identity.rs`), one keeps
//! the entries of this server true (`registrar.rs`), one removes what other servers left behind (`collector.rs`).
//!
//! It must never let a write through that the log does not allow: what is known here may be a little old, so everything
//! that is concluded from it is compared again in the transaction. And it must never write what is there already.
//!
//! Start with [`Fleet`], then `gate.rs`.

mod collector;
mod commit;
mod fleet;
mod gate;
mod identity;
mod progress;
mod records;
mod registrar;
mod view;

pub use fleet::{Error, Fleet, Settings};
pub use view::{AgreedSince, FleetState, FleetView};
