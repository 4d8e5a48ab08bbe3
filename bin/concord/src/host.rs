//! What the program takes from the machine it runs on.

use std::{
    env, fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::cli::DataOptions;

/// The embedded store's file in a data directory.
const STORE_FILE: &str = "store.db";

/// The data directory to use, whether it exists or not.
pub(crate) fn data_dir(options: &DataOptions) -> anyhow::Result<PathBuf> {
    if let Some(directory) = &options.data_dir {
        return Ok(directory.clone());
    }
    let from = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = from("XDG_DATA_HOME").or_else(|| from("HOME").map(|home| home.join(".local/share")));
    let base =
        base.context("neither XDG_DATA_HOME nor HOME is set: say where to keep data with --data-dir")?;
    Ok(base.join("concord"))
}

/// Makes a directory that only its owner can look into, unless it exists.
pub(crate) fn make_private(directory: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("cannot make the directory {}", directory.display()))
}

/// The embedded store of the data directory.
pub(crate) fn store_file(options: &DataOptions) -> anyhow::Result<PathBuf> {
    Ok(data_dir(options)?.join(STORE_FILE))
}

/// What this machine calls itself, if it says so where Linux does.
pub(crate) fn name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}
