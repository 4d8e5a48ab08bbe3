//! How the servers of a fleet agree on the versions they store objects in (KEP-2339), as pure functions.
//!
//! Every server says in a StorageVersion object per resource which version it writes, *before* it writes. Upstream
//! checks that in one request and writes in another, and most of its races are between the two. Here every decision
//! comes with what must still hold when it is committed, a list of [`Holds`], and whoever carries it out puts them into
//! the transaction:
//!
//! * [`gate`]: a server may write an object in a version while its identity lease is the one it acquired, and the
//!   StorageVersion of the resource is the one in which it saw its own entry with that version. So the publication of
//!   another version is at the same moment the end of every write in the old one: nothing has to be drained.
//! * [`registration`], [`withdrawal`]: an entry is written by the holder of the lease, onto the object it was decided on,
//!   and for a custom resource by the newest definition.
//! * [`collection`]: an entry is taken away only in a transaction that finds the lease of its server gone.
//! * [`agreement`]: what a migrator may rely on: *every live server* has an entry, and all entries have one version.
//! * [`lease_step`]: what a server does about its identity lease.
//!
//! The server calls these functions, and a model explores the very same ones over all interleavings of
//! crashes, restarts, delays and takeovers. So nothing here may do I/O, look at a clock or be random.
//!
//! Start with [`Holds`], [`Step`] and [`gate`]; `status.rs` has the wire form of the API.

mod agreement;
mod collection;
mod gate;
mod identity;
mod lease;
mod record;
mod registration;
mod status;
mod step;

pub use agreement::{Agreement, Disagreement, agreement, fingerprint};
pub use collection::{EMPTY_GRACE_SECONDS, Membership, abandoned, collection};
pub use gate::{Closed, gate};
pub use identity::{
    ADVERTISED_ANNOTATION, COMPONENT, HOSTNAME_LABEL, IDENTITY_LABEL, Identity, NAMESPACE,
    REGISTERS_ANNOTATION, hostname_label, server_id,
};
pub use lease::{Lease, LeaseStep, is_expired, lease_step};
pub use record::{Owner, Record, object_name, order, parse_object_name, priority};
pub use registration::{Phase, cannot_read, phase, registration, withdrawal};
pub use status::{
    Condition, ENCRYPTION_ANNOTATION, Entry, Keys, Status, common_encoding_version, derive,
    encryption_annotation,
};
pub use step::{Fence, Found, Holds, Step};
