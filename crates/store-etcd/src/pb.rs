//! etcd's messages and clients, made by `cargo run -p concord-codegen`.

#![allow(
    missing_docs,
    unreachable_pub,
    rust_2018_idioms,
    clippy::all,
    clippy::str_to_string,
    reason = "generated code"
)]

pub(crate) mod etcdserverpb {
    include!("generated/etcdserverpb.rs");
}

pub(crate) mod mvccpb {
    include!("generated/mvccpb.rs");
}
