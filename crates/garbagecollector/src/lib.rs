//! The garbage collector: what has lost its owners is deleted, and nothing else ever is.
//!
//! It is a view of the log. [`GraphView`] keeps a [`Graph`] of owner references, fed by the replica with every change before
//! anybody can read it, so that there is nothing to list, to watch or to synchronise. The graph only says which objects a
//! change concerns. [`decide`] says what is to become of one, as a pure function of what its owners were found to be.
//! [`GarbageCollector`] finds that out in one state of the log and carries the decision out, in a transaction with
//! everything that it rests on: that an owner is absent, or replaced by another object of its name, or still waiting for
//! its dependents. If any of it is no longer so, nothing happens and the object is looked at again.
//!
//! It never deletes an object while it does not know of every one of its owners that it is gone or going: a kind that is
//! not served here, as of a newer server on the same store, or an object that cannot be read, is reason enough to wait.
//!
//! [`Index`] lists the objects of a resource with their uids and revisions in the order of their keys, for whoever has to
//! visit all of them: `Index::new(storage, &snapshot).iter()`, `.after(key)` to go on after an interruption, `.count()` for
//! how many there are. It takes no memory, see there. The storage version migrator has to see how values are sealed, and
//! so it reads pages of the store instead.
//!
//! Start with [`decide`], then [`Graph`] and [`GarbageCollector`].

mod collector;
mod decide;
mod graph;
mod index;
mod kinds;
mod look;
mod metadata;
mod queue;
mod uid;
mod view;
mod write;

pub use collector::GarbageCollector;
pub use decide::{Decision, Dependents, MOST_OWNERS, Owner, decide};
pub use graph::{Change, Graph, Key};
pub use index::{Index, Indexed};
pub use metadata::{Metadata, OwnerReference};
pub use uid::Uid;
pub use view::{GraphState, GraphView};
