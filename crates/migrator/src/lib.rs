//! The storage version migrator (KEP-4192): rewrites the stored objects of a resource in the version, and with the
//! encryption key, that all live servers agree on.
//!
//! A StorageVersionMigration says which resource. What is done about it next is decided by a pure function
//! (`decide.rs`), so that the rules can be read and tested in one place:
//!
//! * nothing is rewritten before all servers agree, and the checkpoint is taken after that;
//! * objects are walked in key order as they are kept, and only those are written that have another form: the write
//!   changes nothing, passes the registry like everybody's, and is refused if the object has changed in between;
//! * an object that cannot be written is reported, and the others are done nevertheless;
//! * a migration succeeds only with a census of the raw keys that finds nothing else, under an agreement that held
//!   from before the checkpoint to after the census. Only then is `storedVersions` of a definition shortened.
//!
//! It must never call a migration successful that it has not proved, write an object that has the right form already, or
//! create one that is gone.
//!
//! Start with [`Migrator`], then `decide.rs` and `worker.rs`.

mod agreement;
mod audit;
mod census;
mod choose;
mod controller;
mod decide;
mod definitions;
mod events;
mod limit;
mod load;
mod meter;
mod migration;
mod pace;
mod progress;
mod read;
mod rewrite;
mod shared;
pub mod standalone;
mod state;
mod status;
mod survive;
mod trigger;
mod walk;
mod worker;

/// The rules by which a migration is carried out, as a function of what is known: for whoever wants to check them.
pub mod rules {
    pub use crate::{
        agreement::{Agreed, Writers},
        decide::{Next, Orders, Run, Stage, next},
    };
}

pub use census::{Census, Row};
pub use controller::Migrator;
pub use migration::{
    AUTOMATIC_ANNOTATION, CANCELLED_ANNOTATION, DRY_RUN_ANNOTATION, PAUSED_ANNOTATION, PROGRESS_ANNOTATION,
    RATE_ANNOTATION,
};
pub use progress::{Counted, Failure, Progress};
pub use shared::Config;
pub use state::{STATE_NAME, STATE_NAMESPACE, StorageState};
