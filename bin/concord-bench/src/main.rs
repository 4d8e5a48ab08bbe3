//! Measures any Kubernetes API server.
fn main() {}
