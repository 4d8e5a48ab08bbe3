//! Role-based access control, as upstream has it.
//!
//! The rules are a view of the log: [`RulesView`] is fed with every change of Roles, ClusterRoles and their bindings before
//! the replica shows it to anybody, and publishes an immutable [`Policy`]. [`Rbac`] decides with the newest one, without a
//! lock. A decision is never older than a change that this server has acknowledged: [`InForce`] holds the answer of a
//! write to these kinds back until the view has it.
//!
//! Around that stand: [`EscalationCheck`], by which nobody grants what they do not have themselves; [`Bootstrap`], which
//! keeps upstream's default roles and bindings in place, as a table in `facts/`; and [`Aggregation`], which fills the
//! rules of aggregated cluster roles.
//!
//! Nothing here denies: what no rule allows is left to whoever else is asked. An object that cannot be read grants
//! nothing.
//!
//! Start with [`Policy`], then [`Rbac`].

mod aggregation;
mod authorizer;
mod bootstrap;
mod covers;
mod escalation;
mod in_force;
mod object;
mod own;
mod policy;
mod reconcile;
mod rule;
mod table;
mod view;

pub use aggregation::Aggregation;
pub use authorizer::Rbac;
pub use bootstrap::{Bootstrap, Bootstrapped};
pub use covers::{covers, describe_missing};
pub use escalation::EscalationCheck;
pub use in_force::InForce;
pub use object::{Binding, ClusterRole, RoleRef, Subject};
pub use policy::{Granted, MissingRole, Policy, Refused};
pub use rule::PolicyRule;
pub use view::RulesView;
