//! Devices and who uses them (dynamic resource allocation).

use jiff::Timestamp;

use super::core::name_and_age;
use crate::column::{AGE, NAME};
use crate::duration::since;
use crate::fields::Fields;
use crate::format::{NONE, age};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "DeviceClass" | "ResourceClaimTemplate" => Some(&NAME_AND_AGE),
        "ResourceClaim" => Some(&RESOURCE_CLAIM),
        "ResourceSlice" => Some(&RESOURCE_SLICE),
        "DeviceTaintRule" => Some(&DEVICE_TAINT_RULE),
        "ResourcePoolStatusRequest" => Some(&POOL_STATUS_REQUEST),
        _ => None,
    }
}

static NAME_AND_AGE: BuiltIn = BuiltIn { columns: &[NAME, AGE], print: name_and_age };

static RESOURCE_CLAIM: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("State", "Whether devices were found and are in use."), AGE],
    print: resource_claim,
};

fn resource_claim(object: Fields<'_>, now: Timestamp) -> Row {
    let status = object.at("status");
    let state = match (object.is_deleted(), status.has("allocation"), status.count("reservedFor") > 0) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    };
    row![object.name(), state, age(object, now)]
}

static RESOURCE_SLICE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Node", "Node that has the devices."),
        Column::string("Driver", "Driver of the devices."),
        Column::string("Pool", "Pool the devices belong to."),
        AGE,
    ],
    print: resource_slice,
};

fn resource_slice(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    row![
        object.name(),
        spec.text("nodeName"),
        spec.text("driver"),
        spec.at("pool").text("name"),
        age(object, now),
    ]
}

static DEVICE_TAINT_RULE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Key", "Key of the taint."),
        Column::string("Value", "Value of the taint."),
        Column::string("Effect", "What becomes of pods that do not tolerate it."),
        Column::string("TimeAdded", "Time since the taint was added."),
        AGE,
    ],
    print: device_taint_rule,
};

fn device_taint_rule(object: Fields<'_>, now: Timestamp) -> Row {
    let taint = object.at("spec").at("taint");
    // Upstream's default is the time at which it reads the object.
    let added = taint.time("timeAdded").unwrap_or(now);
    row![
        object.name(),
        taint.text("key"),
        taint.text("value"),
        taint.text("effect"),
        since(Some(added), now),
        age(object, now),
    ]
}

static POOL_STATUS_REQUEST: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Driver", "Driver whose pools are looked at."),
        Column::string("Total", "Devices in all pools."),
        Column::string("Available", "Devices that are free."),
        Column::string("Allocated", "Devices that are in use."),
        Column::string("Unavailable", "Devices that cannot be used."),
        Column::string("Errors", "Pools with errors."),
        Column::integer("Pools", "Pools that were found."),
        Column::string("Status", "How far the request is."),
        Column::string("Completed", "Time since the pools were looked at."),
    ],
    print: pool_status_request,
};

fn pool_status_request(object: Fields<'_>, now: Timestamp) -> Row {
    let status = object.present("status");
    let outcome = status.and_then(outcome);
    let failed = outcome.is_some_and(|outcome| outcome.text("type") == "Failed");
    // Nothing was counted before there is a status, or when counting failed.
    let counted = status.filter(|_| !failed);
    let sum = |field| counted.map_or_else(|| "-".to_owned(), |status| total(status, field));
    let completed = outcome.filter(|_| !failed).map(|outcome| since(outcome.time("lastTransitionTime"), now));
    row![
        object.name(),
        object.at("spec").text("driver"),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        counted.map_or_else(|| "-".to_owned(), errors),
        status.map_or(0, |status| status.int("poolCount")),
        progress(status, outcome),
        completed.unwrap_or_else(|| NONE.to_owned()),
    ]
}

/// The condition that ended the request.
fn outcome(status: Fields<'_>) -> Option<Fields<'_>> {
    status.items("conditions").find(|condition| {
        matches!(condition.text("type"), "Complete" | "Failed") && condition.text("status") == "True"
    })
}

/// A complete answer may tell less than all pools.
fn progress(status: Option<Fields<'_>>, outcome: Option<Fields<'_>>) -> String {
    let (Some(status), Some(outcome)) = (status, outcome) else { return "Pending".to_owned() };
    let (found, told) = (status.int("poolCount"), status.count("pools"));
    match outcome.text("type") {
        "Complete" if usize::try_from(found).is_ok_and(|found| found > told) => {
            format!("Complete ({told}/{found} pools)")
        }
        outcome => outcome.to_owned(),
    }
}

fn errors(status: Fields<'_>) -> String {
    let broken = status.items("pools").filter(|pool| pool.value("validationError").is_some());
    broken.count().to_string()
}

fn total(status: Fields<'_>, field: &str) -> String {
    status.items("pools").map(|pool| pool.int(field)).fold(0, i64::saturating_add).to_string()
}
