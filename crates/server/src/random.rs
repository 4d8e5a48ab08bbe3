//! Random numbers for names and chances, not for secrets: each thread has its own source, seeded by the system
//! and far cheaper than asking it for every request.

use std::cell::RefCell;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

thread_local! {
    static SOURCE: RefCell<StdRng> = RefCell::new(seeded());
}

/// Without randomness all servers draw the same numbers: names that are not unique are better than no server.
fn seeded() -> StdRng {
    let mut seed = [0; 32];
    if aws_lc_rs::rand::fill(&mut seed).is_err() {
        tracing::error!("The system has no randomness to give, audit ids are not unique.");
    }
    StdRng::from_seed(seed)
}

/// Any number.
pub(crate) fn u128() -> u128 {
    SOURCE.with_borrow_mut(|source| {
        let (high, low) = (source.next_u64(), source.next_u64());
        u128::from(high) << 64 | u128::from(low)
    })
}

/// A number from 0 to below 1.
pub(crate) fn fraction() -> f64 {
    let bits = SOURCE.with_borrow_mut(|source| source.next_u32());
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}
