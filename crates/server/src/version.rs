use serde::Serialize;

/// What `/version` says, with upstream's fields: clients parse the numbers, people read the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The major version of the Kubernetes API spoken.
    pub major: String,
    /// The minor version of the Kubernetes API spoken.
    pub minor: String,
    /// The major version the server behaves as.
    pub emulation_major: String,
    /// The minor version the server behaves as.
    pub emulation_minor: String,
    /// The oldest major version the server can share a store with.
    pub min_compatibility_major: String,
    /// The oldest minor version the server can share a store with.
    pub min_compatibility_minor: String,
    /// The Kubernetes version, with the program's own as build metadata.
    pub git_version: String,
    /// The commit the program was built from.
    pub git_commit: String,
    /// Whether that commit was all it was built from: `clean` or `dirty`.
    pub git_tree_state: String,
    /// When the program was built, or of what time its source is.
    pub build_date: String,
    /// The language runtime. The name is upstream's.
    pub go_version: String,
    /// The compiler.
    pub compiler: String,
    /// Operating system and architecture in Go's words, such as `linux/amd64`.
    pub platform: String,
}

impl Version {
    /// This machine's platform in Go's words.
    pub fn platform() -> String {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        format!("{system}/{architecture}")
    }
}

#[cfg(test)]
pub(crate) fn sample() -> Version {
    let text = |value: &str| value.to_owned();
    Version {
        major: text("1"),
        minor: text("36"),
        emulation_major: text("1"),
        emulation_minor: text("36"),
        min_compatibility_major: text("1"),
        min_compatibility_minor: text("35"),
        git_version: text("v1.36.4+test"),
        git_commit: text("unknown"),
        git_tree_state: text("clean"),
        build_date: text("1970-01-01T00:00:00Z"),
        go_version: text("none"),
        compiler: text("rustc"),
        platform: Version::platform(),
    }
}
