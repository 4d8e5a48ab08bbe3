//! Calls webhooks of every kind: those of admission, and those that convert custom resources.
//!
//! A [`ClientConfig`] says where a webhook is (a URL, or a Service of the cluster) and whom to believe that it is the
//! webhook (`caBundle`). [`Client::call`] posts a JSON body there and gives back the body of the answer. Connections
//! are kept and used again. Who calls decides what the bodies mean.
//!
//! Where a Service is reached is decided by a [`Resolver`]: [`Services`] looks it up in the log, as kube-apiserver does;
//! [`Overrides`] stands before it where Services have no addresses that this machine could reach.
//!
//! [`dial_service`] and [`reason`] are for others who talk to servers behind Services.
//!
//! The texts of [`CallError`] are those of Go's HTTP client as far as people and tests look at them. It never follows a
//! redirect, never talks without TLS, never reads more of an answer than its limit, and never waits longer than it was
//! told to.
//!
//! Start with [`Client`] and [`ClientConfig`].

mod client;
mod config;
mod dial;
mod error;
mod resolve;
mod response;
mod services;

pub use client::{Called, Client, DEFAULT_ANSWER_LIMIT};
pub use config::{ClientConfig, InvalidConfig, ServiceReference, Target};
pub use dial::dial_service;
pub use error::{CallError, reason};
pub use resolve::{Address, InvalidAddress, Overrides, ResolveError, Resolver};
pub use services::{Routing, Services};
