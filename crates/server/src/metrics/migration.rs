use prometheus::{IntCounterVec, IntGaugeVec, Registry};

use super::{counters, gauges};

/// What the storage version migrator did, by the names of its KEP: `storage_migrator_core_migrator_*`.
pub(super) struct MigrationMetrics {
    pub(super) migrated: IntCounterVec,
    pub(super) remaining: IntGaugeVec,
    pub(super) migrations: IntCounterVec,
}

impl MigrationMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            migrated: counters(
                registry,
                "storage_migrator_core_migrator_migrated_objects",
                "Objects that were written again.",
                &["resource"],
            ),
            remaining: gauges(
                registry,
                "storage_migrator_core_migrator_remaining_objects",
                "Objects that a migration has not looked at yet.",
                &["resource"],
            ),
            migrations: counters(
                registry,
                "storage_migrator_core_migrator_migrations",
                "Migrations that have ended.",
                &["resource", "status"],
            ),
        }
    }
}
