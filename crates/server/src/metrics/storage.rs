use std::time::Duration;

use concord_meta::GroupResource;
use prometheus::{Histogram, HistogramVec, IntGaugeVec, Registry};

use super::{gauges, histograms, series::DURATION_BUCKETS};

/// What is stored, and how long the store takes.
pub(super) struct Storage {
    /// By upstream's old and new name.
    objects: (IntGaugeVec, IntGaugeVec),
    size: IntGaugeVec,
    latency: HistogramVec,
}

impl Storage {
    pub(super) fn new(registry: &Registry) -> Self {
        let by_name =
            gauges(registry, "apiserver_storage_objects", "Stored objects, by resource.", &["resource"]);
        let by_group = gauges(
            registry,
            "apiserver_resource_objects",
            "Stored objects, by group and resource.",
            &["group", "resource"],
        );
        let size = gauges(
            registry,
            "apiserver_storage_size_bytes",
            "The size of the store.",
            &["storage_cluster_id"],
        );
        let latency = histograms(
            registry,
            "etcd_request_duration_seconds",
            "How long operations on the store took, in seconds.",
            &DURATION_BUCKETS,
            &["operation", "group", "resource"],
        );
        Self { objects: (by_name, by_group), size, latency }
    }

    pub(super) fn set_objects(&self, resource: &GroupResource, count: i64) {
        self.objects.0.with_label_values(&[&resource.to_string()]).set(count);
        self.objects.1.with_label_values(&[&resource.group, &resource.resource]).set(count);
    }

    /// Upstream numbers its stores; there is one.
    pub(super) fn set_size(&self, bytes: i64) {
        self.size.with_label_values(&["etcd-0"]).set(bytes);
    }

    pub(super) fn latency(&self, operation: &str, resource: &GroupResource) -> StorageLatency {
        let labels = [operation, &resource.group, &resource.resource];
        StorageLatency(self.latency.with_label_values(&labels))
    }
}

/// How long one kind of operation on the store takes.
#[derive(Clone)]
pub struct StorageLatency(Histogram);

impl StorageLatency {
    /// One took this long.
    pub fn observe(&self, time: Duration) {
        self.0.observe(time.as_secs_f64());
    }
}
