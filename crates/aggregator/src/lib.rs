//! The aggregation layer: what other servers serve becomes part of what this one serves.
//!
//! An APIService says who serves a version of a group: this server itself, or another one behind a Service.
//! [`ApiServicesView`] knows them from the log, so that whoever was told that one is stored finds it served.
//! [`Registration`] keeps those of what this server serves itself. [`Aggregator`] sends requests on, and shows what other
//! servers have in discovery and in the OpenAPI documents; its [`AggregationController`] asks them, and says in the status of
//! each APIService whether its server can be reached.
//!
//! It never lets one server keep anybody waiting but those who ask for what that server has, never reads more of an answer
//! than its limit nor for longer than its time, and never believes a server about anything but its own version.
//!
//! Start with [`Aggregator`], then `keeper.rs` for how a server is looked after and `catalogue.rs` for what becomes of what
//! it says.

mod aggregator;
mod availability;
mod catalogue;
mod discovered;
mod fetch;
mod keeper;
mod namespaces;
mod proxy;
mod registration;
mod remote;
mod service;
mod view;

pub use aggregator::{AggregationController, Aggregator, Elsewhere, Settings};
pub use namespaces::RemoteContent;
pub use registration::{Registration, RegistrationSettings};
pub use view::{ApiServices, ApiServicesView};
