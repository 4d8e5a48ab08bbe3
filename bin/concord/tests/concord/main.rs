//! The program as its users meet it.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod access;
mod discovery;
mod kube_rs;
mod kubectl;
mod serve;
mod store;
mod support;
