//! Admission as users configure it: by webhooks and by policies.
//!
//! [`AdmissionView`] is a view of the log: it knows every configuration before the replica shows it to anybody, and
//! publishes what it makes of them as an immutable value. [`DynamicAdmission`] makes the plugins of it, each under
//! upstream's name: [`MutatingAdmission`] changes objects by policies and by webhooks, [`ValidatingPolicies`] and
//! [`ValidatingWebhooks`] refuse them. What is not configured costs nothing.
//!
//! Texts, codes, order and what a webhook is sent are upstream's. The crate never follows what a webhook says beyond its
//! AdmissionReview, never waits for one longer than its configuration says, and never asks anybody about the
//! configurations of admission themselves: who could not change them could not repair them.
//!
//! Start with [`DynamicAdmission`], then `webhook/` and `policy/`.

mod criteria;
mod dynamic;
mod expressions;
mod measured;
mod mutating;
mod policy;
mod read;
mod request;
mod rule;
mod shared;
mod types;
mod view;
mod webhook;

/// Regular expressions as Go has them, for others who take some from operators.
pub use concord_cel::re2;
pub use dynamic::{Config, DynamicAdmission};
pub use measured::MeasuredAdmission;
pub use mutating::MutatingAdmission;
pub use policy::ValidatingPolicies;
pub use types::{ExpressionWarning, expression_warnings};
pub use view::{AdmissionView, Configurations};
pub use webhook::ValidatingWebhooks;
