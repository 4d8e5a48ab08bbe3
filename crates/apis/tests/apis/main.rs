//! The built-in APIs as a client sees them, in this process.

mod conversion;
mod discovery;
mod support;
mod versions;
