//! `concord store`: tools for the file of the embedded engine.

use anyhow::Context as _;
use concord_store_embedded::{Report, backup, check, restore};

use crate::{cli::StoreCommand, host, progress::Reporter, say};

/// Runs one of the store tools.
pub(crate) fn run(command: StoreCommand) -> anyhow::Result<()> {
    match command {
        StoreCommand::Backup { file, data } => {
            let source = host::store_file(&data)?;
            let report = with_progress("backup", |show| backup(&source, &file, show))?;
            say(&format!("backed up {} to {}: {}", source.display(), file.display(), summary(&report)))
        }
        StoreCommand::Restore { file, data } => {
            host::make_private(&host::data_dir(&data)?)?;
            let target = host::store_file(&data)?;
            let report = with_progress("restore", |show| restore(&file, &target, show))?;
            say(&format!("restored {} from {}: {}", target.display(), file.display(), summary(&report)))
        }
        StoreCommand::Check { file, data } => {
            let path = file.map_or_else(|| host::store_file(&data), Ok)?;
            let report = with_progress("check", |show| check(&path, show))?;
            say(&format!("{} is sound: {}", path.display(), summary(&report)))
        }
    }
}

fn with_progress<E: Into<anyhow::Error>>(
    what: &'static str,
    work: impl FnOnce(&mut dyn FnMut(concord_store_embedded::Progress)) -> Result<Report, E>,
) -> anyhow::Result<Report> {
    let mut reporter = Reporter::new(what);
    let result = work(&mut |progress| reporter.show(progress));
    reporter.finish();
    result.map_err(Into::into).with_context(|| format!("{what} failed"))
}

fn summary(report: &Report) -> String {
    let Report { revision, oldest, keys, rows } = report;
    format!("revision {revision} (history from {oldest}), {keys} keys, {rows} rows")
}
