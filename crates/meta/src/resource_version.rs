//! Resource versions as clients send them.

use crate::field::{Error, Path};
use crate::go;

/// What a request for a resource version asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceVersion {
    /// No version was given.
    Unset,
    /// `0`: any state will do.
    Any,
    /// A revision of the log.
    At(u64),
}

/// Reads a `resourceVersion` parameter. A number that is zero in another form (`00`) is a revision
/// that never was, as upstream sees it: `At(0)`.
///
/// # Errors
///
/// When the text is no number. Upstream makes different answers of it: a list says 400
/// `invalid resource version: {error}`, a watch 500 with the error alone.
pub fn parse_resource_version(text: &str) -> Result<ResourceVersion, Error> {
    match text {
        "" => Ok(ResourceVersion::Unset),
        "0" => Ok(ResourceVersion::Any),
        text => go::parse_uint(text)
            .map(ResourceVersion::At)
            .map_err(|error| Error::invalid(&Path::new("resourceVersion"), text, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let table = [
            ("", ResourceVersion::Unset),
            ("0", ResourceVersion::Any),
            ("7", ResourceVersion::At(7)),
            ("00", ResourceVersion::At(0)),
        ];
        for (text, version) in table {
            assert_eq!(parse_resource_version(text), Ok(version));
        }
        let error = |text: &str| parse_resource_version(text).expect_err(text).to_string();
        assert_eq!(
            error("abc"),
            r#"resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#
        );
        assert_eq!(
            error("99999999999999999999"),
            r#"resourceVersion: Invalid value: "99999999999999999999": strconv.ParseUint: parsing "99999999999999999999": value out of range"#
        );
    }
}
