use std::collections::HashMap;

/// Which resource a key belongs to.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// What all keys begin with, with a slash at the end.
    prefix: String,
    /// Group and resource by what the keys of their objects begin with after that, without a slash at the end.
    built_in: HashMap<String, (String, String)>,
}

impl Places {
    /// Keys that begin with `prefix`, such as `/registry/`; the resources whose objects are not where those of custom
    /// resources would be, each with what their keys begin with after the prefix.
    pub fn new(
        prefix: impl Into<String>,
        built_in: impl IntoIterator<Item = (String, (String, String))>,
    ) -> Self {
        Self { prefix: prefix.into(), built_in: built_in.into_iter().collect() }
    }

    pub(crate) fn built_in(&self) -> impl Iterator<Item = (&String, &(String, String))> {
        self.built_in.iter()
    }

    /// The group and the resource of an object at a key. Objects of custom resources are below their group and their
    /// plural; what is neither is of no resource.
    pub(crate) fn of<'k>(&'k self, key: &'k [u8]) -> Option<Place<'k>> {
        let below = std::str::from_utf8(key.strip_prefix(self.prefix.as_bytes())?).ok()?;
        let mut slashes = below.match_indices('/').map(|(at, _)| at);
        let first = slashes.next()?;
        let second = slashes.next();
        let ends = [Some(first), second];
        for place in ends.into_iter().flatten().map(|end| &below[..end]) {
            if self.built_in.contains_key(place) {
                return Some(Place::BuiltIn(place));
            }
        }
        let group = &below[..first];
        // Groups of custom resources have a dot; what has none is not a resource, such as allocated addresses.
        group.contains('.').then_some(())?;
        Some(Place::Custom(group, &below[first + 1..second?]))
    }
}

/// Where a key is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<'k> {
    /// Among the objects of a resource that is listed.
    BuiltIn(&'k str),
    /// Among those of a custom resource, of this group and this name.
    Custom(&'k str, &'k str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_belong_to_resources() {
        let named = |key: &str, group: &str, resource: &str| {
            (key.to_owned(), (group.to_owned(), resource.to_owned()))
        };
        let places = Places::new(
            "/registry/",
            [
                named("secrets", "", "secrets"),
                named("services/specs", "", "services"),
                named("apiregistration.k8s.io/apiservices", "apiregistration.k8s.io", "apiservices"),
            ],
        );
        for (key, place) in [
            ("/registry/secrets/default/a", Some(Place::BuiltIn("secrets"))),
            ("/registry/services/specs/default/a", Some(Place::BuiltIn("services/specs"))),
            (
                "/registry/apiregistration.k8s.io/apiservices/a",
                Some(Place::BuiltIn("apiregistration.k8s.io/apiservices")),
            ),
            ("/registry/example.com/foos/default/a", Some(Place::Custom("example.com", "foos"))),
            ("/registry/ranges/serviceips", None),
            ("/registry/masterleases/1.2.3.4/x", None),
            ("/other/secrets/default/a", None),
            ("/registry/secrets", None),
        ] {
            assert_eq!(places.of(key.as_bytes()), place, "{key}");
        }
    }
}
