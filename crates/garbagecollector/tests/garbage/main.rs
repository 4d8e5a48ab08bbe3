//! The garbage collector: as pure functions on a model, and on a real store.

mod audit;
mod collector;
mod fuzz;
mod many;
mod random;
mod support;
mod world;
