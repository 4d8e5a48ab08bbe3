//! What is written down about requests: the flags, and the log.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use concord_audit::{Event, Log, LogOptions, Policy, Rotation};
use concord_server::{Auditing, Metrics};

#[derive(Debug, Args)]
#[command(next_help_heading = "Auditing")]
pub(crate) struct AuditOptions {
    /// The policy that says what is written down about which requests (YAML, a Policy of audit.k8s.io/v1). Without it, or
    /// without --audit-log-path, nothing is.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_policy_file: Option<PathBuf>,
    /// The file that it is written to; - for standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log_path: Option<PathBuf>,
    /// The form of each line.
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub(crate) audit_log_format: AuditFormat,
    /// How large the file becomes, in megabytes, before it is set aside under its time; 0 for no limit.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    pub(crate) audit_log_maxsize: u32,
    /// How many files are kept that were set aside; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) audit_log_maxbackup: u32,
    /// For how many days they are kept; 0 for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    pub(crate) audit_log_maxage: u32,
    /// Whether they are compressed.
    #[arg(
        long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true", require_equals = true
    )]
    pub(crate) audit_log_compress: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// An Event of audit.k8s.io/v1 in JSON.
    Json,
    /// A line of text.
    Legacy,
}

/// A log that is open. Dropping it writes what is left.
pub(crate) struct AuditLog {
    log: Arc<Log>,
    auditing: Arc<Auditing>,
}

impl AuditLog {
    pub(crate) fn auditing(&self) -> Arc<Auditing> {
        self.auditing.clone()
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.log.close();
    }
}

impl AuditOptions {
    /// Opens the log, if there is one.
    pub(crate) fn open(&self, metrics: &Metrics) -> anyhow::Result<Option<AuditLog>> {
        let (policy, path) = match (&self.audit_policy_file, &self.audit_log_path) {
            (Some(policy), Some(path)) => (policy, path),
            (None, Some(_)) => {
                tracing::warn!("Nothing is audited: --audit-log-path needs --audit-policy-file.");
                return Ok(None);
            }
            (Some(file), None) => {
                // A mistake in it is better found now than when there is a log.
                read_policy(file)?;
                tracing::warn!("Nothing is audited: --audit-policy-file needs --audit-log-path.");
                return Ok(None);
            }
            (None, None) => return Ok(None),
        };
        let policy = read_policy(policy)?;
        let rotation = Rotation {
            max_size: u64::from(self.audit_log_maxsize) * 1024 * 1024,
            max_backups: usize::try_from(self.audit_log_maxbackup).unwrap_or(usize::MAX),
            max_age_days: self.audit_log_maxage,
            compress: self.audit_log_compress,
        };
        let path = (path.as_os_str() != "-").then(|| path.clone());
        let log = Arc::new(Log::open(LogOptions { path, rotation }).context("--audit-log-path")?);
        let counters = log.counters().clone();
        metrics.before_scrape(move |metrics| metrics.set_audit_lost("log", counters.lost()));
        let (output, format) = (log.clone(), self.audit_log_format);
        let sink = Arc::new(move |event: &Event| {
            output.write(match format {
                AuditFormat::Json => event.to_json(),
                AuditFormat::Legacy => event.to_legacy(),
            });
        });
        Ok(Some(AuditLog { log, auditing: Arc::new(Auditing { policy, sink }) }))
    }
}

fn read_policy(file: &Path) -> anyhow::Result<Policy> {
    let text = fs::read(file);
    let text = text.with_context(|| format!("--audit-policy-file: cannot read {}", file.display()))?;
    let warn = |warning: &str| {
        tracing::warn!(file = %file.display(), warning, "The audit policy has a field that does not exist; it is ignored.");
    };
    match Policy::parse(&text, warn) {
        Ok(policy) => Ok(policy),
        Err(error) => bail!("--audit-policy-file: {error}: from file {}", file.display()),
    }
}
