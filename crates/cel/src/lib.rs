//! The Common Expression Language with the libraries and cost limits of Kubernetes.
//!
//! Rules of custom resources, match conditions and admission policies are written in this language. An [`Env`] says
//! which variables there are and which version's functions; it compiles an expression to a [`Program`]: parsed,
//! type-checked, and with an estimate of what it can cost. A program is evaluated over JSON that it borrows, and stops
//! when it costs more than its [`Budget`] allows.
//!
//! Types, texts and costs are those of Kubernetes 1.36 (cel-go 0.26): what upstream accepts, rejects and charges, this
//! crate does too. It does no input or output, never panics on an expression or on data, and takes no more time or
//! memory than the cost limit allows.
//!
//! Look first at [`Env`], [`Program`], [`Decl`] and [`Val`].

pub mod admission;
mod ast;
mod authorizer;
mod check;
mod cost;
mod decl;
pub mod devices;
mod error;
mod escape;
mod eval;
mod functions;
mod library;
mod literals;
mod message;
mod parse;
mod plan;
mod program;
mod schema;
mod source;
mod types;
mod value;
mod version;

pub use authorizer::{Authorizer, AuthorizerValue, Check, CheckTarget, Decision, ResourceTarget};
pub use concord_re2 as re2;
pub use cost::CostEstimate;
pub use decl::{Decl, DeclKind, FieldDecl, ListSemantics, ObjectDecl};
pub use error::EvalError;
pub use escape::escape;
pub use library::{Cidr, Format, Quantity, Semver, Url};
pub use message::Message;
pub use program::{Activation, Budget, CompileError, Env, Program};
pub use schema::MAX_REQUEST_BYTES;
pub use source::{Issue, Issues};
pub use types::Type;
pub use value::{Key, LazyMap, List, MapValue, Text, Timestamp, Val};
pub use version::Version;
