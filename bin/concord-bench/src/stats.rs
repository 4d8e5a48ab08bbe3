//! Times and what to say about them.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest time told apart from longer ones.
const MAX_MICROS: u64 = 600_000_000;

/// An empty histogram of microseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_MICROS, 3).expect("the bounds are good")
}

/// Whole microseconds, at least one: a histogram has no place for zero.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// The shape of a histogram, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Latency {
    /// Of nothing, everything is zero.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let quantile = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
        Self {
            mean: histogram.mean() / 1000.0,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: histogram.max() as f64 / 1000.0,
        }
    }
}

/// `a / b`, and zero where there is nothing to divide by.
pub(crate) fn per(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_summed_up() {
        let mut times = histogram();
        for millis in 1..=100_u64 {
            times.record(millis * 1000).expect("in bounds");
        }
        let latency = Latency::of(&times);
        for (found, expected) in [
            (latency.mean, 50.5),
            (latency.p50, 50.0),
            (latency.p90, 90.0),
            (latency.p99, 99.0),
            (latency.max, 100.0),
        ] {
            assert!((found - expected).abs() / expected < 0.002, "{found} is not {expected}");
        }
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(Latency::of(&histogram()), Latency::default());
        assert!(per(1.0, 0.0).abs() < f64::EPSILON);
    }

    #[test]
    fn times_out_of_bounds_are_kept_at_the_bound() {
        let mut times = histogram();
        times.saturating_record(micros(Duration::ZERO));
        times.saturating_record(micros(Duration::from_secs(3600)));
        assert_eq!(times.len(), 2);
        assert!(times.max() >= MAX_MICROS && times.min() == 1);
    }
}
