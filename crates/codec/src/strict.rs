use std::{collections::BTreeMap, fmt};

use crate::go;

/// What upstream stops collecting at.
const MAX_VIOLATIONS: usize = 100;

/// What a type says about one place in a document.
#[derive(Clone, Copy)]
pub enum Field<'a> {
    /// The type has no such field. The value is dropped and reported, and what is in it is not looked at.
    Unknown,
    /// Anything may stand here and nothing inside is checked: types that upstream decodes by hand, such
    /// as quantities, raw extensions and `fieldsV1`.
    Opaque,
    /// Any JSON; duplicate fields inside are reported. This is how custom resources are read.
    Any,
    /// An object or a list whose members are known: who knows them, and its own number for this place.
    Of(&'a dyn Fields, u32),
}

/// The field names a type knows, as far as strict decoding needs them.
///
/// A place is an object with named fields, a map, or a list. Which of them it is shows in what is answered
/// for it; whether the document has the right shape there is not checked here. Places are numbers, so that
/// all places of a large type can be kept in one table.
pub trait Fields {
    /// The whole document.
    fn root(&self) -> Field<'_>;

    /// The member of that name, of the object at this place.
    fn member(&self, place: u32, name: &str) -> Field<'_>;

    /// The elements, where this place is a list.
    fn items(&self, place: u32) -> Field<'_>;
}

/// A simple [`Fields`]: a tree of names, enough for small types and tests.
#[derive(Clone, Debug)]
pub enum FieldTree {
    /// See [`Field::Opaque`].
    Opaque,
    /// See [`Field::Any`].
    Any,
    /// An object with exactly these fields.
    Object(BTreeMap<String, FieldTree>),
    /// An object with keys of the client's choice.
    Map(Box<FieldTree>),
    /// A list.
    List(Box<FieldTree>),
}

impl FieldTree {
    /// An object with these fields.
    pub fn object<const N: usize>(fields: [(&str, Self); N]) -> Self {
        Self::Object(fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect())
    }

    fn as_field(&self) -> Field<'_> {
        match self {
            Self::Opaque => Field::Opaque,
            Self::Any => Field::Any,
            // A tree is itself the place.
            Self::Object(_) | Self::Map(_) | Self::List(_) => Field::Of(self, 0),
        }
    }
}

impl Fields for FieldTree {
    fn root(&self) -> Field<'_> {
        self.as_field()
    }

    fn member(&self, _: u32, name: &str) -> Field<'_> {
        match self {
            Self::Object(fields) => fields.get(name).map_or(Field::Unknown, Self::as_field),
            Self::Map(values) => values.as_field(),
            Self::Any => Field::Any,
            Self::Opaque | Self::List(_) => Field::Opaque,
        }
    }

    fn items(&self, _: u32) -> Field<'_> {
        match self {
            Self::List(items) => items.as_field(),
            Self::Any => Field::Any,
            Self::Opaque | Self::Object(_) | Self::Map(_) => Field::Opaque,
        }
    }
}

/// Something a strict reader refuses and a lenient one drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The type has no field with this path.
    Unknown(String),
    /// The field with this path is given more than once.
    Duplicate(String),
    /// Keys given more than once in YAML: one text per key, with its line.
    Yaml(Vec<String>),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field {}", go::quote(path)),
            Self::Duplicate(path) => write!(f, "duplicate field {}", go::quote(path)),
            Self::Yaml(keys) => write!(f, "yaml: unmarshal errors:\n  {}", keys.join("\n  ")),
        }
    }
}

impl Violation {
    /// The texts that become warnings, one header each.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            Self::Yaml(keys) => keys.clone(),
            Self::Unknown(_) | Self::Duplicate(_) => vec![self.to_string()],
        }
    }
}

/// What upstream says when `fieldValidation=Strict` meets violations.
pub fn strict_decoding_error(violations: &[Violation]) -> String {
    let texts: Vec<_> = violations.iter().map(Violation::to_string).collect();
    format!("strict decoding error: {}", texts.join(", "))
}

/// Violations in the order they were met, each once, not more than upstream keeps.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<Violation>);

impl Violations {
    /// The violation is made only while there is room: a hostile document costs no more than a bad one.
    pub(crate) fn add(&mut self, violation: impl FnOnce() -> Violation) {
        if self.0.len() >= MAX_VIOLATIONS {
            return;
        }
        let violation = violation();
        if !self.0.contains(&violation) {
            self.0.push(violation);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Violation> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_read_as_upstream_spells_them() {
        let violations = [
            Violation::Duplicate("metadata.name".into()),
            Violation::Unknown("spec.a\"b[0]".into()),
            Violation::Yaml(vec![r#"line 2: key "a" already set in map"#.into(), "line 3: key 1".into()]),
        ];
        assert_eq!(
            strict_decoding_error(&violations),
            "strict decoding error: duplicate field \"metadata.name\", unknown field \"spec.a\\\"b[0]\", \
             yaml: unmarshal errors:\n  line 2: key \"a\" already set in map\n  line 3: key 1"
        );
        assert_eq!(violations[0].warnings(), ["duplicate field \"metadata.name\""]);
        assert_eq!(violations[2].warnings().len(), 2);
    }

    #[test]
    fn violations_are_kept_once_and_up_to_a_hundred() {
        let mut violations = Violations::default();
        for n in 0..300 {
            violations.add(|| Violation::Unknown(format!("{}", n / 2)));
        }
        let violations = violations.into_vec();
        assert_eq!(violations.len(), 100);
        assert_eq!(violations[99], Violation::Unknown("99".into()));
    }
}
