//! The part of a schema that has rules.

use std::sync::Arc;

use concord_cel::{Decl, escape};
use concord_structural::Node;

use crate::compile::{Compiled, Versions};
use crate::decl;

/// A node that has rules, or has some below. It has no child that has none.
pub(crate) struct Place {
    pub(crate) own: Own,
    /// By name, in order.
    pub(crate) properties: Box<[(Box<str>, Place)]>,
    pub(crate) items: Option<Box<Place>>,
    pub(crate) values: Option<Box<Place>>,
}

/// The rules of a place itself.
pub(crate) enum Own {
    None,
    /// No types can be made of the node, so no rule can be compiled.
    Untyped,
    Rules(Box<Compiled>),
}

impl Place {
    /// The rules of a node and below, compiled; nothing if there are none.
    pub(crate) fn new(node: Node<'_>, is_resource: bool) -> Option<Self> {
        build(node, is_resource, None)
    }
}

/// `decl` is the declaration of the node if it was made already, as a part of one above. Nothing is declared above
/// the topmost rules, and nothing twice below them.
fn build(node: Node<'_>, is_resource: bool, decl: Option<Arc<Decl>>) -> Option<Place> {
    if !node.has_rules_below() {
        return None;
    }
    let has_rules = !node.rules().is_empty();
    let declare = || decl::of(node, is_resource).map(Arc::new);
    let decl = if has_rules { decl.or_else(declare) } else { decl };
    let own = match &decl {
        _ if !has_rules => Own::None,
        None => Own::Untyped,
        Some(decl) => Own::Rules(Box::new(Compiled::new(node, Arc::clone(decl), |_| Versions::STORED))),
    };
    let child = |node: Node<'_>, name: Option<&str>| {
        let decl = decl.as_deref().and_then(|decl| decl::below(decl, name));
        build(node, node.is_embedded_resource(), decl)
    };
    // Properties that expressions cannot see are left out as a whole, unless nothing but their name is in the way.
    let visible = |name: &str, node| decl::is_visible(node) || escape(name).is_none();
    let properties = node.properties().filter(|(name, property)| visible(name, *property));
    Some(Place {
        own,
        properties: properties
            .filter_map(|(name, property)| Some((name.into(), child(property, Some(name))?)))
            .collect(),
        items: node.items().and_then(|items| child(items, None)).map(Box::new),
        values: node.additional().schema().and_then(|values| child(values, None)).map(Box::new),
    })
}
