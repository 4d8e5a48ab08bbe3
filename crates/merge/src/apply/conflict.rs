use std::fmt::{self, Display, Formatter};

use super::managed::{ManagerId, Operation};
use crate::{fields::Path, go};

/// A field that an applied configuration would change although another manager owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Whose it is.
    pub manager: ManagerId,
    /// Which field.
    pub path: Path,
}

/// One cause of the 409 Status; its reason is `FieldManagerConflict`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictCause {
    /// `conflict with "kubectl" using apps/v1`
    pub message: String,
    /// `.spec.replicas`
    pub field: String,
}

/// All conflicts of one apply, grouped by manager. Never empty. Prints as the message of the Status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub(super) Vec<Conflict>);

impl Conflicts {
    /// The conflicts.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.0
    }

    /// The causes of the Status.
    pub fn causes(&self) -> Vec<ConflictCause> {
        let cause = |conflict: &Conflict| ConflictCause {
            message: format!("conflict with {}", print(&conflict.manager)),
            field: conflict.path.to_string(),
        };
        self.0.iter().map(cause).collect()
    }
}

impl Display for Conflicts {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            let manager = print(&only.manager);
            return write!(out, "Apply failed with 1 conflict: conflict with {manager}: {}", only.path);
        }
        let mut lines = Vec::new();
        for group in self.0.chunk_by(|left, right| left.manager == right.manager) {
            lines.push(format!("conflicts with {}:", print(&group[0].manager)));
            lines.extend(group.iter().map(|conflict| format!("- {}", conflict.path)));
        }
        write!(out, "Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }
}

impl std::error::Error for Conflicts {}

fn print(id: &ManagerId) -> String {
    let mut printed = go::quote(&id.manager);
    if !id.subresource.is_empty() {
        printed = format!("{printed} with subresource {}", go::quote(&id.subresource));
    }
    if id.operation == Operation::Update {
        printed = format!("{printed} using {}", id.api_version);
    }
    printed
}
