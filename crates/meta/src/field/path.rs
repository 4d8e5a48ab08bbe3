//! Where in an object a field is.

use std::fmt;

/// The path from the root of an object to one of its fields: `spec.containers[0].name`,
/// `metadata.labels[app]`.
///
/// ```
/// use concord_meta::field::Path;
/// let containers = Path::new("spec").child("containers");
/// assert_eq!(containers.index(0).child("name").to_string(), "spec.containers[0].name");
/// assert_eq!(Path::new("metadata").child("labels").key("app").to_string(), "metadata.labels[app]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Path(String);

impl Path {
    /// A field of the root.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The path of nothing. It prints as Go's nil pointer does, `<nil>`, which clients see in the
    /// errors about query parameters; its children are fields of the root.
    #[must_use]
    pub fn nil() -> Self {
        Self::default()
    }

    /// A field of this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        // Validation makes the paths of all fields that it looks at, which are hardly ever wrong.
        let mut path = String::with_capacity(self.0.len() + 1 + name.len());
        path.push_str(&self.0);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        Self(path)
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nil_path_names_nothing_and_its_children_are_roots() {
        assert_eq!(Path::nil().to_string(), "<nil>");
        assert_eq!(Path::nil().child("values").index(0).key("k").to_string(), "values[0][k]");
    }
}
