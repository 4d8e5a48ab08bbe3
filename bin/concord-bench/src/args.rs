//! The command line.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{client::Protocol, crds::Crds, flood::Flood, objects::Resource, turns::Turns};

/// Measures any Kubernetes API server: throughput, latency, CPU and memory.
///
/// Point it at a server with a kubeconfig and it creates, reads, lists, changes and watches ConfigMaps in a namespace
/// of its own, which it removes afterwards. It prints one table; --json keeps the numbers, and `compare` sets two
/// such files side by side.
#[derive(Parser)]
#[command(name = "concord-bench", version, max_term_width = 110, after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Everything, with the cost of a server and its etcd:
    concord-bench run --kubeconfig admin.conf --pid $(pidof kube-apiserver) --pid $(pidof etcd) --json kube.json

  Only reads, for 30 seconds each, on HTTP/1.1:
    concord-bench run --only get,list,list-rv0 --duration 30s --http 1.1

  Memory with 50,000 objects:
    concord-bench run --only create,memory --objects 50000 --pid $(pidof concord)

  Time from exec to ready, ten starts:
    concord-bench run --only startup --startup-runs 10 --startup-command 'exec concord serve --data-dir d'

  Two servers side by side:
    concord-bench compare kube.json concord.json

Compare numbers only when both were taken on the same machine in the same hour. The client runs on some machine too: \
when its CPU column is as large as the server's, the client is part of what you measure.";

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure one server.
    Run(Box<Run>),
    /// Measure how a server takes many CustomResourceDefinitions.
    Crds(Crds),
    /// Measure what one user notices while another floods the server.
    Flood(Box<Flood>),
    /// Measure a small difference between two servers, with one request to each in turns.
    Turns(Turns),
    /// Print the ratios between two files that `run --json` wrote.
    Compare {
        /// What to compare with.
        first: PathBuf,
        /// What is compared: "2 x" means that this one is twice as fast, or costs half.
        second: PathBuf,
    },
}

/// How to measure a server.
#[derive(Args, Clone)]
pub(crate) struct Run {
    /// Which server, and who we are [default: $KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use [default: its current one].
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Only these, separated by commas; always in the order of this list.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SCENARIO")]
    pub(crate) only: Vec<Scenario>,
    /// All but these; the same names.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "SCENARIO",
        conflicts_with = "only",
        hide_possible_values = true
    )]
    pub(crate) skip: Vec<Scenario>,
    /// What to create, read, list, change and watch.
    #[arg(long, value_enum, default_value = "configmaps", value_name = "RESOURCE")]
    pub(crate) resource: Resource,
    /// Objects to create.
    #[arg(long, default_value_t = 5000, value_name = "N")]
    pub(crate) objects: usize,
    /// Bytes of data in each.
    #[arg(long, default_value_t = 1024, value_name = "BYTES")]
    pub(crate) size: usize,
    /// Requests under way at the same time.
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(crate) concurrency: usize,
    /// Connections these share, with HTTP/2 [default: one each].
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<usize>,
    /// Threads of the client [default: half as many as there are CPUs].
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// The protocol to speak: 2 or 1.1.
    #[arg(long, value_enum, default_value = "2", value_name = "VERSION")]
    pub(crate) http: Http,
    /// Ask for compressed answers.
    #[arg(long)]
    pub(crate) gzip: bool,
    /// Decode what is read, as clients do that work with it; otherwise it only goes by.
    #[arg(long)]
    pub(crate) decode: bool,
    /// How long each scenario that has no end of its own is measured.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) duration: Duration,
    /// How long each of these runs unmeasured before.
    #[arg(long, default_value = "1s", value_parser = duration, value_name = "TIME")]
    pub(crate) warmup: Duration,
    /// Watchers of the fan-out.
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub(crate) watchers: usize,
    /// Watchers that share a connection, with HTTP/2.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) watchers_per_connection: usize,
    /// Writes that every watcher must see.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) watch_writes: usize,
    /// Of these, how many may be under way that not all watchers have seen. Servers drop watchers that fall
    /// too far behind.
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub(crate) watch_window: usize,
    /// Writes per second in watch-paced.
    #[arg(long, default_value_t = 20.0, value_name = "N")]
    pub(crate) watch_rate: f64,
    /// A process of the server, whose CPU and memory are reported; may be given several times.
    #[arg(long, value_parser = pid, value_name = "[NAME=]PID")]
    pub(crate) pid: Vec<Pid>,
    /// Start the server with this shell command; begin it with `exec`, so that the process is the server. The
    /// kubeconfig must exist before. With other scenarios, the last one started is measured and stopped at the end.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) startup_command: Option<String>,
    /// How often.
    #[arg(long, default_value_t = 5, value_name = "N", requires = "startup_command")]
    pub(crate) startup_runs: usize,
    /// How long one request may take.
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub(crate) request_timeout: Duration,
    /// How long a scenario may take that ends by count.
    #[arg(long, default_value = "5m", value_parser = duration, value_name = "TIME")]
    pub(crate) time_limit: Duration,
    /// A name for this server in the results [default: its version].
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Where to write the results.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Scenario {
    /// From exec to /readyz; needs --startup-command.
    Startup,
    /// The documents of /api, /apis and every group version, in turn.
    Discovery,
    /// The aggregated documents of /api and /apis, in turn.
    DiscoveryAggregated,
    /// One object.
    Create,
    /// Resident memory two seconds after the objects were created; needs --pid.
    Memory,
    /// One object, at random.
    Get,
    /// All objects in one answer, as current as can be.
    List,
    /// All objects in one answer, with resourceVersion=0.
    ListRv0,
    /// All objects in pages of 500; the pages together count as one.
    ListPaged,
    /// Replace an object at the resourceVersion last seen.
    Update,
    /// A merge patch of one field.
    Patch,
    /// Server-side apply of the whole object with one field changed.
    Apply,
    /// Fan-out as fast as it goes, with delay, loss and order of events.
    Watch,
    /// Fan-out at --watch-rate writes per second: the delay without a queue.
    WatchPaced,
    /// One object.
    Delete,
}

impl Scenario {
    /// Its name on the command line and in results.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether the objects must be there.
    pub(crate) fn needs_objects(self) -> bool {
        !matches!(self, Self::Startup | Self::Discovery | Self::DiscoveryAggregated)
    }
}

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Http {
    /// HTTP/2.
    #[value(name = "2")]
    Two,
    /// HTTP/1.1.
    #[value(name = "1.1")]
    One,
}

impl From<Http> for Protocol {
    fn from(http: Http) -> Self {
        match http {
            Http::Two => Self::Http2,
            Http::One => Self::Http1,
        }
    }
}

/// A process, perhaps with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pid {
    pub(crate) name: Option<String>,
    pub(crate) pid: u32,
}

impl Run {
    /// What to measure, in order.
    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        let possible = |scenario: &Scenario| match scenario {
            Scenario::Startup => self.startup_command.is_some(),
            Scenario::Memory => !self.pid.is_empty() || self.startup_command.is_some(),
            _ => true,
        };
        let all = Scenario::value_variants().iter().copied().filter(possible);
        all.filter(|scenario| self.only.is_empty() || self.only.contains(scenario))
            .filter(|scenario| !self.skip.contains(scenario))
            .collect()
    }

    /// Connections for the requests.
    pub(crate) fn connections(&self) -> usize {
        self.connections.unwrap_or(self.concurrency)
    }

    /// Threads of the client. One needs no locks and no waking of others, and leaves the server a CPU.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from) / 2).max(1)
    }

    /// Refuses what cannot work, before anything is done.
    pub(crate) fn check(&self) -> Result<()> {
        let in_range = |name: &str, value: usize, least: usize, most: usize| {
            ensure!((least..=most).contains(&value), "--{name} must be {least} to {most}, not {value}");
            Ok(())
        };
        in_range("concurrency", self.concurrency, 1, 1024)?;
        in_range("objects", self.objects, self.concurrency, 1_000_000)?;
        // A ConfigMap holds at most 1 MiB, and the server adds metadata; annotations are at most 256 KiB.
        let most = if self.resource == Resource::ConfigMaps { 1_000_000 } else { 250_000 };
        in_range("size", self.size, 1, most)?;
        in_range("connections", self.connections(), 1, self.concurrency)?;
        in_range("threads", self.threads(), 1, 256)?;
        in_range("watchers", self.watchers, 1, 100_000)?;
        in_range("watchers-per-connection", self.watchers_per_connection, 1, self.watchers)?;
        in_range("watch-writes", self.watch_writes, 1, 1_000_000)?;
        in_range("watch-window", self.watch_window, 1, 100_000)?;
        in_range("startup-runs", self.startup_runs, 1, 1000)?;
        ensure!(
            (0.01..=100_000.0).contains(&self.watch_rate),
            "--watch-rate must be 0.01 to 100000, not {}",
            self.watch_rate
        );
        let times = [
            ("duration", self.duration),
            ("time-limit", self.time_limit),
            ("request-timeout", self.request_timeout),
        ];
        for (name, time) in times {
            ensure!(!time.is_zero(), "--{name} must be longer than nothing");
        }
        if self.http == Http::One {
            let shared = self.connections() != self.concurrency || self.watchers_per_connection != 1;
            ensure!(!shared, "HTTP/1.1 cannot share connections: use --http 2, or leave --connections out");
        }
        self.check_selection()
    }

    fn check_selection(&self) -> Result<()> {
        let wanted = |scenario| self.only.contains(&scenario);
        ensure!(
            !wanted(Scenario::Startup) || self.startup_command.is_some(),
            "startup needs --startup-command: how is the server started?"
        );
        ensure!(
            !wanted(Scenario::Memory) || self.scenarios().contains(&Scenario::Memory),
            "memory needs --pid: which processes are the server?"
        );
        ensure!(!self.scenarios().is_empty(), "nothing is left to measure: look at --only and --skip");
        Ok(())
    }
}

/// `500ms`, `10s`, `1.5m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err("give a number with ms, s or m, such as 10s".to_owned()),
    };
    let number: f64 = digits.parse().map_err(|_| format!("{digits:?} is not a number"))?;
    let seconds = number * unit;
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err("give 0s to 1440m".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// `123`, `etcd=123`.
pub(crate) fn pid(text: &str) -> Result<Pid, String> {
    let (name, number) = match text.split_once('=') {
        Some((name, number)) => (Some(name.to_owned()), number),
        None => (None, text),
    };
    let pid = number.parse().map_err(|_| "give a process id, or NAME=ID such as etcd=123".to_owned())?;
    Ok(Pid { name, pid })
}

#[cfg(test)]
mod tests;
