use std::collections::BTreeMap;

use parking_lot::Mutex;
use prometheus::{IntCounterVec, IntGaugeVec, Registry};

use super::{counters, gauges};

/// What the storage version migrator did: by the names of its KEP, `storage_migrator_core_migrator_*`, and what that does not
/// have, `storage_migrator_*`.
pub struct MigrationMetrics {
    migrated: IntCounterVec,
    remaining: IntGaugeVec,
    migrations: IntCounterVec,
    objects: IntCounterVec,
    census: IntGaugeVec,
    /// The versions and keys that objects of a resource were last found in.
    found: Mutex<BTreeMap<String, Vec<(String, String)>>>,
}

impl MigrationMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let core = |name: &str| format!("storage_migrator_core_migrator_{name}");
        let resource = &["resource"];
        Self {
            migrated: counters(
                registry,
                &core("migrated_objects"),
                "Objects that were written again.",
                resource,
            ),
            remaining: gauges(
                registry,
                &core("remaining_objects"),
                "Objects that a migration has not looked at yet.",
                resource,
            ),
            migrations: counters(
                registry,
                &core("migrations"),
                "Migrations that have ended.",
                &["resource", "status"],
            ),
            objects: counters(
                registry,
                "storage_migrator_objects_total",
                "What became of objects that a migration looked at and found in another form.",
                &["resource", "outcome"],
            ),
            census: gauges(
                registry,
                "storage_migrator_census_objects",
                "Objects as they are stored, when they were last counted.",
                &["resource", "version", "encryption"],
            ),
            found: Mutex::default(),
        }
    }

    /// An object of a resource was looked at; `outcome` is `migrated`, `current`, `gone`, `failed` or `deferred`.
    pub fn object(&self, resource: &str, outcome: &str) {
        self.objects.with_label_values(&[resource, outcome]).inc();
        if outcome == "migrated" {
            self.migrated.with_label_values(&[resource]).inc();
        }
    }

    /// How many objects of a resource a migration has not looked at yet.
    pub fn set_remaining(&self, resource: &str, count: u64) {
        self.remaining.with_label_values(&[resource]).set(number(count));
    }

    /// A migration of a resource has ended; `status` is `Succeeded` or `Failed`.
    pub fn ended(&self, resource: &str, status: &str) {
        self.migrations.with_label_values(&[resource, status]).inc();
    }

    /// All objects of a resource were counted, by their version and what they are encrypted with.
    pub fn set_census<'a>(&self, resource: &str, rows: impl IntoIterator<Item = (&'a str, &'a str, u64)>) {
        let mut all = self.found.lock();
        let found = all.entry(resource.to_owned()).or_default();
        for (version, encryption) in found.drain(..) {
            // It may be that this was never shown.
            self.census.remove_label_values(&[resource, &version, &encryption]).ok();
        }
        for (version, encryption, count) in rows {
            self.census.with_label_values(&[resource, version, encryption]).set(number(count));
            found.push((version.to_owned(), encryption.to_owned()));
        }
    }
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn what_is_no_longer_found_is_no_longer_shown() {
        let registry = Registry::new();
        let metrics = MigrationMetrics::new(&registry);
        metrics.set_census("secrets", [("v1", "", 3), ("v1", "aesgcm:v1:k", 4)]);
        metrics.set_census("secrets", [("v1", "aesgcm:v1:k", 7)]);
        metrics.object("secrets", "migrated");
        metrics.object("secrets", "gone");
        let text = TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                r#"storage_migrator_census_objects{encryption="aesgcm:v1:k",resource="secrets",version="v1"} 7"#,
                r#"storage_migrator_core_migrator_migrated_objects{resource="secrets"} 1"#,
                r#"storage_migrator_objects_total{outcome="gone",resource="secrets"} 1"#,
                r#"storage_migrator_objects_total{outcome="migrated",resource="secrets"} 1"#,
            ]
        );
    }
}
