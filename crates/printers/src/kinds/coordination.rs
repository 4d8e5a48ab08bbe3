//! Who leads.

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::age;
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "Lease" => Some(&LEASE),
        "LeaseCandidate" => Some(&LEASE_CANDIDATE),
        _ => None,
    }
}

static LEASE: BuiltIn =
    BuiltIn { columns: &[NAME, Column::string("Holder", "Who holds the lease."), AGE], print: lease };

fn lease(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.at("spec").text("holderIdentity"), age(object, now)]
}

static LEASE_CANDIDATE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("LeaseName", "Lease the candidate wants."),
        Column::string("BinaryVersion", "Version of the candidate."),
        Column::string("EmulationVersion", "Version the candidate behaves like."),
        AGE,
    ],
    print: lease_candidate,
};

fn lease_candidate(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    row![
        object.name(),
        spec.text("leaseName"),
        spec.text("binaryVersion"),
        spec.text("emulationVersion"),
        age(object, now),
    ]
}
