//! Label selectors: which objects, by their labels.

mod object;
mod parse;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::field::{self, BadValue, Path};
use crate::{go, names};

pub use object::{LabelSelector, LabelSelectorRequirement};

/// Why a selector is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// The labels of an object.
pub trait Labels {
    /// The value of the label `key`, if the object has it.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// `metadata.labels` of an object; what is not a string is not a label.
impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

/// Absent labels are no labels.
impl<L: Labels> Labels for Option<&L> {
    fn label(&self, key: &str) -> Option<&str> {
        (*self)?.label(key)
    }
}

/// Requirements that must all hold. It prints in canonical form: sorted by key, values sorted.
///
/// ```
/// use concord_meta::labels::Selector;
/// let selector = Selector::parse("tier notin (b, a),app=web,!canary").unwrap();
/// assert_eq!(selector.to_string(), "app=web,!canary,tier notin (a,b)");
/// let labels = [("app".to_owned(), "web".to_owned())].into();
/// assert!(selector.matches::<std::collections::BTreeMap<_, _>>(&labels));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl Selector {
    /// The selector every object matches.
    #[must_use]
    pub fn everything() -> Self {
        Self { requirements: Vec::new(), nothing: false }
    }

    /// The selector no object matches.
    #[must_use]
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Reads the form of the `labelSelector` parameter.
    ///
    /// # Errors
    ///
    /// When the text is no selector; the error is upstream's text.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text).map(Self::from_iter)
    }

    /// Whether the selector restricts nothing.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether an object with these labels is selected.
    pub fn matches<L: Labels>(&self, labels: &L) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// The requirements, sorted by key.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The one value the label must have, if the selector demands one.
    #[must_use]
    pub fn requires_exact_match(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::In | Operator::Equals | Operator::DoubleEquals, [value]) => Some(value),
            _ => None,
        }
    }
}

/// Requirements with the same key keep their order.
impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut requirements = Vec::from_iter(requirements);
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements, nothing: false }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

/// How a requirement relates a key and its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`; also holds without the label.
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`
    DoubleEquals,
    /// `key!=a`; also holds without the label.
    NotEquals,
    /// `key>5`, compared as integers.
    GreaterThan,
    /// `key<5`, compared as integers.
    LessThan,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    /// A condition on the label `key`.
    ///
    /// # Errors
    ///
    /// When the key or a value cannot be a label's, or the number of values does not suit the
    /// operator.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, Vec<field::Error>> {
        let mut errors = Vec::new();
        errors.extend(check_key(key, &Path::new("key")));
        errors.extend(check_arity(operator, &values));
        for (at, value) in values.iter().enumerate() {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                let path = Path::new("values").index(at).key(key);
                errors.push(field::Error::invalid(&path, value, problems.join("; ")));
            }
        }
        match errors.is_empty() {
            true => Ok(Self { key: key.to_owned(), operator, values }),
            false => Err(errors),
        }
    }

    /// The label.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, in the order they were given.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether the labels fulfil the requirement.
    pub fn matches<L: Labels>(&self, labels: &L) -> bool {
        let label = labels.label(&self.key);
        let named = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(named),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(named),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compares(label, |label, value| label > value),
            Operator::LessThan => self.compares(label, |label, value| label < value),
        }
    }

    /// A label that is no integer does not compare.
    fn compares(&self, label: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let (Some(label), [value]) = (label, self.values.as_slice()) else { return false };
        matches!((go::parse_int(label), go::parse_int(value)), (Ok(label), Ok(value)) if holds(label, value))
    }
}

fn check_key(key: &str, path: &Path) -> Option<field::Error> {
    let problems = names::qualified_name(key);
    (!problems.is_empty()).then(|| field::Error::invalid(path, key, problems.join("; ")))
}

fn check_arity(operator: Operator, values: &[String]) -> Vec<field::Error> {
    let path = Path::new("values");
    let shown = || match values {
        // In Go this is a nil slice.
        [] => BadValue::verbatim("null"),
        values => BadValue::strings(values),
    };
    let invalid = |detail: &'static str| vec![field::Error::invalid(&path, shown(), detail)];
    match (operator, values.len()) {
        (Operator::In | Operator::NotIn, 0) => {
            invalid("for 'in', 'notin' operators, values set can't be empty")
        }
        (Operator::Equals | Operator::DoubleEquals | Operator::NotEquals, 0 | 2..) => {
            invalid("exact-match compatibility requires one single value")
        }
        (Operator::Exists | Operator::DoesNotExist, 1..) => {
            invalid("values set must be empty for exists and does not exist")
        }
        (Operator::GreaterThan | Operator::LessThan, count) => {
            let mut errors = match count {
                1 => Vec::new(),
                _ => invalid("for 'Gt', 'Lt' operators, exactly one value is required"),
            };
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            let wrong = values.iter().enumerate().filter(|(_, value)| go::parse_int(value).is_err());
            errors.extend(wrong.map(|(at, value)| field::Error::invalid(&path.index(at), value, detail)));
            errors
        }
        _ => Vec::new(),
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<_> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

#[cfg(test)]
#[path = "labels/tests.rs"]
mod tests;
