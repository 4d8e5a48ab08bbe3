//! Generates the protobuf code that is checked in under `crates/store-etcd/src/generated`.
//!
//! It runs by hand (`cargo run -p concord-codegen`) after a change of `proto/` or of the generators'
//! versions, never in a build: a fresh machine has no protoc and needs none, as the `.proto` files are
//! compiled by the pure-Rust protox. A test fails when what is checked in is not what this crate makes.
//!
//! Start with [`generate`].

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// One generated file: its name and its text.
#[derive(Debug, PartialEq, Eq)]
pub struct Generated {
    /// The name within the output directory.
    pub name: String,
    /// The Rust source.
    pub source: String,
}

/// Where the generated files are checked in.
pub fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/store-etcd/src/generated")
}

/// Compiles the `.proto` files to Rust, in the order of their names.
///
/// # Errors
///
/// When a `.proto` file does not compile or the temporary directory cannot be used.
pub fn generate() -> anyhow::Result<Vec<Generated>> {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let descriptors = protox::compile(["etcd.proto"], [&protos]).context("compiling etcd.proto")?;
    let scratch = tempfile::tempdir().context("making a temporary directory")?;
    tonic_prost_build::configure()
        .build_server(false)
        .bytes(".")
        .emit_rerun_if_changed(false)
        .out_dir(scratch.path())
        .compile_fds(descriptors)
        .context("generating Rust")?;
    read_all(scratch.path())
}

/// The files of a directory, in the order of their names.
///
/// # Errors
///
/// When the directory or a file in it cannot be read.
pub fn read_all(directory: &Path) -> anyhow::Result<Vec<Generated>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        let source = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        files.push(Generated { name, source });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}
