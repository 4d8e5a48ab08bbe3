//! What the server itself keeps true: default objects, the life of namespaces, the addresses of services.
//!
//! Two kinds of things are here. Admission, which takes part in requests: [`NamespaceLifecycle`] lets nothing into a
//! namespace that is missing or being deleted, [`ServiceAllocation`] gives Services their addresses and node ports,
//! [`ResourceQuota`] keeps to what namespaces may have. And tasks, which [`Controllers`] owns: one empties namespaces that
//! are being deleted, one gives the others what their pods need, one fills the Secrets that hold tokens, one puts the objects
//! in place that every cluster has ([`Bootstrap`]), one says in `default/kubernetes` where the servers are, one tells
//! extension API servers whom to believe ([`ClusterAuthentication`]), one lets storage and groups of pods go that are not
//! in use ([`InUseProtection`]), one holds what Services use that others wrote ([`ServiceRepair`]). Two more only one server
//! has to run: [`QuotaController`] counts what is used, [`PolicyStatus`] says which expressions do not fit.
//!
//! What must hold at every moment is a condition of the transaction that could break it, never something that a task
//! repairs afterwards. Tasks may run on any number of servers at once: whatever they do is decided on a state and
//! committed only if that state still holds.
//!
//! The crate knows built-in kinds only by name, through [`concord_registry::Resources`]; what is not served is left
//! alone. It never writes past the registry, except for keys that are no objects, and for the IPAddresses that belong to
//! Services of others.
//!
//! Start with [`Controllers`], [`NamespaceLifecycle`] and [`ServiceAllocation`].

mod backoff;
mod bootstrap;
mod controllers;
mod error;
mod lifecycle;
mod namespaces;
mod own;
mod policy_status;
mod protection;
mod queue;
mod quota;
mod service_accounts;
mod services;

pub use bootstrap::{Bootstrap, ClusterAuthentication};
pub use controllers::{Config, Controllers};
pub use error::Error;
pub use lifecycle::NamespaceLifecycle;
pub use namespaces::{Elsewhere, Left};
pub use policy_status::PolicyStatus;
pub use protection::InUseProtection;
pub use quota::{QuotaController, ResourceQuota};
pub use service_accounts::ServiceAccountsConfig;
pub use services::{IpRange, NodePortRange, ServiceAllocation, ServiceRepair};
