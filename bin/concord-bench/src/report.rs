//! The results as they are kept.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    args::{Http, Run},
    objects::Resource,
    process::Usage,
    stats::{self, Latency},
    watch::Checks,
};

/// Raised when an older program could misread the file.
const FORMAT: u32 = 1;

/// Everything one run found out.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) format: u32,
    /// When the run began, in seconds since 1970.
    pub(crate) began: u64,
    pub(crate) label: String,
    /// `gitVersion` of /version.
    pub(crate) server_version: String,
    pub(crate) machine: Machine,
    pub(crate) settings: Settings,
    /// Of the server before anything was asked of it.
    pub(crate) idle: Usage,
    pub(crate) rows: Vec<Row>,
}

/// Where it was measured: the client's machine.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpus: usize,
    pub(crate) cpu_model: String,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
}

/// What was asked for.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Settings {
    #[serde(default = "configmaps")]
    pub(crate) resource: String,
    pub(crate) objects: usize,
    pub(crate) size: usize,
    pub(crate) concurrency: usize,
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) http: String,
    pub(crate) gzip: bool,
    pub(crate) duration_seconds: f64,
    pub(crate) warmup_seconds: f64,
    pub(crate) watchers: usize,
    pub(crate) watchers_per_connection: usize,
    pub(crate) watch_writes: usize,
    pub(crate) watch_window: usize,
    pub(crate) watch_rate: f64,
}

/// What all objects were before there was a choice.
fn configmaps() -> String {
    Resource::ConfigMaps.name()
}

/// What one scenario found out.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) scenario: String,
    /// Successes: requests, whole lists, events, starts.
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    /// Received.
    pub(crate) bytes: u64,
    pub(crate) failures: u64,
    pub(crate) first_failure: Option<String>,
    /// Of a watch: from sending the write to receiving the event.
    pub(crate) latency_ms: Latency,
    pub(crate) usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<Checks>,
}

impl Row {
    /// Successes per second.
    pub(crate) fn per_second(&self) -> f64 {
        stats::per(self.count as f64, self.seconds)
    }

    /// CPU milliseconds of the server for one success; `None` when no process was watched.
    pub(crate) fn server_cpu_each(&self) -> Option<f64> {
        let watched = !self.usage.processes.is_empty() && self.count > 0;
        watched.then(|| self.usage.server_cpu_ms() / self.count as f64)
    }

    /// CPU milliseconds of the client for one success.
    pub(crate) fn client_cpu_each(&self) -> f64 {
        stats::per(self.usage.client_cpu_ms, self.count as f64)
    }

    /// Whether the client had no time left: then a faster server would not have done better.
    pub(crate) fn client_was_busy(&self, threads: usize) -> bool {
        self.usage.client_cpu_ms > 0.9 * self.seconds * 1000.0 * threads as f64 && self.seconds > 0.0
    }

    /// Whether the numbers may be believed.
    pub(crate) fn good(&self) -> bool {
        self.failures == 0 && self.watch.as_ref().is_none_or(Checks::good)
    }
}

impl Settings {
    /// Those of a command line.
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            resource: run.resource.name(),
            objects: run.objects,
            size: run.size,
            concurrency: run.concurrency,
            connections: run.connections(),
            threads: run.threads(),
            http: if run.http == Http::Two { "2" } else { "1.1" }.to_owned(),
            gzip: run.gzip,
            duration_seconds: run.duration.as_secs_f64(),
            warmup_seconds: run.warmup.as_secs_f64(),
            watchers: run.watchers,
            watchers_per_connection: run.watchers_per_connection,
            watch_writes: run.watch_writes,
            watch_window: run.watch_window,
            watch_rate: run.watch_rate,
        }
    }
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Self {
        let file = |path| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned())).unwrap_or_default()
        };
        let memory = field(&file("/proc/meminfo"), "MemTotal");
        let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu_model: field(&file("/proc/cpuinfo"), "model name"),
            memory_bytes: kib * 1024,
            kernel: file("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

impl Report {
    /// One without results yet.
    pub(crate) fn new(run: &Run) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            format: FORMAT,
            began: now.map_or(0, |since| since.as_secs()),
            label: run.label.clone().unwrap_or_default(),
            server_version: String::new(),
            machine: Machine::here(),
            settings: Settings::of(run),
            idle: Usage::default(),
            rows: Vec::new(),
        }
    }

    /// Writes the file.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads a file that `save` wrote.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let parsed: Self = serde_json::from_slice(&text).with_context(|| {
            format!("{} is not a file that `concord-bench run --json` wrote", path.display())
        })?;
        ensure!(
            parsed.format == FORMAT,
            "{} has format {}, this program reads {FORMAT}: measure again",
            path.display(),
            parsed.format
        );
        Ok(parsed)
    }

    /// Whether all numbers may be believed.
    pub(crate) fn good(&self) -> bool {
        self.rows.iter().all(Row::good)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    /// One without rows, with default settings.
    pub(crate) fn report() -> Report {
        let Command::Run(run) = Cli::parse_from(["concord-bench", "run"]).command else { unreachable!() };
        Report::new(&run)
    }

    #[test]
    fn a_report_survives_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.json");
        let mut written = report();
        written.rows.push(Row { scenario: "get".to_owned(), count: 10, seconds: 2.0, ..Row::default() });
        written.save(&path).expect("written");
        let read = Report::load(&path).expect("read");
        assert_eq!((read.rows, read.settings), (written.rows, written.settings));
    }

    #[test]
    fn other_files_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.json");
        let refusal = |path: &Path| Report::load(path).expect_err("refused").to_string();
        assert!(refusal(&path).contains("cannot read"));
        std::fs::write(&path, "{}").expect("written");
        assert!(refusal(&path).contains("is not a file that `concord-bench run --json` wrote"));
        Report { format: 99, ..report() }.save(&path).expect("written");
        assert!(refusal(&path).contains("has format 99"));
    }

    #[test]
    fn rates_and_costs() {
        let mut row = Row { count: 10, seconds: 2.0, ..Row::default() };
        row.usage.client_cpu_ms = 5.0;
        assert_eq!((row.per_second(), row.client_cpu_each()), (5.0, 0.5));
        assert_eq!(row.server_cpu_each(), None);
        let process = crate::process::Use { cpu_ms: 20.0, ..Default::default() };
        row.usage.processes = vec![process.clone(), process];
        assert_eq!(row.server_cpu_each(), Some(4.0));
        assert!(row.good());
        assert!(!row.client_was_busy(1));
        row.usage.client_cpu_ms = 1900.0;
        assert!(row.client_was_busy(1) && !row.client_was_busy(2));
        row.watch = Some(Checks { lost: 1, ..Checks::default() });
        assert!(!row.good());
    }
}
