//! One user floods a server while another asks quietly: how much of that the quiet one notices.

mod users;

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hdrhistogram::Histogram;
use http::StatusCode;
use http_body_util::BodyExt as _;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    args::{Pid, duration, pid},
    client::{Call, Connection, Protocol, Server},
    kubeconfig::{self, Access},
    process::{self, Sample, Watched},
    run::Ending,
    scan,
    stats::{Latency, histogram, micros, per},
};
use users::{Users, with_token};

/// Between two requests of the quiet user: it is there to be measured, not to be load.
const PAUSE: Duration = Duration::from_millis(5);
/// Before a connection is tried again that could not be made.
const RETRY: Duration = Duration::from_millis(100);

/// How to flood a server.
#[derive(Args)]
pub(crate) struct Flood {
    /// The server, and an administrator. Two service accounts are made that may read everything, and removed afterwards:
    /// administrators themselves are never kept waiting.
    #[arg(long, value_name = "FILE", required_unless_present_all = ["quiet", "flood"])]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Instead: the server, and the user who asks quietly.
    #[arg(long, value_name = "FILE", requires = "flood", conflicts_with = "kubeconfig")]
    pub(crate) quiet: Option<PathBuf>,
    /// The same server, and the user who floods it.
    #[arg(long, value_name = "FILE", requires = "quiet", conflicts_with = "kubeconfig")]
    pub(crate) flood: Option<PathBuf>,
    /// What the quiet user reads.
    #[arg(long, default_value = "/api/v1/namespaces/default", value_name = "PATH")]
    pub(crate) quiet_path: String,
    /// What the other reads.
    #[arg(long, default_value = "/api/v1/configmaps", value_name = "PATH")]
    pub(crate) flood_path: String,
    /// Connections of the flood, each with one request after the other.
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(crate) connections: usize,
    /// How long all of it takes.
    #[arg(long, default_value = "10m", value_parser = duration, value_name = "TIME")]
    pub(crate) duration: Duration,
    /// How long it is idle, and then flooded, before it is idle again.
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub(crate) turn: Duration,
    /// After how long a request counts as hung.
    #[arg(long, default_value = "90s", value_parser = duration, value_name = "TIME")]
    pub(crate) request_timeout: Duration,
    /// A process of the server, whose memory is reported; may be given several times [default: what the server says of
    /// itself to the administrator].
    #[arg(long, value_parser = pid, value_name = "[NAME=]PID")]
    pub(crate) pid: Vec<Pid>,
}

/// What became of the requests of one user.
struct Asked {
    times: Histogram<u64>,
    /// 429: sent away, as it should be where there is too much.
    refused: u64,
    /// Answered with something else than a success.
    failed: u64,
    /// Not answered: the connection broke.
    lost: u64,
    /// Not answered in time.
    hung: u64,
}

impl Asked {
    fn nothing() -> Self {
        Self { times: histogram(), refused: 0, failed: 0, lost: 0, hung: 0 }
    }

    fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        self.times.add(&other.times).ok();
        self.refused += other.refused;
        self.failed += other.failed;
        self.lost += other.lost;
        self.hung += other.hung;
    }

    fn describe(&self) -> String {
        let Self { times, refused, failed, lost, hung } = self;
        let p99 = Latency::of(times).p99;
        format!(
            "{} answered, p99 {p99:.2} ms, {refused} refused, {failed} failed, {lost} lost, {hung} hung",
            times.len()
        )
    }
}

/// Asks for a path, one request after the other.
async fn ask(server: Server, path: String, until: Instant, pause: Duration) -> Asked {
    let mut asked = Asked::nothing();
    let mut connection = None;
    while Instant::now() < until {
        if connection.is_none() {
            connection = server.connect().await.ok();
        }
        let Some(current) = &mut connection else {
            asked.lost += 1;
            sleep(RETRY).await;
            continue;
        };
        let begun = Instant::now();
        match timeout(server.timeout(), get(current, &path)).await {
            Ok(Ok(StatusCode::TOO_MANY_REQUESTS)) => asked.refused += 1,
            Ok(Ok(status)) if status.is_success() => asked.times.saturating_record(micros(begun.elapsed())),
            Ok(Ok(_)) => asked.failed += 1,
            Ok(Err(_)) => {
                asked.lost += 1;
                connection = None;
            }
            Err(_) => {
                asked.hung += 1;
                connection = None;
            }
        }
        sleep(pause).await;
    }
    asked
}

async fn get(connection: &mut Connection, path: &str) -> Result<StatusCode> {
    let response = connection.send(Call::get(path)).await?;
    let status = response.status();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(status)
}

/// Both users at once; nobody floods with no connections.
async fn turn(args: &Flood, servers: &[Server; 2], connections: usize, time: Duration) -> (Asked, Asked) {
    let [quiet, loud] = servers;
    let until = Instant::now() + time;
    let mut flood = JoinSet::new();
    for _ in 0..connections {
        flood.spawn(ask(loud.clone(), args.flood_path.clone(), until, Duration::ZERO));
    }
    let asked = ask(quiet.clone(), args.quiet_path.clone(), until, PAUSE).await;
    let mut all = Asked::nothing();
    while let Some(worker) = flood.join_next().await {
        if let Ok(worker) = worker {
            all.add(&worker);
        }
    }
    (asked, all)
}

fn server(access: &Access, timeout: Duration) -> Result<Server> {
    Server::new(access, Protocol::Http2, false, timeout)
}

/// Who can say how much memory the server has.
enum Memory {
    Processes(Vec<Watched>),
    /// An administrator of the server.
    Asked(Server),
    Nobody,
}

impl Memory {
    /// Resident now, in MiB; nothing if nobody can say it.
    async fn now(&self) -> Result<f64> {
        let bytes = match self {
            Self::Nobody => 0.0,
            Self::Processes(watched) => {
                let now = Sample::take(watched)?;
                now.until(&now).server_rss_bytes() as f64
            }
            Self::Asked(server) => {
                let answer = server.connect().await?.expect(Call::get("/metrics")).await?;
                let text = scan::whole(answer.into_body()).await?;
                resident(&String::from_utf8_lossy(&text)).context("/metrics do not say how much memory")?
            }
        };
        Ok(bytes / (1024.0 * 1024.0))
    }
}

/// What the metrics of a server say about its memory.
fn resident(metrics: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes ")?.parse().ok())
}

/// Idle and flooded in turns, until the time is over; gives what was found out.
pub(crate) async fn flood(args: &Flood) -> Result<(String, Ending)> {
    ensure!(args.turn > Duration::ZERO, "--turn must be more than nothing");
    let watched = args.pid.iter().map(|pid| process::identify(pid.pid, pid.name.as_deref()));
    let watched: Vec<Watched> = watched.collect::<Result<_>>()?;
    let memory = |other| if watched.is_empty() { other } else { Memory::Processes(watched) };
    if let Some(kubeconfig) = &args.kubeconfig {
        let access = kubeconfig::load(kubeconfig, None)?;
        let administrator = server(&access, args.request_timeout)?;
        let users = Users::create(administrator.clone(), args.duration + 2 * args.turn).await?;
        let measured = match users
            .tokens
            .each_ref()
            .map(|token| server(&with_token(&access, token), args.request_timeout))
        {
            [Ok(quiet), Ok(loud)] => {
                measure(args, &[quiet, loud], &memory(Memory::Asked(administrator))).await
            }
            [Err(error), _] | [_, Err(error)] => Err(error),
        };
        users.remove().await.context("the users could not be removed")?;
        return measured;
    }
    let load = |path: &Option<PathBuf>| {
        let path = path.as_ref().context("--kubeconfig, or --quiet and --flood, must be given")?;
        server(&kubeconfig::load(path, None)?, args.request_timeout)
            .with_context(|| format!("kubeconfig {}", path.display()))
    };
    measure(args, &[load(&args.quiet)?, load(&args.flood)?], &memory(Memory::Nobody)).await
}

async fn measure(args: &Flood, servers: &[Server; 2], memory: &Memory) -> Result<(String, Ending)> {
    let first = memory.now().await?;
    let (mut idle, mut busy, mut loud) = (Asked::nothing(), Asked::nothing(), Asked::nothing());
    let (mut text, begun) = (String::new(), Instant::now());
    while begun.elapsed() < args.duration {
        let (asked, _) = turn(args, servers, 0, args.turn).await;
        idle.add(&asked);
        let (asked, flooded) = turn(args, servers, args.connections, args.turn).await;
        let p99 = Latency::of(&asked.times).p99;
        busy.add(&asked);
        loud.add(&flooded);
        let (at, memory) = (begun.elapsed().as_secs(), memory.now().await?);
        writeln!(text, "{at:>6} s  p99 {p99:>8.2} ms  {memory:>8.1} MiB")?;
    }
    let ratio = per(Latency::of(&busy.times).p99, Latency::of(&idle.times).p99);
    writeln!(text, "quiet, idle     {}", idle.describe())?;
    writeln!(text, "quiet, flooded  {}", busy.describe())?;
    writeln!(text, "flood           {}", loud.describe())?;
    writeln!(
        text,
        "memory          {first:.1} MiB at the beginning, {:.1} MiB at the end",
        memory.now().await?
    )?;
    writeln!(text, "p99 of the quiet user is {ratio:.2} x its idle value")?;
    let quiet =
        [&idle, &busy].iter().all(|asked| asked.refused + asked.failed + asked.lost + asked.hung == 0);
    let good = quiet && loud.lost + loud.hung == 0 && !idle.times.is_empty() && !busy.times.is_empty();
    Ok((text, if good { Ending::Good } else { Ending::Faulty }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_metrics() {
        let text =
            "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 4.2467328e+07\n";
        assert_eq!(resident(text), Some(42_467_328.0));
        assert_eq!(resident("process_resident_memory_bytes_max 7\n"), None);
    }
}
