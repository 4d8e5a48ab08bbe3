//! What this program is.

use concord_server::Version;

/// The version of the program.
pub(crate) const CONCORD: &str = env!("CARGO_PKG_VERSION");

/// The Kubernetes release whose API is spoken.
const KUBERNETES: (&str, &str, &str) = ("1", "36", "4");

/// The oldest minor release a server of this one shares a store with: one before, as upstream.
const MIN_COMPATIBILITY_MINOR: &str = "35";

/// What `/version` answers. Commit, tree state and date come from the environment of the build, so that the
/// same source gives the same program; a release sets them.
pub(crate) fn info() -> Version {
    let (major, minor, _) = KUBERNETES;
    Version {
        major: major.to_owned(),
        minor: minor.to_owned(),
        emulation_major: major.to_owned(),
        emulation_minor: minor.to_owned(),
        min_compatibility_major: major.to_owned(),
        min_compatibility_minor: MIN_COMPATIBILITY_MINOR.to_owned(),
        git_version: format!("{}+concord-{CONCORD}", kubernetes()),
        git_commit: option_env!("CONCORD_GIT_COMMIT").unwrap_or_default().to_owned(),
        git_tree_state: option_env!("CONCORD_GIT_TREE_STATE").unwrap_or_default().to_owned(),
        build_date: option_env!("CONCORD_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z").to_owned(),
        go_version: concat!("rust", env!("CARGO_PKG_RUST_VERSION")).to_owned(),
        compiler: "rustc".to_owned(),
        platform: Version::platform(),
    }
}

/// The Kubernetes release as documents about its API tell it: `1.36`.
pub(crate) fn release() -> String {
    let (major, minor, _) = KUBERNETES;
    format!("{major}.{minor}")
}

/// What `concord version` prints.
pub(crate) fn summary() -> String {
    format!("Concord {CONCORD} (Kubernetes API {}, {})", kubernetes(), Version::platform())
}

fn kubernetes() -> String {
    let (major, minor, patch) = KUBERNETES;
    format!("v{major}.{minor}.{patch}")
}
