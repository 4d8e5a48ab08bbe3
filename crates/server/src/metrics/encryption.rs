use parking_lot::Mutex;
use prometheus::{Gauge, GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::{counters, gauges, registered};

/// What became of the file that says how objects are encrypted: `apiserver_encryption_config_controller_*`.
pub(super) struct EncryptionMetrics {
    reloads: IntCounterVec,
    last: GaugeVec,
    info: IntGaugeVec,
    /// The labels of the one that is set.
    shown: Mutex<Option<[String; 2]>>,
}

impl EncryptionMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let last = Opts::new(
            "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
            "When the file was last read again, with or without success.",
        );
        Self {
            reloads: counters(
                registry,
                "apiserver_encryption_config_controller_automatic_reloads_total",
                "How often the file was read again, with or without success.",
                &["status", "apiserver_id_hash"],
            ),
            last: registered(registry, GaugeVec::new(last, &["status", "apiserver_id_hash"])),
            info: gauges(
                registry,
                "apiserver_encryption_config_controller_last_config_info",
                "Always 1; the labels say which file is in force.",
                &["apiserver_id_hash", "hash"],
            ),
            shown: Mutex::new(None),
        }
    }

    pub(super) fn in_force(&self, server: &str, file: &str) {
        let mut shown = self.shown.lock();
        if let Some([server, file]) = shown.take() {
            // It may be gone already, if it is the same.
            self.info.remove_label_values(&[&server, &file]).ok();
        }
        self.info.with_label_values(&[server, file]).set(1);
        *shown = Some([server.to_owned(), file.to_owned()]);
    }

    pub(super) fn reloaded(&self, server: &str, status: &str, at: f64) {
        self.reloads.with_label_values(&[status, server]).inc();
        let last: Gauge = self.last.with_label_values(&[status, server]);
        last.set(at);
    }
}
