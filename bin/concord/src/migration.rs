//! Migration of what is stored.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use concord_apis::FeatureGates;
use concord_controllers::Controllers;
use concord_election::Leadership;
use concord_migrator::{Config, Migrator};
use concord_server::Background;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{audit::AuditLog, duration};

/// How long the migrator rests after a panic: it would most likely do so again.
const AFTER_PANIC: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
#[command(next_help_heading = "Storage migration")]
pub(crate) struct MigrationOptions {
    /// How long all servers have to have agreed on another stored version or encryption key of a resource before its
    /// objects are migrated without anybody asking; 0s for never.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    storage_migration_delay: Duration,
}

/// What migrates objects, if the feature is on.
pub(crate) fn migrator(
    options: &MigrationOptions,
    features: &FeatureGates,
    config: Config,
) -> Option<Migrator> {
    let delay = options.storage_migration_delay;
    let automatic_after = (!delay.is_zero()).then_some(delay);
    features.enabled("StorageVersionMigrator").then(|| Migrator::new(Config { automatic_after, ..config }))?
}

/// Runs it with the other controllers, while this server leads, on a thread that gives way to what clients ask for.
///
/// # Errors
///
/// If there is no thread for it.
pub(crate) async fn start(
    migrator: Option<Migrator>,
    audit: Option<&AuditLog>,
    controllers: &Controllers,
    leadership: Leadership,
) -> anyhow::Result<()> {
    let Some(migrator) = migrator else { return Ok(()) };
    if let Some(log) = audit {
        migrator.audit(log.auditing());
    }
    let background = Background::start().context("cannot start a thread for migrations")?;
    let migrate = |cancel| async move {
        leadership.lead(&cancel, |end| run(&migrator, &background, end)).await;
    };
    controllers.run_also(migrate).await;
    Ok(())
}

/// Begins anew after a panic: while this server leads, nobody else migrates.
async fn run(migrator: &Migrator, background: &Background, end: CancellationToken) {
    loop {
        let (migrator, until) = (migrator.clone(), end.clone());
        let Err(error) = background.handle().spawn(async move { migrator.run(until).await }).await else {
            return;
        };
        tracing::error!(%error, "The migrator ended in an unexpected way, and begins anew.");
        if end.run_until_cancelled(sleep(AFTER_PANIC)).await.is_none() {
            return;
        }
    }
}
