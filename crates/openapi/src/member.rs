//! The members of documents: paths and types.

use std::{borrow::Cow, collections::BTreeMap};

use concord_codec::{Options, decode};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// Members by their names, in whose order they are written.
pub(crate) type Members = BTreeMap<String, Member>;

/// A path or a type, in the form in which it is put into a document.
///
/// The document of version 2 has thousands of them if a thousand resources are defined: as trees they take many times the
/// memory of their texts, and half of the time went into getting it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Member {
    /// What others may still add to.
    Tree(Value),
    /// What is written already.
    Text(Box<RawValue>),
}

impl Member {
    /// Writes a member that nothing is added to.
    pub(crate) fn written(value: &Value) -> Self {
        Self::Text(to_raw_value(value).expect("values can be written"))
    }

    /// What it says.
    pub(crate) fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Tree(value) => Cow::Borrowed(value),
            Self::Text(text) => Cow::Owned(read(text)),
        }
    }

    /// What it says, to add something.
    pub(crate) fn tree(&mut self) -> &mut Value {
        if let Self::Text(text) = self {
            *self = Self::Tree(read(text));
        }
        match self {
            Self::Tree(value) => value,
            Self::Text(_) => unreachable!("it has just been read"),
        }
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::Text)
    }
}

/// What was written here is read again here. It is as deep as a stored definition, which is read in the same way.
fn read(text: &RawValue) -> Value {
    let mut options = Options::default();
    options.limits.max_bytes = usize::MAX;
    decode(text.get().as_bytes(), &options).map(|decoded| decoded.object.into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        let deep = (0..400).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
        for value in [json!({}), json!({"default": 9_007_199_254_740_993_i64, "minimum": 0.5}), deep] {
            let mut member = Member::written(&value);
            assert_eq!(*member.value(), value);
            assert_eq!(*member.tree(), value);
            assert!(matches!(member, Member::Tree(_)));
        }
    }
}
