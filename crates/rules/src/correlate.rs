//! A part of an object and the old one that it is compared with.

use concord_structural::{Correlation, Node};

use crate::json::Json;

/// A value and the one it is correlated with.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) new: Json<'a>,
    pub(crate) old: Json<'a>,
}

impl Pair<'_> {
    /// Whether an update left it alone.
    pub(crate) fn is_unchanged(self, correlation: &mut Correlation) -> bool {
        let Self { node, new, old } = self;
        if let (Json::Value(new), Json::Value(old)) = (new, old) {
            return correlation.equal(node, new, old);
        }
        let objects = new.object().zip(old.object());
        objects.is_some_and(|(new, old)| correlation.objects_equal(node, new, old))
    }
}
