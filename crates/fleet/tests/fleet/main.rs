//! Servers on one log, in one process: what they say about themselves, and what they may write.

mod audit;
mod collection;
mod definitions;
mod faults;
mod faulty;
mod identity;
mod paused;
mod registration;
mod support;
mod upstream;
