//! What requests are counted in.
//!
//! There are as many combinations of labels as there are resources and verbs, thousands of them where there are as many
//! definitions. So each has its labels once, and nothing but numbers; what is shown is made of them when somebody looks.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::StatusCode;
use parking_lot::RwLock;
use prometheus::{
    core::{Atomic as _, AtomicF64, Collector, Desc},
    proto::{Bucket, Counter, Histogram, LabelPair, Metric, MetricFamily, MetricType},
};

/// Upstream's, made for its service levels.
pub(super) const DURATION_BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// Without those that are too short for a service level.
const SLI_BUCKETS: &[f64] = DURATION_BUCKETS.split_at(2).1;
const SIZE_BUCKETS: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// The names of the labels, in the order in which they are shown.
const NAMES: [&str; 8] =
    ["component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version"];
/// The place of the one that only some have.
const DRY_RUN: usize = 1;

/// The values of the labels, in the order of [`NAMES`].
pub(super) type Values<'a> = [&'a str; NAMES.len()];

/// Requests with the same labels.
pub(super) struct Series {
    /// By status code; there are few.
    total: RwLock<Vec<(StatusCode, AtomicU64)>>,
    pub(super) duration: Counts<{ DURATION_BUCKETS.len() }>,
    pub(super) sli_duration: Counts<{ SLI_BUCKETS.len() }>,
    pub(super) sizes: Counts<{ SIZE_BUCKETS.len() }>,
}

/// A histogram.
pub(super) struct Counts<const N: usize> {
    bounds: &'static [f64],
    /// How many are not above a bound, and above the one before it.
    within: [AtomicU64; N],
    beyond: AtomicU64,
    sum: AtomicF64,
}

impl Series {
    fn new() -> Self {
        Self {
            total: RwLock::default(),
            duration: Counts::new(&DURATION_BUCKETS),
            sli_duration: Counts::new(SLI_BUCKETS),
            sizes: Counts::new(&SIZE_BUCKETS),
        }
    }

    /// Counts an answer.
    pub(super) fn answered(&self, code: StatusCode) {
        let count = |counters: &[(StatusCode, AtomicU64)]| {
            let counter = counters.iter().find(|(known, _)| *known == code);
            counter.map(|(_, count)| count.fetch_add(1, Ordering::Relaxed)).is_some()
        };
        if count(&self.total.read()) {
            return;
        }
        let mut counters = self.total.write();
        if !count(&counters) {
            counters.push((code, AtomicU64::new(1)));
        }
    }
}

impl<const N: usize> Counts<N> {
    fn new(bounds: &'static [f64]) -> Self {
        let within = [const { AtomicU64::new(0) }; N];
        Self { bounds, within, beyond: AtomicU64::new(0), sum: AtomicF64::new(0.0) }
    }

    pub(super) fn observe(&self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.within.get(at).unwrap_or(&self.beyond).fetch_add(1, Ordering::Relaxed);
        self.sum.inc_by(value);
    }

    /// As it is shown; `None` if there was nothing to count.
    fn shown(&self) -> Option<Histogram> {
        let mut count = 0;
        let bucket = |(within, bound): (&AtomicU64, &f64)| {
            count += within.load(Ordering::Relaxed);
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(count);
            bucket
        };
        let buckets = self.within.iter().zip(self.bounds).map(bucket).collect();
        count += self.beyond.load(Ordering::Relaxed);
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(count);
        histogram.set_sample_sum(self.sum.get());
        (count > 0).then_some(histogram)
    }
}

/// All of them, by the values of their labels.
#[derive(Clone)]
pub(super) struct AllSeries {
    descriptions: Arc<[Desc]>,
    series: Arc<RwLock<HashMap<Box<str>, Arc<Series>>>>,
}

impl AllSeries {
    pub(super) fn new() -> prometheus::Result<Self> {
        let without_dry_run = [&NAMES[..DRY_RUN], &NAMES[DRY_RUN + 1..]].concat();
        let describe = |name: &str, help: &str, labels: &[&str]| {
            let labels = labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())
        };
        let descriptions = [
            describe("apiserver_request_total", "Requests answered.", &[&["code"], &NAMES[..]].concat())?,
            describe("apiserver_request_duration_seconds", "How long requests took, in seconds.", &NAMES)?,
            describe(
                "apiserver_request_sli_duration_seconds",
                "How long requests took, in seconds, without waiting for webhooks and for their turn.",
                &without_dry_run,
            )?,
            describe(
                "apiserver_response_sizes",
                "Sizes of the answers to reads, in bytes, before compression.",
                &without_dry_run,
            )?,
        ];
        Ok(Self { descriptions: descriptions.into(), series: Arc::default() })
    }

    /// The one with these labels, if there is one already; `key` is [`AllSeries::key`].
    pub(super) fn get(&self, key: &str) -> Option<Arc<Series>> {
        self.series.read().get(key).cloned()
    }

    pub(super) fn get_or_insert(&self, key: &str) -> Arc<Series> {
        self.series.write().entry(key.into()).or_insert_with(|| Arc::new(Series::new())).clone()
    }

    /// Writes to `key` what a series is found by. No label has a zero.
    pub(super) fn key(values: &Values<'_>, key: &mut String) {
        key.clear();
        for value in values {
            key.push_str(value);
            key.push('\0');
        }
    }

    fn family(&self, nth: usize, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(self.descriptions[nth].fq_name.clone());
        family.set_help(self.descriptions[nth].help.clone());
        family.set_field_type(kind);
        family.set_metric(metrics);
        family
    }
}

impl Collector for AllSeries {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let (mut total, mut duration, mut sli_duration, mut sizes) = (vec![], vec![], vec![], vec![]);
        for (key, series) in &*self.series.read() {
            let labels: Vec<LabelPair> =
                NAMES.iter().zip(key.split('\0')).map(|(name, value)| label(name, value)).collect();
            let mut without_dry_run = labels.clone();
            without_dry_run.remove(DRY_RUN);
            for (code, count) in &*series.total.read() {
                let labels = [&[label("code", code.as_str())], &labels[..]].concat();
                total.push(counter(labels, count.load(Ordering::Relaxed)));
            }
            duration.extend(series.duration.shown().map(|shown| histogram(&labels, shown)));
            sli_duration.extend(series.sli_duration.shown().map(|shown| histogram(&without_dry_run, shown)));
            sizes.extend(series.sizes.shown().map(|shown| histogram(&without_dry_run, shown)));
        }
        let families = [
            (MetricType::COUNTER, total),
            (MetricType::HISTOGRAM, duration),
            (MetricType::HISTOGRAM, sli_duration),
            (MetricType::HISTOGRAM, sizes),
        ];
        let family = |(nth, (kind, metrics))| self.family(nth, kind, metrics);
        families.into_iter().enumerate().map(family).collect()
    }
}

fn label(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

fn counter(labels: Vec<LabelPair>, count: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(count as f64);
    let mut metric = Metric::from_label(labels);
    metric.set_counter(counter);
    metric
}

fn histogram(labels: &[LabelPair], shown: Histogram) -> Metric {
    let mut metric = Metric::from_label(labels.to_vec());
    metric.set_histogram(shown);
    metric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown_by_bounds() {
        let counts = Counts::<7>::new(&SIZE_BUCKETS);
        assert!(counts.shown().is_none());
        [0.0, 999.0, 1000.0, 1001.0, 5e8, 1e9, 2e9].into_iter().for_each(|size| counts.observe(size));
        let shown = counts.shown().expect("something was counted");
        let cumulative: Vec<u64> = shown.get_bucket().iter().map(Bucket::cumulative_count).collect();
        assert_eq!(cumulative, [3, 4, 4, 4, 4, 4, 6]);
        assert_eq!((shown.get_sample_count(), shown.get_sample_sum()), (7, 3_500_003_000.0));
    }

    #[test]
    fn labels_are_shown_in_the_order_of_their_names() {
        assert!(NAMES.is_sorted());
        assert_eq!(NAMES[DRY_RUN], "dry_run");
    }
}
