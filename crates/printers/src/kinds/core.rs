//! Kinds of the core group that are mostly data.

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::{age, quantity};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "Namespace" => Some(&NAMESPACE),
        "ConfigMap" => Some(&CONFIG_MAP),
        "Secret" => Some(&SECRET),
        "ServiceAccount" => Some(&SERVICE_ACCOUNT),
        "ResourceQuota" => Some(&RESOURCE_QUOTA),
        "ComponentStatus" => Some(&COMPONENT_STATUS),
        _ => None,
    }
}

static NAMESPACE: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("Status", "Whether the namespace is in use or going away."), AGE],
    print: namespace,
};

fn namespace(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.at("status").text_or("phase", "Active"), age(object, now)]
}

static CONFIG_MAP: BuiltIn =
    BuiltIn { columns: &[NAME, Column::string("Data", "Number of entries."), AGE], print: config_map };

fn config_map(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.count("data") + object.count("binaryData"), age(object, now)]
}

static SECRET: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Type", "What the secret is for."),
        Column::string("Data", "Number of entries."),
        AGE,
    ],
    print: secret,
};

fn secret(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.text_or("type", "Opaque"), object.count("data"), age(object, now)]
}

static SERVICE_ACCOUNT: BuiltIn = BuiltIn { columns: &[NAME, AGE], print: name_and_age };

/// For kinds of which nothing else is shown.
pub(super) fn name_and_age(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), age(object, now)]
}

static RESOURCE_QUOTA: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Request", "What is used of what may be requested."),
        Column::string("Limit", "What is used of what limits may add up to."),
        AGE,
    ],
    print: resource_quota,
};

fn resource_quota(object: Fields<'_>, now: Timestamp) -> Row {
    let status = object.at("status");
    let (hard, used) = (status.at("hard"), status.at("used"));
    let names: Vec<&str> = status.pairs("hard").map(|(name, _)| name).collect();
    let (limits, requests): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| name.starts_with("limits."));
    let cell = |names: Vec<&str>| {
        let of = |name: &str| format!("{name}: {}/{}", quantity(used, name), quantity(hard, name));
        names.into_iter().map(of).collect::<Vec<_>>().join(", ")
    };
    row![object.name(), cell(requests), cell(limits), age(object, now)]
}

static COMPONENT_STATUS: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Status", "Whether the component is healthy."),
        Column::string("Message", "What the component says."),
        Column::string("Error", "What went wrong when it was asked."),
    ],
    print: component_status,
};

fn component_status(object: Fields<'_>, _now: Timestamp) -> Row {
    let Some(condition) = object.condition("Healthy") else {
        return row![object.name(), "Unknown", "", ""];
    };
    let status = if condition.text("status") == "True" { "Healthy" } else { "Unhealthy" };
    row![object.name(), status, condition.text("message"), condition.text("error")]
}
