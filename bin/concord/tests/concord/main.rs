//! The program as its users meet it.

mod discovery;
mod kube_rs;
mod kubectl;
mod serve;
mod store;
mod support;
