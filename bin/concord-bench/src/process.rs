//! What processes cost, from `/proc`.

use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Milliseconds per clock tick: Linux shows user space a clock of 100 Hz on every architecture.
const TICK_MILLIS: f64 = 10.0;

/// A process to keep an eye on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watched {
    pub(crate) name: String,
    pub(crate) pid: u32,
}

/// What one process used in a time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Use {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) cpu_ms: f64,
    /// Resident at the end.
    pub(crate) rss_bytes: u64,
    /// The most that was ever resident, from the process's start.
    pub(crate) peak_rss_bytes: u64,
}

/// What everything used in a time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Usage {
    /// How long the time was.
    pub(crate) wall_ms: f64,
    pub(crate) processes: Vec<Use>,
    pub(crate) client_cpu_ms: f64,
    /// Of everything else on the machine: how much to distrust the numbers.
    pub(crate) other_cpu_ms: f64,
}

impl Usage {
    /// CPU of all watched processes together.
    pub(crate) fn server_cpu_ms(&self) -> f64 {
        self.processes.iter().map(|process| process.cpu_ms).sum()
    }

    /// Resident memory of all watched processes together.
    pub(crate) fn server_rss_bytes(&self) -> u64 {
        self.processes.iter().map(|process| process.rss_bytes).sum()
    }
}

/// Counters at one moment.
pub(crate) struct Sample {
    at: Instant,
    processes: Vec<Use>,
    client_cpu_ms: f64,
    machine_cpu_ms: f64,
}

impl Sample {
    /// Reads all counters; fails when a watched process has ended.
    pub(crate) fn take(watched: &[Watched]) -> Result<Self> {
        let processes = watched.iter().map(look).collect::<Result<_>>()?;
        let client_cpu_ms = cpu_ms(&read("self", "stat")?).context("/proc/self/stat")?;
        let machine = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let machine_cpu_ms = machine_cpu_ms(&machine).context("/proc/stat has no cpu line")?;
        Ok(Self { at: Instant::now(), processes, client_cpu_ms, machine_cpu_ms })
    }

    /// What was used from here to `end`.
    pub(crate) fn until(&self, end: &Self) -> Usage {
        let pairs = self.processes.iter().zip(&end.processes);
        let used = |(begin, end): (&Use, &Use)| Use { cpu_ms: end.cpu_ms - begin.cpu_ms, ..end.clone() };
        let mut usage = Usage {
            wall_ms: (end.at - self.at).as_secs_f64() * 1000.0,
            processes: pairs.map(used).collect(),
            client_cpu_ms: end.client_cpu_ms - self.client_cpu_ms,
            other_cpu_ms: 0.0,
        };
        let machine = end.machine_cpu_ms - self.machine_cpu_ms;
        usage.other_cpu_ms = (machine - usage.client_cpu_ms - usage.server_cpu_ms()).max(0.0);
        usage
    }
}

/// Adds the name of the program where none was given.
pub(crate) fn identify(pid: u32, name: Option<&str>) -> Result<Watched> {
    let program = read(&pid.to_string(), "comm")?;
    Ok(Watched { name: name.unwrap_or(program.trim()).to_owned(), pid })
}

fn look(watched: &Watched) -> Result<Use> {
    let pid = watched.pid.to_string();
    let status = read(&pid, "status")?;
    Ok(Use {
        name: watched.name.clone(),
        pid: watched.pid,
        cpu_ms: cpu_ms(&read(&pid, "stat")?).with_context(|| format!("/proc/{pid}/stat"))?,
        rss_bytes: kib(&status, "VmRSS:").unwrap_or(0) * 1024,
        peak_rss_bytes: kib(&status, "VmHWM:").unwrap_or(0) * 1024,
    })
}

fn read(pid: &str, file: &str) -> Result<String> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).with_context(|| format!("{path}: is process {pid} (--pid) still running?"))
}

/// User and system time of all threads. The name before may hold spaces and brackets.
fn cpu_ms(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = |field| fields.split_ascii_whitespace().nth(field)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 * TICK_MILLIS)
}

/// Everything but idle and waiting for disks. Guests are counted in user time already.
fn machine_cpu_ms(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let busy = ticks.iter().take(8).enumerate().filter(|(field, _)| ![3, 4].contains(field));
    Some(busy.map(|(_, ticks)| ticks).sum::<u64>() as f64 * TICK_MILLIS)
}

fn kib(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn proc_files_are_read() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 100 1 1";
        assert_eq!(cpu_ms(stat), Some(1750.0));
        assert_eq!(cpu_ms("7 (x) S 1"), None);
        assert_eq!(kib("Name:\tx\nVmHWM:\t  12 kB\nVmRSS:\t  10 kB\n", "VmRSS:"), Some(10));
        assert_eq!(kib("Name:\tx\n", "VmRSS:"), None);
        assert_eq!(machine_cpu_ms("cpu  1 2 3 1000 2000 4 5 6 7 8\ncpu0 9\n"), Some(210.0));
        assert_eq!(machine_cpu_ms("intr 1\n"), None);
    }

    #[test]
    fn use_is_the_difference() {
        let process = |cpu_ms, rss_bytes| Use { cpu_ms, rss_bytes, ..Use::default() };
        let at = Instant::now();
        let begin =
            Sample { at, processes: vec![process(10.0, 5)], client_cpu_ms: 1.0, machine_cpu_ms: 100.0 };
        let at = at + Duration::from_secs(2);
        let end =
            Sample { at, processes: vec![process(40.0, 7)], client_cpu_ms: 11.0, machine_cpu_ms: 200.0 };
        let usage = begin.until(&end);
        assert_eq!(usage.processes, [process(30.0, 7)]);
        assert_eq!((usage.wall_ms, usage.client_cpu_ms, usage.other_cpu_ms), (2000.0, 10.0, 60.0));
    }

    #[test]
    fn this_process_can_be_watched() {
        let own = identify(std::process::id(), None).expect("we run");
        assert!(!own.name.is_empty());
        let sample = Sample::take(std::slice::from_ref(&own)).expect("we run");
        assert!(sample.processes[0].rss_bytes > 0);
        let failure = identify(u32::MAX, Some("x")).expect_err("no such process");
        assert!(failure.to_string().contains("--pid"));
    }
}
