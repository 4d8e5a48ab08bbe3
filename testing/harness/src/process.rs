//! What processes use.

use std::{fs, time::Duration};

/// The time that a process has had on processors, in steps of 10 ms; none if there is no such process.
pub fn processor_time(pid: u32) -> Duration {
    // Linux counts in hundredths of a second.
    const TICK: u64 = 10;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name stands in parentheses and may have blanks; then the state, which is the third field.
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * TICK)
}
