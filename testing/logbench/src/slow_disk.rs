//! Runs this program again on a disk whose syncs take longer.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use concord_faultfs::{FaultFs, Faults};

const MARK: &str = "CONCORD_LOGBENCH_SLOW";

/// Whether this is the second run.
pub(crate) fn is_slow() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Repeats the command line with a delay on every sync below `directory`.
pub(crate) fn run_again(directory: &Path, sync_delay: Duration) -> Result<()> {
    let disk = directory.join("disk");
    std::fs::create_dir(&disk)?;
    let faults = FaultFs::new(&disk, &directory.join("control"))?;
    faults.set(&Faults { sync_delay, ..Faults::default() })?;
    let mut command = Command::new(std::env::current_exe()?);
    // The last --directory counts.
    command.args(std::env::args_os().skip(1)).arg("--directory").arg(&disk).env(MARK, "1");
    faults.attach(&mut command)?;
    let status = command.status().context("cannot run again")?;
    ensure!(status.success(), "the measurement failed: {status}");
    ensure!(faults.counters()?.syncs > 0, "no sync was seen, so none was delayed");
    Ok(())
}
