//! Custom resources: served as their definitions in the log say.
//!
//! [`CustomResources`] follows the CustomResourceDefinitions in the log. It serves what they define through
//! [`concord_endpoints::Apis`], accepts their names and says so in their status, and empties and lets go those that
//! are being deleted. As admission it makes every write of a custom object depend on its definition: none is committed
//! that was prepared by a definition that is no longer the one in the log, or that is being deleted.
//!
//! What a definition may say, and what its schema makes of an object, is `concord-structural`'s.
//!
//! It never polls, and never compiles a schema twice that did not change.
//!
//! Start with [`CustomResources`], then `definition` and `strategy`.

mod cleanup;
mod columns;
mod conditions;
mod controller;
mod definition;
mod groups;
mod ledger;
mod names;
mod progress;
mod resources;
mod review;
mod serving;
mod settled;
mod strategy;
mod webhook;

pub use controller::CustomResourceController;
pub use progress::{DefinitionsView, Progress};
pub use serving::CustomResources;
