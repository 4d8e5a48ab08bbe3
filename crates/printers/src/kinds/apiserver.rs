//! What API servers say about themselves.

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::{UNSET, age, join_three, with_group};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "APIService" => Some(&API_SERVICE),
        "StorageVersion" => Some(&STORAGE_VERSION),
        "StorageVersionMigration" => Some(&STORAGE_VERSION_MIGRATION),
        _ => None,
    }
}

static API_SERVICE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Service", "Service that serves the API."),
        Column::string("Available", "Whether the API can be reached."),
        AGE,
    ],
    print: api_service,
};

fn api_service(object: Fields<'_>, now: Timestamp) -> Row {
    let service = object.at("spec").present("service");
    let service = service.map(|service| format!("{}/{}", service.text("namespace"), service.text("name")));
    let available = object.at("status").condition("Available").map(available);
    row![
        object.name(),
        service.unwrap_or_else(|| "Local".to_owned()),
        available.unwrap_or_else(|| "Unknown".to_owned()),
        age(object, now),
    ]
}

fn available(condition: Fields<'_>) -> String {
    match (condition.text("status"), condition.text("reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

static STORAGE_VERSION: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("CommonEncodingVersion", "Version all servers write."),
        Column::string("StorageVersions", "Version each of the first few servers writes."),
        AGE,
    ],
    print: storage_version,
};

fn storage_version(object: Fields<'_>, now: Timestamp) -> Row {
    let status = object.at("status");
    let version =
        |server: Fields<'_>| format!("{}={}", server.text("apiServerID"), server.text("encodingVersion"));
    let versions: Vec<String> = status.items("storageVersions").map(version).collect();
    row![
        object.name(),
        status.optional_text("commonEncodingVersion").unwrap_or(UNSET),
        join_three(&versions),
        age(object, now),
    ]
}

/// Upstream does not mark the first column as the object's name.
static STORAGE_VERSION_MIGRATION: BuiltIn = BuiltIn {
    columns: &[
        Column::string("Name", "Name of the object."),
        Column::string("Resource", "Resource whose objects are written again."),
        Column::string("Status", "How far the migration is."),
    ],
    print: storage_version_migration,
};

fn storage_version_migration(object: Fields<'_>, _now: Timestamp) -> Row {
    let resource = object.at("spec").at("resource");
    let conditions = object.at("status").items("conditions");
    let holding = conditions.filter(|condition| condition.text("status") == "True");
    let mut states = holding.map(|condition| condition.text("type"));
    let state = states.rfind(|state| matches!(*state, "Running" | "Failed" | "Succeeded"));
    row![
        object.name(),
        with_group(resource.text("resource"), resource.text("group")),
        state.unwrap_or("Unknown"),
    ]
}
