//! What this program is.

use concord_apis::Release;
use concord_server::Version;

use crate::emulation;

/// The version of the program.
pub(crate) const CONCORD: &str = env!("CARGO_PKG_VERSION");

/// The Kubernetes release whose API is spoken.
const KUBERNETES: (&str, &str, &str) = ("1", "36", "4");

/// What `/version` answers of a server that emulates a release. Commit, tree state and date come from the environment of
/// the build, so that the same source gives the same program; a release sets them.
pub(crate) fn info(emulated: Release) -> Version {
    let (major, minor, _) = KUBERNETES;
    Version {
        major: major.to_owned(),
        minor: minor.to_owned(),
        emulation_major: major.to_owned(),
        emulation_minor: emulated.minor().to_string(),
        min_compatibility_major: major.to_owned(),
        min_compatibility_minor: emulation::min_compatibility(emulated).minor().to_string(),
        git_version: format!("{}+concord-{CONCORD}", kubernetes()),
        git_commit: option_env!("CONCORD_GIT_COMMIT").unwrap_or_default().to_owned(),
        git_tree_state: option_env!("CONCORD_GIT_TREE_STATE").unwrap_or_default().to_owned(),
        build_date: option_env!("CONCORD_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z").to_owned(),
        go_version: concat!("rust", env!("CARGO_PKG_RUST_VERSION")).to_owned(),
        compiler: "rustc".to_owned(),
        platform: Version::platform(),
    }
}

/// What `concord version` prints.
pub(crate) fn summary() -> String {
    format!("Concord {CONCORD} (Kubernetes API {}, {})", kubernetes(), Version::platform())
}

fn kubernetes() -> String {
    let (major, minor, patch) = KUBERNETES;
    format!("v{major}.{minor}.{patch}")
}
