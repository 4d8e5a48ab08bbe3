//! What tests share: real etcd processes and clusters, a TCP proxy that injects faults, webhooks that answer anything,
//! a key management service, and an auditor of logs.
//!
//! Everything stays on loopback and ends with the value that owns it: processes are killed by their own
//! pid, directories removed, tasks aborted. Nothing here is part of a server, and nothing here lets a
//! test pass that could not run: a missing etcd is an error that says how to install it.
//!
//! Start with [`etcd::Cluster`], [`proxy::Proxy`], [`webhook::WebhookServer`],
//! [`kms::KmsPlugin`] and [`audit::Auditor`].

pub mod audit;
pub mod etcd;
pub mod kms;
pub mod process;
pub mod proxy;
pub mod webhook;
