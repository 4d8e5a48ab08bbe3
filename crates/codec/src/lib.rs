//! Bytes to objects and back, the way kube-apiserver does it.
//!
//! Objects are dynamic: a [`serde_json::Value`] whose maps are sorted. This crate reads JSON and YAML
//! bodies into such values with upstream's rules and error texts, finds duplicate and unknown fields on
//! the way, writes values byte for byte as Go's `encoding/json` does, chooses media types from `Accept`
//! and `Content-Type`, and serves the hot read path, where a `resourceVersion` is spliced into stored
//! bytes without parsing them.
//!
//! It never panics and never recurses on input: every walk keeps its own stack, and every accepted
//! document is at most [`Limits::max_depth`] deep, so that whoever walks the value later may recurse.
//! It knows no resource, makes no HTTP response and keeps no state between calls.
//!
//! Start with [`decode`], [`encode_body`], [`Splice`] and [`negotiate`].

mod error;
mod go;
mod json;
mod list;
mod negotiate;
mod object;
mod splice;
mod strict;
mod warning;
mod watch;
mod yaml;

pub use error::DecodeError;
pub use json::{
    Decoded, Limits, Options, decode, decode_value, depth_exceeds, encode, encode_body, encode_into,
    encode_object,
};
pub use list::{List, ListOrder};
pub use negotiate::{
    Choice, Convert, JSON_AND_YAML, JSON_YAML_AND_PROTOBUF, MediaType, NegotiationError, Offer, PatchType,
    meta_transforms, negotiate, negotiate_body, negotiate_patch, negotiate_stream, no_transform,
    wants_pretty,
};
pub use object::{TypeMeta, bad_object, missing_kind, summarize, type_meta};
pub use splice::{NotSpliceable, Splice, TypeFields};
pub use strict::{Field, FieldTree, Fields, Violation, strict_decoding_error};
pub use warning::{FieldValidation, UnknownFieldValidation, Warnings};
pub use watch::{EventType, write_event, write_spliced_event};
pub use yaml::{decode_yaml, encode_yaml};
