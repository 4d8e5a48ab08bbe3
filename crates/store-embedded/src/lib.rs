//! See the manifest's description.
