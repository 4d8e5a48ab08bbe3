//! One run: prepare, measure scenario after scenario, clean up whatever happened.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use rand::RngExt;

use crate::{
    args::{Run, Scenario},
    client::{Call, Refusal, Server},
    definition,
    drive::{Bound, Crew},
    kubeconfig, namespace,
    objects::{Objects, Resource},
    operations::Operation,
    process::{self, Sample, Usage, Watched},
    progress::Progress,
    report::{Report, Row},
    scan::{self, Reading},
    startup::{self, Started},
    stats::Latency,
};

mod scenarios;

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Good,
    /// Measured, but with failures or lost events.
    Faulty,
    Interrupted,
}

/// A run and what it has found out so far.
pub(crate) struct Bench {
    args: Run,
    crew: Crew,
    namespace: String,
    namespace_exists: bool,
    /// Whether there may be a definition of ours.
    is_defined: bool,
    watched: Vec<Watched>,
    started: Option<Started>,
    report: Report,
}

/// Measures, prints and saves. The arguments are checked.
pub(crate) async fn run(args: Run) -> Result<Ending> {
    let mut bench = Bench::new(args)?;
    // Dropping the measurement ends its tasks, so that cleaning up has the server for itself.
    let measured = tokio::select! {
        measured = bench.measure() => Some(measured),
        () = interrupted() => None,
    };
    let cleaned = tokio::select! {
        cleaned = bench.clean_up() => cleaned,
        () = interrupted() => bench.left_behind(),
    };
    let good = bench.publish()?;
    match (measured, cleaned) {
        (Some(Err(failure)), Err(left)) => bail!("{failure:#}; and {left:#}"),
        (Some(Err(failure)), Ok(())) | (_, Err(failure)) => Err(failure),
        (None, Ok(())) => Ok(Ending::Interrupted),
        (Some(Ok(())), Ok(())) => Ok(if good { Ending::Good } else { Ending::Faulty }),
    }
}

fn is_refusal(failure: &anyhow::Error) -> bool {
    failure.downcast_ref::<Refusal>().is_some()
}

/// Ctrl-C or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

impl Bench {
    fn new(args: Run) -> Result<Self> {
        let path = match &args.kubeconfig {
            Some(path) => path.clone(),
            None => kubeconfig::default_path()?,
        };
        let access = kubeconfig::load(&path, args.context.as_deref())?;
        let server = Server::new(&access, args.http.into(), args.gzip, args.request_timeout)
            .with_context(|| format!("kubeconfig {}", path.display()))?;
        let namespace = format!("concord-bench-{:08x}", rand::rng().random::<u32>());
        let objects = Arc::new(Objects::new(args.resource, &namespace, "bench", args.objects, args.size));
        let reading = if args.decode { Reading::Decoding } else { Reading::Passing };
        let crew =
            Crew { server, workers: args.concurrency, connections: args.connections(), objects, reading };
        let watched = args.pid.iter().map(|pid| process::identify(pid.pid, pid.name.as_deref()));
        let watched = watched.collect::<Result<_>>()?;
        let report = Report::new(&args);
        Ok(Self {
            args,
            crew,
            namespace,
            namespace_exists: false,
            is_defined: false,
            watched,
            started: None,
            report,
        })
    }

    async fn measure(&mut self) -> Result<()> {
        let scenarios = self.args.scenarios();
        if scenarios.iter().any(|scenario| scenario.needs_objects()) {
            self.check_open_files()?;
        }
        if self.args.startup_command.is_some() {
            self.start(scenarios.contains(&Scenario::Startup)).await?;
        }
        self.greet().await?;
        if scenarios.iter().any(|scenario| scenario.needs_objects()) {
            let mut connection = self.crew.server.connect().await?;
            // Before the request: it may be interrupted after the server has done it.
            self.namespace_exists = true;
            let created = namespace::create(&mut connection, &self.namespace).await;
            self.namespace_exists = !created.as_ref().is_err_and(is_refusal);
            created?;
            if self.args.resource == Resource::Records {
                self.is_defined = true;
                let (collection, limit) = (self.crew.objects.collection(), self.args.time_limit);
                let defined = definition::create(&self.crew.server, collection, limit).await;
                // One that was there before is somebody else's.
                self.is_defined = !defined.as_ref().is_err_and(definition::is_of_others);
                defined?;
            }
        }
        for scenario in scenarios {
            let name = scenario.name();
            self.scenario(scenario).await.with_context(|| format!("while measuring {name}"))?;
        }
        Ok(())
    }

    /// Starts the server, as often as asked if that is to be measured.
    async fn start(&mut self, measured: bool) -> Result<()> {
        let Some(command) = &self.args.startup_command else { return Ok(()) };
        let runs = if measured { self.args.startup_runs } else { 1 };
        let (times, started) =
            startup::measure(&self.crew.server, command, runs, self.args.time_limit).await?;
        let name = process::identify(started.pid, None)?;
        self.started = Some(started);
        self.watched.push(name);
        if measured {
            let now = Sample::take(&self.watched)?;
            self.report.rows.push(Row {
                scenario: Scenario::Startup.name(),
                count: times.len(),
                latency_ms: Latency::of(&times),
                usage: now.until(&now),
                ..Row::default()
            });
        }
        Ok(())
    }

    /// Asks who the server is: the first request, so its failure must say what to do.
    async fn greet(&mut self) -> Result<()> {
        let mut connection = self.crew.server.connect().await?;
        let answer = connection.expect(Call::get("/version")).await.with_context(|| {
            format!("{} does not let us in: look at the user of the kubeconfig", self.crew.server.url())
        })?;
        let body = scan::whole(answer.into_body()).await?;
        let version = concord_codec::decode(&body, &concord_codec::Options::default()).context("/version")?;
        let version =
            version.object.get("gitVersion").and_then(|version| version.as_str()).unwrap_or("unknown");
        version.clone_into(&mut self.report.server_version);
        if self.report.label.is_empty() {
            version.clone_into(&mut self.report.label);
        }
        let now = Sample::take(&self.watched)?;
        self.report.idle = now.until(&now);
        Ok(())
    }

    /// Every watcher needs a file descriptor.
    fn check_open_files(&self) -> Result<()> {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let limit = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<usize>().ok());
        let needed =
            self.args.watchers.div_ceil(self.args.watchers_per_connection) + self.args.concurrency + 32;
        ensure!(
            limit.is_none_or(|limit| needed <= limit),
            "{needed} files must be open at the same time and the limit is {}: raise it with `ulimit -n {needed}`, \
             or give fewer --watchers",
            limit.unwrap_or_default()
        );
        Ok(())
    }

    async fn clean_up(&mut self) -> Result<()> {
        let removed = if self.namespace_exists {
            let name = &self.namespace;
            let removed = namespace::remove(&self.crew, name, self.args.time_limit).await;
            removed.with_context(|| format!("the namespace {name} is left behind: delete it yourself"))
        } else {
            Ok(())
        };
        let undefined = match self.is_defined {
            true => definition::remove(&self.crew.server, self.args.time_limit).await,
            false => Ok(()),
        };
        if let Some(started) = self.started.take() {
            started.stop().await?;
        }
        removed.and(undefined)
    }

    fn left_behind(&self) -> Result<()> {
        bail!("interrupted again: the namespace {} is left behind, delete it yourself", self.namespace)
    }

    /// Prints what there is, also after an interruption.
    fn publish(&self) -> Result<bool> {
        if !self.report.rows.is_empty() {
            crate::print(&crate::table::results(&self.report));
            if let Some(path) = &self.args.json {
                self.report.save(Path::new(path))?;
            }
        }
        Ok(self.report.good())
    }
}

/// Times something between two looks at the counters.
async fn with_usage<T>(watched: &[Watched], work: impl Future<Output = Result<T>>) -> Result<(T, Usage)> {
    let before = Sample::take(watched)?;
    let done = work.await?;
    Ok((done, before.until(&Sample::take(watched)?)))
}

/// What a timed scenario does before and while it is measured.
struct Timed {
    name: String,
    operation: Operation,
    warmup: Duration,
    duration: Duration,
}

impl Timed {
    async fn measure(self, crew: &Crew, watched: &[Watched]) -> Result<Row> {
        if !self.warmup.is_zero() {
            let progress = Progress::timed(&format!("{} warm-up", self.name), self.warmup);
            crew.run(self.operation.clone(), Bound::Time(self.warmup), &progress).await?;
        }
        let progress = Progress::timed(&self.name, self.duration);
        measured(&self.name, crew, watched, self.operation, Bound::Time(self.duration), &progress).await
    }
}

async fn measured(
    name: &str,
    crew: &Crew,
    watched: &[Watched],
    operation: Operation,
    bound: Bound,
    progress: &Progress,
) -> Result<Row> {
    // Handshakes are not what is measured.
    let workers = crew.assemble().await?;
    let (outcome, usage) = with_usage(watched, crew.drive(workers, operation, bound, progress)).await?;
    Ok(Row {
        scenario: name.to_owned(),
        count: outcome.latency.len(),
        seconds: outcome.elapsed.as_secs_f64(),
        bytes: outcome.bytes,
        failures: outcome.failures,
        first_failure: outcome.first_failure,
        latency_ms: Latency::of(&outcome.latency),
        usage,
        watch: None,
    })
}
