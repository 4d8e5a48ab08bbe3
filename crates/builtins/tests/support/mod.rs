//! The published data of the releases, where it is at hand.

use std::{
    fs,
    path::{Path, PathBuf},
};

use concord_builtins::Release;
use serde_json::Value;

/// The directory of a release's data, or nothing but a line that says so.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn data(release: Release) -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = data.join(format!("kubernetes-v{release}"));
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: there is no ../shared/data");
    None
}

/// A JSON file of it.
pub(crate) fn json(path: &Path) -> Value {
    let text = fs::read(path).expect("a file of the data");
    serde_json::from_slice(&text).expect("JSON")
}

/// The files of a directory whose names end so.
pub(crate) fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of the data");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.to_string_lossy().ends_with(suffix)).collect()
}
