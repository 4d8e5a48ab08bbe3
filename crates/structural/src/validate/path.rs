//! Where a walk is: made into text only when there is an error.

use std::fmt::Write;

use concord_meta::field::Path;

#[derive(Clone, Copy)]
enum Step<'a> {
    Property(&'a str),
    Key(&'a str),
    Index(usize),
}

/// The steps from the value that is checked to the place a walk is at.
#[derive(Default)]
pub(super) struct Trail<'a>(Vec<Step<'a>>);

impl<'a> Trail<'a> {
    pub(super) fn push_property(&mut self, name: &'a str) {
        self.0.push(Step::Property(name));
    }

    /// A key of a map, or a name that is missing: upstream puts a dot before those also at the root.
    pub(super) fn push_key(&mut self, key: &'a str) {
        self.0.push(Step::Key(key));
    }

    pub(super) fn push_index(&mut self, index: usize) {
        self.0.push(Step::Index(index));
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What messages call the place: `spec.list[0].name`, and nothing for the root.
    pub(super) fn name(&self) -> String {
        let mut name = String::new();
        for (at, step) in self.0.iter().enumerate() {
            let written = match step {
                Step::Property(property) if at == 0 => write!(name, "{property}"),
                Step::Property(key) | Step::Key(key) => write!(name, ".{key}"),
                Step::Index(index) => write!(name, "[{index}]"),
            };
            written.expect("writing to a String does not fail");
        }
        name
    }

    /// The field of an error about the place that is called `name`.
    pub(super) fn field(&self, base: &Path, name: &str) -> Path {
        match name.strip_prefix('.').unwrap_or(name) {
            "" => base.clone(),
            name => base.child(name),
        }
    }
}
