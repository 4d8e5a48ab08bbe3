//! Which of the servers on one store does what only one of them should do.
//!
//! The servers take turns with a Lease, as client-go's candidates do and in the same form, so that `kubectl get leases`
//! shows who leads. Nobody asks for the Lease again and again: candidates see it in the log, and one that is given back is
//! taken at once. Who could not renew its Lease stops well before anybody else may start, by its own clock; clocks of
//! different machines are never compared.
//!
//! A process that is stopped and continued may still believe for a moment that it leads. So leading saves work and
//! nothing else: whoever leads must compare what it relies on in the transactions that it makes, as everybody must.
//!
//! Start with [`Leadership::lead`] for those who have something to do, and [`Candidate`] for who makes it true.

mod candidate;
mod leadership;
mod record;

pub use candidate::{Candidate, Settings};
pub use leadership::Leadership;
