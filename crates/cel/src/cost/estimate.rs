//! Ranges of costs and sizes, with arithmetic that stops at the largest number.

/// The least and the most that something costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostEstimate {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

/// The least and the most elements that something has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeEstimate {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// A number times a factor, rounded up.
fn times(value: u64, factor: f64) -> u64 {
    // The conversion stops at the largest number by itself.
    (value as f64 * factor).ceil() as u64
}

impl CostEstimate {
    pub(crate) const ZERO: Self = Self::fixed(0);

    pub(crate) const fn fixed(cost: u64) -> Self {
        Self { min: cost, max: cost }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn product(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { min: times(self.min, factor), max: times(self.max, factor) }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl SizeEstimate {
    pub(crate) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(crate) const fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn product(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The cost of so many at this price each.
    pub(crate) fn cost(self, factor: f64) -> CostEstimate {
        CostEstimate { min: times(self.min, factor), max: times(self.max, factor) }
    }

    /// The cost of so many that each cost this.
    pub(crate) fn times_cost(self, cost: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_mul(cost.min), max: self.max.saturating_mul(cost.max) }
    }
}
