//! The same requests to two API servers, and where their answers differ.
fn main() {}
