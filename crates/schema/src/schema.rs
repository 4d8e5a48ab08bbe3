//! The type of a whole kind.

use concord_codec::{Fields, Violation};
use serde_json::{Map, Value};

use crate::{
    mismatch::Mismatch,
    normalize::{Source, normalize},
    place::Place,
    zero::zero,
};

/// The fields of one kind in one version.
#[derive(Clone, Debug)]
pub struct Schema {
    place: Place,
    keeps_empty_lists: bool,
}

impl Schema {
    /// The schema of the kind with this type.
    ///
    /// Most kinds of upstream lose the difference between nothing and an empty list, map or text of bytes in
    /// their store, and so do objects of this schema: see [`keeping_empty_lists`](Self::keeping_empty_lists).
    pub fn new(place: Place) -> Self {
        Self { place, keeps_empty_lists: false }
    }

    /// An empty list or map in a field that is always written stays, instead of becoming null. So it is for
    /// kinds that upstream stores as JSON, and for bodies that are never stored.
    #[must_use]
    pub fn keeping_empty_lists(mut self) -> Self {
        self.keeps_empty_lists = true;
        self
    }

    /// The type of the object: for server-side apply and strategic merge patches.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What strict decoding must know.
    pub fn fields(&self) -> &dyn Fields {
        &self.place
    }

    /// What a strategic merge patch must know.
    pub fn patch_schema(&self) -> &Place {
        &self.place
    }

    /// What the zero value of upstream's Go type encodes to: fields that are always written are present.
    pub fn empty(&self, kind: &str, api_version: &str) -> Value {
        let mut object = match zero(self.place.types(), self.place.id()) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        object.insert("kind".to_owned(), kind.into());
        object.insert("apiVersion".to_owned(), api_version.into());
        Value::Object(object)
    }

    /// Gives an object the shape it has after Go has read it into the kind's type and written it again:
    /// unknown fields and nulls go, and so do zeros where Go leaves them out; fields that are always written
    /// are added; quantities, times and bytes are written as Go writes them. To do it twice changes nothing.
    ///
    /// # Errors
    ///
    /// The first value that does not fit its type, in Go's words. Fields are looked at in the order of their
    /// names, not in that of the document. The object is then half changed.
    pub fn normalize(&self, object: &mut Map<String, Value>) -> Result<(), Mismatch> {
        normalize(&self.place, Source::Json, self.keeps_empty_lists, object, None)
    }

    /// As [`normalize`](Self::normalize), and tells the unknown fields that were dropped: for objects that a
    /// JSON patch or a merge patch has put together.
    ///
    /// # Errors
    ///
    /// As for [`normalize`](Self::normalize).
    pub fn normalize_strict(&self, object: &mut Map<String, Value>) -> Result<Vec<Violation>, Mismatch> {
        self.normalize_telling(Source::Json, object)
    }

    /// As [`normalize_strict`](Self::normalize_strict), for objects that a strategic merge patch or an apply
    /// has put together. Upstream converts such objects by other code than it reads JSON with: that has words
    /// of its own, accepts `3.0` as an integer, and cuts integers that are too large for their field.
    ///
    /// # Errors
    ///
    /// The first value that does not fit its type, in the words of that code.
    pub fn normalize_unstructured(
        &self,
        object: &mut Map<String, Value>,
    ) -> Result<Vec<Violation>, Mismatch> {
        self.normalize_telling(Source::Unstructured, object)
    }

    fn normalize_telling(
        &self,
        source: Source,
        object: &mut Map<String, Value>,
    ) -> Result<Vec<Violation>, Mismatch> {
        let mut unknown = Vec::new();
        normalize(&self.place, source, self.keeps_empty_lists, object, Some(&mut unknown))?;
        Ok(unknown)
    }
}
