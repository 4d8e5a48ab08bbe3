//! Two servers in turns: one request to the first, one to the second, and so on.
//!
//! Differences of a few percent are less than what a machine does from one minute to the next. Here both requests of a pair
//! meet the same moment, so that their ratio says something.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    args::duration,
    client::{Protocol, Server},
    drive::Crew,
    kubeconfig, namespace,
    objects::{Objects, Resource},
    operations::{Operation, Worker},
    run::Ending,
};

/// Pairs before the first that counts.
const WARMUP: usize = 100;

/// How to compare two servers.
#[derive(Args, Clone)]
pub(crate) struct Turns {
    /// The server to compare with, and who we are.
    #[arg(long, value_name = "FILE")]
    first: PathBuf,
    /// The server that is compared; it may be the same one, which shows how much the machine alone makes.
    #[arg(long, value_name = "FILE")]
    second: PathBuf,
    /// What is asked of both.
    #[arg(long, value_enum, default_value = "create", value_name = "OPERATION")]
    operation: Asked,
    /// What to create and read.
    #[arg(long, value_enum, default_value = "configmaps", value_name = "RESOURCE")]
    resource: Resource,
    /// Pairs of requests.
    #[arg(long, default_value_t = 5000, value_name = "N")]
    pairs: usize,
    /// Bytes of data in each object.
    #[arg(long, default_value_t = 1024, value_name = "BYTES")]
    size: usize,
    /// How long one request may take.
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    request_timeout: Duration,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// One object.
    Create,
    /// One object, at random.
    Get,
}

/// One of both servers, with a namespace of its own.
struct Side {
    crew: Crew,
    namespace: String,
    worker: Worker,
}

impl Side {
    async fn new(args: &Turns, kubeconfig: &Path) -> Result<Self> {
        let access = kubeconfig::load(kubeconfig, None)?;
        let server = Server::new(&access, Protocol::Http2, false, args.request_timeout)
            .with_context(|| format!("kubeconfig {}", kubeconfig.display()))?;
        let namespace = format!("concord-bench-{:08x}", rand::rng().random::<u32>());
        let count = args.pairs + WARMUP;
        let objects = Arc::new(Objects::new(args.resource, &namespace, "bench", count, args.size));
        let mut connection = server.connect().await?;
        namespace::create(&mut connection, &namespace).await?;
        let worker = Worker {
            connection,
            objects: objects.clone(),
            random: StdRng::seed_from_u64(0),
            reading: crate::scan::Reading::Passing,
        };
        let crew = Crew { server, workers: 8, connections: 8, objects, reading: worker.reading };
        Ok(Self { crew, namespace, worker })
    }

    async fn once(&mut self, operation: &Operation, turn: usize) -> Result<Duration> {
        let begun = Instant::now();
        self.worker.perform(operation, turn).await?;
        Ok(begun.elapsed())
    }

    async fn remove(self, time_limit: Duration) -> Result<()> {
        namespace::remove(&self.crew, &self.namespace, time_limit).await
    }
}

/// Measures, prints and removes what it made.
pub(crate) async fn run(args: Turns) -> Result<Ending> {
    ensure!((1..=100_000).contains(&args.pairs), "--pairs must be 1 to 100000, not {}", args.pairs);
    ensure!((1..=250_000).contains(&args.size), "--size must be 1 to 250000, not {}", args.size);
    ensure!(args.resource != Resource::Records, "records are for `run`");
    let mut sides = [Side::new(&args, &args.first).await?, Side::new(&args, &args.second).await?];
    let measured = measure(&args, &mut sides).await;
    for side in sides {
        side.remove(Duration::from_secs(300)).await.context("objects are left behind")?;
    }
    crate::print(&table(&mut measured?));
    Ok(Ending::Good)
}

async fn measure(args: &Turns, sides: &mut [Side; 2]) -> Result<[Vec<Duration>; 2]> {
    let operation = match args.operation {
        Asked::Create => Operation::Create,
        Asked::Get => Operation::Get,
    };
    if args.operation == Asked::Get {
        for turn in 0..args.pairs + WARMUP {
            for side in &mut *sides {
                side.once(&Operation::Create, turn).await?;
            }
        }
    }
    let mut times = [Vec::with_capacity(args.pairs), Vec::with_capacity(args.pairs)];
    for turn in 0..args.pairs + WARMUP {
        // Who goes first changes: the second finds caches as the first left them.
        let mut order = [0, 1];
        order.rotate_left(turn % 2);
        for side in order {
            let took = sides[side].once(&operation, turn).await?;
            if turn >= WARMUP {
                times[side].push(took);
            }
        }
    }
    Ok(times)
}

/// By how much the second takes longer than the first, in percent.
fn more(first: f64, second: f64) -> f64 {
    (second / first - 1.0) * 100.0
}

fn table(times: &mut [Vec<Duration>; 2]) -> String {
    let [first, second] = &*times;
    let mut ratios: Vec<f64> = first
        .iter()
        .zip(second)
        .map(|(first, second)| more(first.as_secs_f64(), second.as_secs_f64()))
        .collect();
    ratios.sort_by(f64::total_cmp);
    times.iter_mut().for_each(|times| times.sort());
    let mut text = String::new();
    let mut line = |name: &str, first: f64, second: f64| {
        // Writing to a text cannot fail.
        writeln!(text, "{name:<9} {first:>9.3} ms {second:>9.3} ms {:>+8.1} %", more(first, second)).ok();
    };
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    for (name, part) in [("p25", 0.25), ("p50", 0.5), ("p75", 0.75)] {
        let [first, second] = times.each_ref().map(|times| millis(times[at(times.len(), part)]));
        line(name, first, second);
    }
    let mean = |times: &Vec<Duration>| millis(times.iter().sum::<Duration>()) / times.len() as f64;
    line("mean", mean(&times[0]), mean(&times[1]));
    let [low, median, high] = around_the_median(&ratios);
    writeln!(
        text,
        "the second of a pair takes {median:+.1} % (median; 95 % of such runs: {low:+.1} to {high:+.1} %)"
    )
    .ok();
    text
}

fn at(count: usize, part: f64) -> usize {
    ((count as f64 * part) as usize).min(count.saturating_sub(1))
}

/// The median of what is sorted, and where the true one is, with 95 % of certainty: as many places away from it as a coin
/// thrown so often lands on one side.
fn around_the_median(sorted: &[f64]) -> [f64; 3] {
    let count = sorted.len() as f64;
    let away = 0.98 * count.sqrt() / count;
    [0.5 - away, 0.5, 0.5 + away].map(|part| sorted[at(sorted.len(), part.clamp(0.0, 1.0))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_always_takes_a_little_longer_is_seen_in_noise() {
        let noise = |n: u64| 1_000 + n * 7919 % 1_000;
        let first: Vec<Duration> = (0..1000).map(|n| Duration::from_micros(noise(n))).collect();
        let second: Vec<Duration> = first.iter().map(|time| time.mul_f64(1.02)).collect();
        let text = table(&mut [first, second]);
        assert!(text.contains("takes +2.0 % (median; 95 % of such runs: +2.0 to +2.0 %)"), "{text}");
        assert!(text.contains("p50") && text.contains("mean"), "{text}");
    }

    #[test]
    fn few_pairs_say_little() {
        assert_eq!(around_the_median(&[1.0]), [1.0; 3]);
        let sorted: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(around_the_median(&sorted), [40.0, 50.0, 59.0]);
    }
}
