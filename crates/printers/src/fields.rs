//! Reading the fields of an object that may look like anything.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Go's zero time, which upstream's types cannot tell from no time.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

/// An object inside an object, or nothing. What is absent or has the wrong type reads as empty, like the
/// zero value of a Go struct.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    pub(crate) fn new(object: &'a Map<String, Value>) -> Self {
        Self(Some(object))
    }

    pub(crate) fn of(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    /// A field that is there and not null.
    pub(crate) fn value(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn at(self, name: &str) -> Self {
        Self(self.value(name).and_then(Value::as_object))
    }

    /// The object in the field, if there is one: for Go's pointers to structs.
    pub(crate) fn present(self, name: &str) -> Option<Self> {
        self.value(name)?.as_object().map(Self::new)
    }

    pub(crate) fn has(self, name: &str) -> bool {
        self.present(name).is_some()
    }

    /// The text in the field, if there is one: for Go's pointers to strings.
    pub(crate) fn optional_text(self, name: &str) -> Option<&'a str> {
        self.value(name)?.as_str()
    }

    pub(crate) fn text(self, name: &str) -> &'a str {
        self.optional_text(name).unwrap_or_default()
    }

    /// The text, or what stands for an absent or empty one.
    pub(crate) fn text_or(self, name: &str, empty: &'a str) -> &'a str {
        Some(self.text(name)).filter(|text| !text.is_empty()).unwrap_or(empty)
    }

    pub(crate) fn optional_int(self, name: &str) -> Option<i64> {
        self.value(name)?.as_i64()
    }

    pub(crate) fn int(self, name: &str) -> i64 {
        self.optional_int(name).unwrap_or_default()
    }

    pub(crate) fn flag(self, name: &str) -> bool {
        self.flag_or(name, false)
    }

    pub(crate) fn flag_or(self, name: &str, absent: bool) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(absent)
    }

    fn list(self, name: &str) -> &'a [Value] {
        self.value(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The objects of a list.
    pub(crate) fn items(
        self,
        name: &str,
    ) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + use<'a> {
        self.list(name).iter().map(Self::of)
    }

    /// The texts of a list.
    pub(crate) fn texts(self, name: &str) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        self.list(name).iter().map(|text| text.as_str().unwrap_or_default())
    }

    /// The entries of a map with texts as values, sorted by key.
    pub(crate) fn pairs(self, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let map = self.at(name).0.into_iter().flatten();
        map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }

    /// How many entries the list or map has, as a cell counts them.
    pub(crate) fn count(self, name: &str) -> usize {
        match self.value(name) {
            Some(Value::Array(list)) => list.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        }
    }

    /// A time that is there and not Go's zero time.
    pub(crate) fn time(self, name: &str) -> Option<Timestamp> {
        let time: Timestamp = self.optional_text(name)?.parse().ok()?;
        (time.as_second() != ZERO_TIME_SECONDS).then_some(time)
    }

    /// The first of the conditions with that type.
    pub(crate) fn condition(self, condition_type: &str) -> Option<Self> {
        self.items("conditions").find(|condition| condition.text("type") == condition_type)
    }

    /// The last of the conditions with that type: where upstream makes a map of them.
    pub(crate) fn last_condition(self, condition_type: &str) -> Option<Self> {
        self.items("conditions").rfind(|condition| condition.text("type") == condition_type)
    }

    pub(crate) fn metadata(self) -> Self {
        self.at("metadata")
    }

    pub(crate) fn name(self) -> &'a str {
        self.metadata().text("name")
    }

    /// Whether the object is being deleted.
    pub(crate) fn is_deleted(self) -> bool {
        self.metadata().value("deletionTimestamp").is_some()
    }

    pub(crate) fn annotation(self, name: &str) -> Option<&'a str> {
        self.metadata().at("annotations").optional_text(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_the_wrong_type_is_absent() {
        let object =
            json!({"text": 5, "int": "x", "list": {"a": 1}, "map": [1], "null": null, "huge": 1e300});
        let fields = Fields::of(&object);
        assert_eq!(fields.text("text"), "");
        assert_eq!(fields.int("int"), 0);
        assert_eq!(fields.int("huge"), 0);
        assert_eq!(fields.items("list").len(), 0);
        assert!(!fields.has("map"));
        assert!(fields.value("null").is_none());
        assert_eq!(fields.at("text").at("deeper").text("still"), "");
    }

    #[test]
    fn elements_of_the_wrong_type_are_empty() {
        let object = json!({"list": [1, {"name": "b"}], "texts": ["a", 1]});
        let fields = Fields::of(&object);
        assert_eq!(fields.items("list").map(|item| item.text("name")).collect::<Vec<_>>(), ["", "b"]);
        assert_eq!(fields.texts("texts").collect::<Vec<_>>(), ["a", ""]);
    }

    #[test]
    fn the_zero_time_is_no_time() {
        let object =
            json!({"zero": "0001-01-01T00:00:00Z", "epoch": "1970-01-01T01:00:00+01:00", "bad": "soon"});
        let fields = Fields::of(&object);
        assert_eq!(fields.time("zero"), None);
        assert_eq!(fields.time("bad"), None);
        assert_eq!(fields.time("epoch"), Some(Timestamp::UNIX_EPOCH));
    }
}
