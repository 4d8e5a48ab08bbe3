use std::fmt::{self, Display, Formatter};

/// Where a value does not fit its schema, and why. Printed as upstream prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors {
    errors: Vec<(String, String)>,
}

impl ValidationErrors {
    pub(super) fn one(message: impl Into<String>) -> Self {
        Self { errors: vec![(String::new(), message.into())] }
    }

    /// The place has no type: a defect of the schema, not of the value.
    pub(super) fn no_type() -> Self {
        Self::one("schema error: no type found matching: inlined type")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.errors.append(&mut other.errors);
    }

    /// Puts the element that leads to a part before the errors found in that part.
    pub(super) fn below(mut self, element: impl Display) -> Self {
        for (path, _) in &mut self.errors {
            *path = format!("{element}{path}");
        }
        self
    }

    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

fn print((path, message): &(String, String)) -> String {
    if path.is_empty() { message.clone() } else { format!("{path}: {message}") }
}

impl Display for ValidationErrors {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let [only] = self.errors.as_slice() {
            return out.write_str(&print(only));
        }
        out.write_str("errors:")?;
        self.errors.iter().try_for_each(|error| write!(out, "\n  {}", print(error)))
    }
}

impl std::error::Error for ValidationErrors {}
