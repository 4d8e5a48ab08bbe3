//! What is measured, each in a process of its own. A measurement prints lines `name value`.

use std::{
    fs::File,
    io::{BufRead as _, Write as _},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use tokio::runtime::{Builder, Runtime};

use crate::{
    engine::{self, Row, size_on_disk},
    group::{Load, Writer, load, value},
};

/// Long enough for hundreds of commits even when each takes milliseconds.
const LOAD_TIME: Duration = Duration::from_secs(3);
const ENTRIES: u64 = 100_000;

/// Runs the measurement `name` of the engine `spec` in the empty or prepared directory `dir`.
pub fn run(name: &str, spec: &str, dir: &Path) -> Result<()> {
    match name {
        "commit" => commit(spec, dir),
        "fill" => fill(spec, dir),
        "crash" => crash(spec, dir),
        "open" => open(spec, dir),
        "churn" => churn(spec, dir),
        "backup" => backup(spec, dir),
        "steps" => steps(spec, dir),
        _ => bail!("there is no measurement {name:?}"),
    }
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(2).build()?)
}

fn fresh_key(client: usize, n: u64) -> String {
    format!("/registry/configmaps/default/client-{client:03}-{n:08}")
}

/// Commits of 1, 16 and 256 clients, and the yardstick: appending 4 KiB to a file and syncing it.
fn commit(spec: &str, dir: &Path) -> Result<()> {
    let bare = bare_append(dir)?;
    println!("bare_p50_us {}", bare.quantile(0.5));
    println!("bare_p99_us {}", bare.quantile(0.99));
    let writer = Writer::start(engine::open(spec, dir)?, false)?;
    let runtime = runtime()?;
    let handle = writer.handle();
    load(&runtime, &handle, 1, Duration::from_millis(300), |_, n| format!("warm-{n}"))?;
    let mut single = 0.0;
    for clients in [1, 16, 256] {
        let load = load(&runtime, &handle, clients, LOAD_TIME, fresh_key)?;
        println!("{clients}_rate {}", load.rate);
        println!("{clients}_p50_us {}", load.quantile(0.5));
        println!("{clients}_p99_us {}", load.quantile(0.99));
        if clients == 1 {
            single = load.rate;
            println!("1_p50_to_bare {}", load.quantile(0.5) / bare.quantile(0.5));
        } else {
            println!("{clients}_to_1 {}", load.rate / single);
        }
    }
    Ok(())
}

fn bare_append(dir: &Path) -> Result<Load> {
    let mut file = File::create(dir.join("bare"))?;
    let block = value(1).repeat(4);
    let start = Instant::now();
    let mut latencies = Vec::new();
    while start.elapsed() < LOAD_TIME / 3 {
        let before = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        latencies.push(before.elapsed().as_secs_f64() * 1e6);
    }
    latencies.sort_by(f64::total_cmp);
    Ok(Load { rate: latencies.len() as f64 / start.elapsed().as_secs_f64(), latencies })
}

/// Writes the entries that other measurements read.
fn fill(spec: &str, dir: &Path) -> Result<()> {
    let mut engine = engine::open(spec, dir)?;
    let start = Instant::now();
    for chunk in 0..ENTRIES / 500 {
        let row =
            |id| Row { id, revision: id, kind: 1, key: fresh_key(0, id).into_bytes(), value: value(id) };
        let rows: Vec<Row> = (chunk * 500 + 1..=chunk * 500 + 500).map(row).collect();
        engine.append(&rows)?;
    }
    println!("fill_ms {}", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

/// Fills, then writes until it is killed; says when to kill.
fn crash(spec: &str, dir: &Path) -> Result<()> {
    fill(spec, dir)?;
    let writer = Writer::start(engine::open(spec, dir)?, false)?;
    println!("running 1");
    load(&runtime()?, &writer.handle(), 256, Duration::from_secs(60), fresh_key)?;
    Ok(())
}

/// Opens what `fill` or `crash` left and reads all of it.
fn open(spec: &str, dir: &Path) -> Result<()> {
    let start = Instant::now();
    let mut engine = engine::open(spec, dir)?;
    println!("open_ms {}", start.elapsed().as_secs_f64() * 1e3);
    let (mut rows, mut last, mut gaps) = (0_u64, 0, 0_u64);
    let scan = Instant::now();
    engine.scan(&mut |row| {
        gaps += u64::from(row.id != last + 1);
        last = row.id;
        rows += 1;
    })?;
    println!("scan_ns_per_row {}", scan.elapsed().as_secs_f64() * 1e9 / rows as f64);
    println!("open_and_scan_ms {}", start.elapsed().as_secs_f64() * 1e3);
    println!("rows {rows}");
    println!("gaps {gaps}");
    Ok(())
}

/// 50,000 keys that stay and 20 that are overwritten 200,000 times, without and with compaction.
fn churn(spec: &str, dir: &Path) -> Result<()> {
    let mb = |dir: &Path| anyhow::Ok(size_on_disk(dir)? as f64 / 1e6);
    let runtime = runtime()?;
    for (name, compact) in [("keep", false), ("compact", true)] {
        let dir = dir.join(name);
        std::fs::create_dir(&dir)?;
        let mut engine = engine::open(spec, &dir)?;
        for chunk in 0..100 {
            let row = |id| Row {
                id,
                revision: id,
                kind: 1,
                key: fresh_key(999, id).into_bytes(),
                value: value(id),
            };
            engine.append(&(chunk * 500 + 1..=chunk * 500 + 500).map(row).collect::<Vec<_>>())?;
        }
        let writer = Writer::start(engine, compact)?;
        let handle = writer.handle();
        let (mut written, mut rates, mut p99) = (0, Vec::new(), 0.0_f64);
        while written < 200_000 {
            let load = load(&runtime, &handle, 64, Duration::from_secs(1), |client, _| {
                format!("hot-{}", client % 20)
            })?;
            written += load.latencies.len();
            rates.push(load.rate);
            p99 = p99.max(load.quantile(0.99));
        }
        drop(handle);
        let mut engine = writer.stop()?;
        println!("{name}_rate {}", rates.iter().sum::<f64>() / rates.len() as f64);
        println!("{name}_worst_p99_us {p99}");
        println!("{name}_mb {}", mb(&dir)?);
        if compact {
            let start = Instant::now();
            engine.reclaim()?;
            println!("reclaim_ms {}", start.elapsed().as_secs_f64() * 1e3);
            println!("reclaimed_mb {}", mb(&dir)?);
        }
    }
    Ok(())
}

/// A copy of the filled store while 16 clients go on writing.
fn backup(spec: &str, dir: &Path) -> Result<()> {
    let engine = engine::open(spec, dir)?;
    let copy = engine.backup();
    let to = dir.join("copy");
    std::fs::create_dir(&to)?;
    let writer = Writer::start(engine, false)?;
    let handle = writer.handle();
    let runtime = runtime()?;
    let quiet = load(&runtime, &handle, 16, Duration::from_secs(1), fresh_key)?;
    let copying = thread::spawn(move || {
        let start = Instant::now();
        copy(&to).map(|()| start.elapsed())
    });
    let busy = load(&runtime, &handle, 16, Duration::from_secs(1), fresh_key)?;
    let Ok(took) = copying.join() else { bail!("the copy panicked") };
    println!("backup_ms {}", took?.as_secs_f64() * 1e3);
    println!("quiet_p99_us {}", quiet.quantile(0.99));
    println!("during_p99_us {}", busy.quantile(0.99));
    Ok(())
}

/// Does what the standard input says, one step per line, and answers each with a line: the parent
/// switches disk faults between the steps.
fn steps(spec: &str, dir: &Path) -> Result<()> {
    let mut engine = engine::open(spec, dir)?;
    let mut last = 0;
    engine.scan(&mut |row| last = row.id)?;
    println!("opened with {last} rows");
    for line in std::io::stdin().lock().lines() {
        let answer = match line?.as_str() {
            "put" => {
                let row = Row {
                    id: last + 1,
                    revision: last + 1,
                    kind: 1,
                    key: b"key".to_vec(),
                    value: value(last),
                };
                engine.append(&[row]).map(|()| {
                    last += 1;
                    format!("row {last} written")
                })
            }
            "scan" => {
                let mut rows = 0;
                engine.scan(&mut |_| rows += 1).map(|()| format!("{rows} rows"))
            }
            other => bail!("there is no step {other:?}"),
        };
        println!("{}", answer.unwrap_or_else(|error| format!("ERROR {error:#}")).replace('\n', " "));
    }
    Ok(())
}
