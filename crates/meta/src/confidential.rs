//! What is not repeated to anybody but who asked for it.

/// What stands for contents in the text of an error. The words are upstream's.
pub const REDACTED: &str = "<secret contents redacted>";

/// Whether objects of a resource, or what a subresource takes and gives, are secret themselves: nothing of them may stand
/// in errors, logs and the audit log. Empty is the core group, and no subresource.
#[must_use]
pub fn is_confidential(group: &str, resource: &str, subresource: &str) -> bool {
    match (group, resource) {
        ("", "secrets") | ("authentication.k8s.io", "tokenreviews") => true,
        ("", "serviceaccounts") => subresource == "token",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_tokens_are_confidential() {
        for (group, resource, subresource, expected) in [
            ("", "secrets", "", true),
            ("", "secrets", "status", true),
            ("", "serviceaccounts", "", false),
            ("", "serviceaccounts", "token", true),
            ("authentication.k8s.io", "tokenreviews", "", true),
            ("authentication.k8s.io", "selfsubjectreviews", "", false),
            ("example.com", "secrets", "", false),
            ("", "configmaps", "", false),
        ] {
            let is = is_confidential(group, resource, subresource);
            assert_eq!(is, expected, "{group} {resource} {subresource}");
        }
    }
}
