//! Server-side apply, and the record of who owns which field.
//!
//! [`FieldManager`] is the entry: `update` after every create, update and patch, `apply` for an apply patch.
//! What it works on is [`crate::fields::FieldSet`], stored in metadata.managedFields, and the schema of the
//! kind, given by [`Versions`] and [`crate::typed::Type`].

mod conflict;
mod field_manager;
mod filter;
mod last_applied;
mod managed;
mod object;
mod scale;
mod time;
mod timestamps;
mod updater;
mod user_agent;
mod versions;

pub use conflict::{Conflict, ConflictCause, Conflicts};
pub use field_manager::{ApplyError, ApplyRequest, FieldManager};
pub use filter::ResetFields;
pub use managed::{Managed, ManagedFieldsError, ManagerId, Operation, Owned};
pub use scale::ScalePaths;
pub use time::Time;
pub use timestamps::ignore_timestamps;
pub use user_agent::manager_of_user_agent;
pub use versions::{ConvertError, Versions};
