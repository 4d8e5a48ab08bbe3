//! Migrations, asked for and watched.

use std::time::Duration;

use anyhow::Context as _;
use concord_migrator::{
    CANCELLED_ANNOTATION, DRY_RUN_ANNOTATION, PAUSED_ANNOTATION, PROGRESS_ANNOTATION, RATE_ANNOTATION,
};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    Api, INTERRUPTED, MigrateOptions, NamedMigration, Output, UNCLEAN,
    client::is_missing,
    show::{Bar, table},
    status,
};
use crate::say;

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";

/// How often to look.
const LOOK: Duration = Duration::from_millis(200);

/// A migration as it is now.
struct State {
    succeeded: bool,
    failed: Option<String>,
    /// Why it is held up.
    held_up: Option<String>,
    message: String,
    progress: Value,
}

impl State {
    fn read(migration: &Value) -> Self {
        let condition = |kind: &str| {
            let mut all = migration["status"]["conditions"].as_array().into_iter().flatten();
            all.find(|known| known["type"] == kind)
        };
        let text = |known: &Value| known["message"].as_str().unwrap_or_default().to_owned();
        let holds = |kind: &str| condition(kind).filter(|known| known["status"] == "True");
        let progress = migration["metadata"]["annotations"][PROGRESS_ANNOTATION].as_str().unwrap_or_default();
        Self {
            succeeded: holds("Succeeded").is_some(),
            failed: holds("Failed").map(text),
            held_up: condition("Running").filter(|known| known["status"] == "False").map(text),
            message: holds("Succeeded").map(text).unwrap_or_default(),
            progress: serde_json::from_str(progress).unwrap_or_default(),
        }
    }

    fn has_ended(&self) -> bool {
        self.succeeded || self.failed.is_some()
    }
}

/// Asks for the migration of a resource; its name.
pub(crate) async fn ask(api: &Api, resource: &str, annotations: &Value) -> anyhow::Result<String> {
    let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
    let object = json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"generateName": format!("{resource}-"), "annotations": annotations},
        "spec": {"resource": {"group": group, "resource": name}},
    });
    let made =
        api.create(MIGRATIONS, &object).await.with_context(|| format!("{resource} cannot be migrated"))?;
    Ok(made["metadata"]["name"].as_str().context("the migration has no name")?.to_owned())
}

async fn look(api: &Api, name: &str) -> anyhow::Result<State> {
    Ok(State::read(&api.get(&format!("{MIGRATIONS}/{name}")).await?))
}

/// Waits for the end of a migration and shows how far it is.
async fn watch(api: &Api, name: &str, resource: &str, bar: &mut Bar) -> anyhow::Result<State> {
    loop {
        match look(api, name).await {
            Ok(state) if state.has_ended() => return Ok(state),
            Ok(state) => bar.show(resource, &state.progress, state.held_up.as_deref()),
            Err(error) if is_missing(&error) => {
                return Err(error.context(format!("the migration {name} was deleted")));
            }
            // The server may be on its way: the migration is safe in the store.
            Err(error) => bar.show(resource, &Value::Null, Some(&error.to_string())),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Brings resources into the form that the servers write.
pub(crate) async fn run(api: &Api, options: &MigrateOptions) -> anyhow::Result<u8> {
    let resources = match options.all {
        false => options.resources.clone(),
        true => everything(api).await?,
    };
    let mut annotations = json!({});
    if options.dry_run {
        annotations[DRY_RUN_ANNOTATION] = "true".into();
    }
    if let Some(rate) = options.max_requests_per_second {
        annotations[RATE_ANNOTATION] = rate.to_string().into();
    }
    let output = options.connection.output;
    // Before anything is asked for: from then on it goes on without this command.
    let mut interrupts = interrupts()?;
    let mut reports = Vec::new();
    for resource in &resources {
        let name = ask(api, resource, &annotations).await?;
        if options.detach {
            reports.push(json!({"resource": resource, "migration": name}));
            continue;
        }
        let Some(state) = until_interrupted(api, &name, resource, output, &mut interrupts).await? else {
            return Ok(INTERRUPTED);
        };
        reports.push(report(resource, &name, &state));
    }
    let is_clean = reports.iter().all(|report| report["succeeded"] != false);
    tell(&reports, output)?;
    Ok(if is_clean { 0 } else { UNCLEAN })
}

/// Tells of Ctrl-C, from now on.
pub(super) fn interrupts() -> anyhow::Result<Signal> {
    signal(SignalKind::interrupt()).context("signals cannot be awaited")
}

/// Waits for the end; `None` if somebody pressed Ctrl-C before.
pub(super) async fn until_interrupted(
    api: &Api,
    name: &str,
    resource: &str,
    output: Output,
    interrupts: &mut Signal,
) -> anyhow::Result<Option<Ended>> {
    let mut bar = Bar::new(output == Output::Text);
    let ended = tokio::select! {
        ended = watch(api, name, resource, &mut bar) => Some(ended?),
        _ = interrupts.recv() => None,
    };
    bar.finish();
    if ended.is_none() {
        say(&format!(
            "The migration {name} goes on without this command. To see it: kubectl get storageversionmigration {name}. \
             To end it: concord storage cancel {name}."
        ))?;
    }
    Ok(ended.map(Ended))
}

/// A migration that has ended.
pub(super) struct Ended(State);

impl Ended {
    pub(super) fn succeeded(&self) -> bool {
        self.0.succeeded
    }

    pub(super) fn why(&self) -> &str {
        self.0.failed.as_deref().unwrap_or_default()
    }
}

fn report(resource: &str, name: &str, ended: &Ended) -> Value {
    let State { succeeded, failed, progress, message, .. } = &ended.0;
    json!({
        "resource": resource, "migration": name, "succeeded": succeeded, "migrated": progress["migrated"],
        "current": progress["current"], "failed": progress["failed"], "failures": progress["failures"],
        "census": progress["census"], "message": failed.as_ref().unwrap_or(message),
    })
}

fn tell(reports: &[Value], output: Output) -> anyhow::Result<()> {
    if output == Output::Json {
        return say(&serde_json::to_string_pretty(reports)?);
    }
    let header =
        ["RESOURCE", "MIGRATION", "RESULT", "MIGRATED", "CURRENT", "FAILED", "MESSAGE"].map(str::to_owned);
    let row = |report: &Value| {
        let text = |name: &str| match &report[name] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let result = match report["succeeded"].as_bool() {
            Some(true) => "done",
            Some(false) => "FAILED",
            None => "begun",
        };
        let mut row = vec![text("resource"), text("migration"), result.to_owned()];
        row.extend(["migrated", "current", "failed", "message"].map(text));
        row
    };
    let rows = std::iter::once(header.to_vec()).chain(reports.iter().map(row));
    say(&table(&rows.collect::<Vec<_>>()))
}

/// What is migrated by `--all`, in this order: definitions first, Secrets last.
async fn everything(api: &Api) -> anyhow::Result<Vec<String>> {
    let mut all: Vec<String> = status::resources(api).await?.iter().map(status::Resource::title).collect();
    // Events go by themselves, leases are written all the time.
    all.retain(|name| !["events", "leases.coordination.k8s.io"].contains(&name.as_str()));
    let place = |name: &str| match name {
        "customresourcedefinitions.apiextensions.k8s.io" => 0,
        "secrets" => 2,
        _ => 1,
    };
    all.sort_by_key(|name| (place(name), name.clone()));
    Ok(all)
}

/// Counts what is stored.
pub(crate) async fn census(api: &Api, resource: &str, output: Output) -> anyhow::Result<u8> {
    let name = ask(api, resource, &json!({DRY_RUN_ANNOTATION: "true"})).await?;
    let mut bar = Bar::Nothing;
    let ended = watch(api, &name, resource, &mut bar).await;
    // It was only made to be read.
    api.delete(&format!("{MIGRATIONS}/{name}")).await?;
    let State { failed, progress, .. } = ended?;
    if let Some(why) = failed {
        anyhow::bail!("{resource} cannot be counted: {why}");
    }
    let target = &progress["target"];
    let rows: Vec<&Value> = progress["census"].as_array().into_iter().flatten().collect();
    let is_target =
        |row: &Value| row["version"] == target["version"] && row["encryption"] == target["encryption"];
    let is_clean = rows.iter().all(|row| is_target(row));
    if output == Output::Json {
        let census = json!({"resource": resource, "target": target, "rows": rows, "clean": is_clean});
        say(&serde_json::to_string_pretty(&census)?)?;
    } else {
        let header = ["VERSION", "ENCRYPTION", "OBJECTS", ""].map(str::to_owned).to_vec();
        let line = |row: &&Value| {
            let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
            let mark = if is_target(row) { "as the servers write" } else { "to be migrated" };
            vec![text("version"), text("encryption"), row["objects"].to_string(), mark.to_owned()]
        };
        say(&table(&std::iter::once(header).chain(rows.iter().map(line)).collect::<Vec<_>>()))?;
    }
    Ok(if is_clean { 0 } else { UNCLEAN })
}

/// Gives an order to a migration.
pub(crate) async fn order(named: &NamedMigration, order: &str, value: Option<&str>) -> anyhow::Result<u8> {
    let annotation = match order {
        "paused" => PAUSED_ANNOTATION,
        _ => CANCELLED_ANNOTATION,
    };
    let api = Api::open(&named.connection)?;
    let patch = json!({"metadata": {"annotations": {annotation: value}}});
    api.patch(&format!("{MIGRATIONS}/{}", named.name), &patch).await?;
    let done = match (order, value) {
        ("paused", Some(_)) => "is held up",
        ("paused", None) => "goes on",
        _ => "is being ended",
    };
    say(&format!("The migration {} {done}.", named.name))?;
    Ok(0)
}
