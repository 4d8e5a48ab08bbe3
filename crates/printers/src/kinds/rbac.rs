//! Who may do what. Roles are too long for a row and have no printer.

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::age;
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "RoleBinding" | "ClusterRoleBinding" => Some(&BINDING),
        _ => None,
    }
}

static BINDING: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Role", "Role that is granted."),
        AGE,
        Column::wide("Users", "Users who get it."),
        Column::wide("Groups", "Groups who get it."),
        Column::wide("ServiceAccounts", "Service accounts that get it."),
    ],
    print: binding,
};

fn binding(object: Fields<'_>, now: Timestamp) -> Row {
    let role = object.at("roleRef");
    row![
        object.name(),
        format!("{}/{}", role.text("kind"), role.text("name")),
        age(object, now),
        subjects(object, "User"),
        subjects(object, "Group"),
        subjects(object, "ServiceAccount"),
    ]
}

fn subjects(object: Fields<'_>, kind: &str) -> String {
    let subjects = object.items("subjects").filter(|subject| subject.text("kind") == kind);
    let name = |subject: Fields<'_>| match kind {
        "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
        _ => subject.text("name").to_owned(),
    };
    subjects.map(name).collect::<Vec<_>>().join(", ")
}
