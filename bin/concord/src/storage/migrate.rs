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

/// How many resources are migrated at once.
const AT_ONCE: usize = 8;

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
    let version = api.version().await?;
    let mut object = json!({
        "apiVersion": format!("storagemigration.k8s.io/{version}"), "kind": "StorageVersionMigration",
        "metadata": {"generateName": format!("{resource}-"), "annotations": annotations},
        "spec": {"resource": {"group": group, "resource": name}},
    });
    if version == "v1alpha1" {
        // It wants one; any stands for all.
        object["spec"]["resource"]["version"] = "v1".into();
    }
    let made = api.create(&api.migrations("").await?, &object).await;
    let made = made.with_context(|| format!("{resource} cannot be migrated"))?;
    Ok(made["metadata"]["name"].as_str().context("the migration has no name")?.to_owned())
}

async fn look(api: &Api, name: &str) -> anyhow::Result<State> {
    Ok(State::read(&api.get(&api.migrations(name).await?).await?))
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

/// Several migrations, asked for and watched.
struct Several<'a> {
    api: &'a Api,
    annotations: Value,
    is_detached: bool,
    bar: Bar,
    /// The resources and names of those that have not ended.
    open: Vec<(String, String)>,
    reports: Vec<Value>,
}

impl Several<'_> {
    /// Asks for migrations. That one could not be begun is no reason to leave the others alone.
    async fn ask(&mut self, resources: &[String]) {
        for resource in resources {
            match ask(self.api, resource, &self.annotations).await {
                Ok(name) if self.is_detached => {
                    self.reports.push(json!({"resource": resource, "migration": name}));
                }
                Ok(name) => self.open.push((resource.clone(), name)),
                Err(error) => self.reports.push(failed(resource, &error)),
            }
        }
    }

    /// Waits for the end of all.
    async fn watch(&mut self) {
        while !self.open.is_empty() {
            for (resource, name) in self.open.clone() {
                if let Some(report) = self.look(&resource, &name).await {
                    self.open.retain(|(_, open)| *open != name);
                    self.reports.push(report);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What became of one, if it has ended.
    async fn look(&mut self, resource: &str, name: &str) -> Option<Value> {
        match look(self.api, name).await {
            Ok(state) if state.has_ended() => return Some(report(resource, name, &Ended(state))),
            Ok(state) => self.bar.show(resource, &state.progress, state.held_up.as_deref()),
            Err(error) if is_missing(&error) => {
                return Some(failed(resource, &error.context(format!("the migration {name} was deleted"))));
            }
            // The server may be on its way: the migration is safe in the store.
            Err(error) => self.bar.show(resource, &Value::Null, Some(&error.to_string())),
        }
        None
    }
}

fn failed(resource: &str, error: &anyhow::Error) -> Value {
    json!({"resource": resource, "succeeded": false, "message": format!("{error:#}")})
}

/// Brings resources into the form that the servers write.
pub(crate) async fn run(api: &Api, options: &MigrateOptions) -> anyhow::Result<u8> {
    let stages = match options.all {
        false => vec![options.resources.clone()],
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
    let (open, reports) = (Vec::new(), Vec::new());
    let bar = Bar::new(output == Output::Text);
    let mut several = Several { api, annotations, is_detached: options.detach, bar, open, reports };
    for resources in stages.iter().flat_map(|stage| stage.chunks(AT_ONCE)) {
        // Not interrupted: what was asked for has to be known.
        several.ask(resources).await;
        tokio::select! {
            () = several.watch() => {}
            _ = interrupts.recv() => {
                several.bar.finish();
                several.open.iter().try_for_each(|(_, name)| goes_on(name))?;
                return Ok(INTERRUPTED);
            }
        }
    }
    several.bar.finish();
    tell(&several.reports, output)?;
    Ok(if several.reports.iter().all(|report| report["succeeded"] != false) { 0 } else { UNCLEAN })
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
        goes_on(name)?;
    }
    Ok(ended.map(Ended))
}

/// Says that a migration goes on.
fn goes_on(name: &str) -> anyhow::Result<()> {
    say(&format!(
        "The migration {name} goes on without this command. To see it: kubectl get storageversionmigration {name}. \
         To end it: concord storage cancel {name}."
    ))
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
async fn everything(api: &Api) -> anyhow::Result<Vec<Vec<String>>> {
    let mut all: Vec<String> = status::resources(api).await?.iter().map(status::Resource::title).collect();
    // Events go by themselves, leases are written all the time.
    all.retain(|name| !["events", "leases.coordination.k8s.io"].contains(&name.as_str()));
    let place = |name: &str| match name {
        "customresourcedefinitions.apiextensions.k8s.io" => 0,
        "secrets" => 2,
        _ => 1,
    };
    all.sort();
    let stage = |wanted: i32| all.iter().filter(|name| place(name) == wanted).cloned().collect();
    Ok((0..3).map(stage).collect())
}

/// Counts what is stored.
pub(crate) async fn census(api: &Api, resource: &str, output: Output) -> anyhow::Result<u8> {
    let name = ask(api, resource, &json!({DRY_RUN_ANNOTATION: "true"})).await?;
    let (mut interrupts, mut bar) = (interrupts()?, Bar::Nothing);
    let ended = tokio::select! {
        ended = watch(api, &name, resource, &mut bar) => Some(ended),
        _ = interrupts.recv() => None,
    };
    // It was only made to be read.
    api.delete(&api.migrations(&name).await?).await?;
    let Some(ended) = ended else { return Ok(INTERRUPTED) };
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
    api.patch(&api.migrations(&named.name).await?, &patch).await?;
    let done = match (order, value) {
        ("paused", Some(_)) => "is held up",
        ("paused", None) => "goes on",
        _ => "is being ended",
    };
    say(&format!("The migration {} {done}.", named.name))?;
    Ok(0)
}
