//! Everything that changes an object by a patch, and who owns which field.
//!
//! JSON patch, JSON merge patch, strategic merge patch and server-side apply on dynamic objects, with the
//! results and the error texts of kube-apiserver. Start with [`JsonPatch`], [`strategic::strategic_merge`] and
//! [`apply::FieldManager`].
//!
//! This crate must never read a clock, know a concrete resource or panic on what a client sent. What it needs
//! to know of a kind comes through small schema traits: [`strategic::PatchSchema`] and [`typed::Type`]. Values
//! are walked recursively: callers parse with serde_json's recursion limit, which bounds their depth.

mod answer;
pub mod apply;
pub mod fields;
mod go;
mod json_patch;
mod merge_patch;
pub mod strategic;
pub mod typed;
mod values;

pub use answer::Answer;
pub use go::plain as format_plain;
pub use json_patch::{JsonPatch, JsonPatchError, MAX_COPY_BYTES, MAX_OPERATIONS};
pub use merge_patch::{MergePatchError, merge_patch};
