//! What each scenario needs and does.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use http::HeaderValue;
use memchr::memmem;
use serde_json::Value;

use super::{Bench, Timed, measured, with_usage};
use crate::{
    args::Scenario,
    client::{Call, Connection, JSON},
    drive::{Bound, Crew},
    objects::Objects,
    operations::{Freshness, Operation},
    process::Sample,
    progress::Progress,
    report::Row,
    scan,
    stats::Latency,
    watch::{FanOut, Plan},
};

/// What client-go and kubectl ask for first.
const AGGREGATED: HeaderValue =
    HeaderValue::from_static("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");

/// Unmeasured creates of each worker before those that count.
const WARM_UP_CREATES: usize = 20;

/// For a server to give memory back after the creates.
const SETTLE: Duration = Duration::from_secs(2);

impl Bench {
    /// Measures one scenario and adds its row.
    pub(super) async fn scenario(&mut self, scenario: Scenario) -> Result<()> {
        if scenario.needs_objects() && scenario != Scenario::Create && !self.crew.objects.exists(0) {
            // Not asked for, but the others need them.
            self.create().await?;
        }
        let row = match scenario {
            // Measured when the server was started.
            Scenario::Startup => return Ok(()),
            Scenario::Discovery => {
                let paths = documents(&mut self.crew.server.connect().await?).await?;
                self.timed(scenario, Operation::Documents { paths: paths.into(), accept: JSON }).await?
            }
            Scenario::DiscoveryAggregated => {
                let paths = Arc::from(["/api".to_owned(), "/apis".to_owned()]);
                self.timed(scenario, Operation::Documents { paths, accept: AGGREGATED }).await?
            }
            Scenario::Create => self.create().await?,
            Scenario::Memory => self.memory().await?,
            Scenario::Get => self.timed(scenario, Operation::Get).await?,
            Scenario::List => self.list(scenario, Operation::List(Freshness::Consistent)).await?,
            Scenario::ListRv0 => self.list(scenario, Operation::List(Freshness::Any)).await?,
            Scenario::ListPaged => self.list(scenario, Operation::ListPaged).await?,
            Scenario::Update => self.timed(scenario, Operation::Update).await?,
            Scenario::Patch => self.timed(scenario, Operation::MergePatch).await?,
            Scenario::Apply => self.timed(scenario, Operation::Apply).await?,
            Scenario::Watch | Scenario::WatchPaced => self.watch(scenario).await?,
            Scenario::Delete => self.counted(scenario, Operation::Delete).await?,
        };
        self.report.rows.push(row);
        Ok(())
    }

    async fn timed(&self, scenario: Scenario, operation: Operation) -> Result<Row> {
        let (warmup, duration) = (self.args.warmup, self.args.duration);
        Timed { name: scenario.name(), operation, warmup, duration }.measure(&self.crew, &self.watched).await
    }

    /// Once for every object.
    async fn counted(&self, scenario: Scenario, operation: Operation) -> Result<Row> {
        let name = scenario.name();
        let progress = Progress::counting(&name, self.args.objects as u64);
        let bound = Bound::Turns(self.args.objects, self.args.time_limit);
        measured(&name, &self.crew, &self.watched, operation, bound, &progress).await
    }

    async fn create(&self) -> Result<Row> {
        let count = self.args.concurrency * WARM_UP_CREATES;
        let Self { args, namespace, .. } = self;
        let objects = Arc::new(Objects::new(args.resource, namespace, "warm", count, args.size));
        let crew = Crew { objects, ..self.crew.clone() };
        let bound = Bound::Turns(count, self.args.time_limit);
        for operation in [Operation::Create, Operation::Delete] {
            let outcome =
                crew.run(operation, bound, &Progress::counting("create warm-up", count as u64)).await?;
            if let Some(failure) = outcome.first_failure {
                anyhow::bail!("warm-up: {failure}");
            }
        }
        let row = self.counted(Scenario::Create, Operation::Create).await?;
        // The others could not be measured with objects missing.
        ensure!(
            row.failures == 0,
            "{} creates failed, the first with: {}",
            row.failures,
            row.first_failure.unwrap_or_default()
        );
        Ok(row)
    }

    async fn memory(&self) -> Result<Row> {
        tokio::time::sleep(SETTLE).await;
        let now = Sample::take(&self.watched)?;
        Ok(Row {
            scenario: Scenario::Memory.name(),
            count: self.args.objects as u64,
            usage: now.until(&now),
            ..Row::default()
        })
    }

    async fn list(&self, scenario: Scenario, operation: Operation) -> Result<Row> {
        self.check_list().await?;
        self.timed(scenario, operation).await
    }

    /// A list that leaves objects out would be fast.
    async fn check_list(&self) -> Result<()> {
        let mut connection = self.crew.server.connect().await?;
        let answer = connection.expect(Call::get(self.crew.objects.collection())).await?;
        if answer.headers().contains_key(http::header::CONTENT_ENCODING) {
            return Ok(());
        }
        let body = scan::whole(answer.into_body()).await?;
        let found = memmem::find_iter(&body, r#""name":"bench-"#).count();
        let expected = self.crew.objects.count();
        ensure!(found == expected, "the list has {found} of our objects, and {expected} were created");
        Ok(())
    }

    async fn watch(&self, scenario: Scenario) -> Result<Row> {
        let paced = scenario == Scenario::WatchPaced;
        let within_duration = (self.args.watch_rate * self.args.duration.as_secs_f64()).ceil().max(1.0);
        let plan = Plan {
            watchers: self.args.watchers,
            per_connection: self.args.watchers_per_connection,
            writes: if paced { within_duration as usize } else { self.args.watch_writes },
            window: self.args.watch_window,
            rate: paced.then_some(self.args.watch_rate),
            time_limit: self.args.time_limit,
            request_timeout: self.args.request_timeout,
        };
        let name = scenario.name();
        let fan_out = FanOut::open(&self.crew, plan).await?;
        let (outcome, usage) = with_usage(&self.watched, fan_out.measure(&name)).await?;
        Ok(Row {
            scenario: name,
            count: outcome.events,
            seconds: outcome.elapsed.as_secs_f64(),
            bytes: outcome.bytes,
            latency_ms: Latency::of(&outcome.delay),
            usage,
            watch: Some(outcome.checks),
            ..Row::default()
        })
    }
}

/// The paths of all discovery documents of the old kind.
async fn documents(connection: &mut Connection) -> Result<Vec<String>> {
    let core = document(connection, "/api").await?;
    let groups = document(connection, "/apis").await?;
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    let list =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    paths.extend(
        list(&core, "versions").iter().filter_map(Value::as_str).map(|version| format!("/api/{version}")),
    );
    for group in list(&groups, "groups") {
        let versions = list(&group, "versions");
        let versions = versions.iter().filter_map(|version| version.get("groupVersion")?.as_str());
        paths.extend(versions.map(|version| format!("/apis/{version}")));
    }
    Ok(paths)
}

async fn document(connection: &mut Connection, path: &str) -> Result<Value> {
    let body = scan::whole(connection.expect(Call::get(path)).await?.into_body()).await?;
    let decoded = concord_codec::decode(&body, &concord_codec::Options::default());
    Ok(Value::Object(decoded.with_context(|| path.to_owned())?.object))
}
