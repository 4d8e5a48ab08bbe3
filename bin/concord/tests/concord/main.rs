//! The program as its users meet it.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod access;
mod aggregation;
mod answers;
mod components;
mod custom_resources;
mod discovery;
mod encryption;
mod fleet;
mod forged;
mod garbage;
mod guard;
mod kube_rs;
mod kubectl;
mod leaks;
mod migration;
mod mutations;
mod openapi;
mod overload;
mod peers;
mod plugins;
mod pods;
mod policies;
mod populated;
mod python;
mod releases;
mod reviews;
mod serve;
mod storage_versions;
mod store;
mod strangers;
mod stuck;
mod support;
mod tokens;
mod transport;
mod webhooks;
