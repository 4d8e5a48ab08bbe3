//! What an evaluation has spent.

use crate::error::EvalError;

/// The cost so far, and its limit.
#[derive(Debug)]
pub(crate) struct Work {
    cost: u64,
    limit: u64,
    steps: u64,
}

/// How many small steps, such as the comparison of two elements, one unit of the cost limit allows. Upstream does not
/// count them; without a bound, values that share their parts could keep a server busy for free.
const STEPS_PER_COST: u64 = 10;

impl Work {
    pub(crate) fn new(limit: u64) -> Self {
        Self { cost: 0, limit, steps: 0 }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostLimit) } else { Ok(()) }
    }

    /// Counts one small step.
    pub(crate) fn step(&mut self) -> Result<(), EvalError> {
        self.steps(1)
    }

    /// Counts small steps, such as the bytes of a string that is about to be made.
    pub(crate) fn steps(&mut self, count: usize) -> Result<(), EvalError> {
        self.steps = self.steps.saturating_add(count as u64);
        if self.steps > self.limit.saturating_mul(STEPS_PER_COST) {
            Err(EvalError::CostLimit)
        } else {
            Ok(())
        }
    }
}
