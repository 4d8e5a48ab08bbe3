//! Servers on one log, in one process: what they say about themselves, and what they may write.

mod audit;
mod collection;
mod definitions;
mod identity;
mod registration;
mod support;
mod upstream;
