//! The way through an object, along the places that have rules.

use concord_cel::Budget;
use concord_meta::field::{Error, Path};
use concord_structural::{Correlation, KeyedItems, MAX_ERRORS, Node};

use crate::correlate::Pair;
use crate::json::Json;
use crate::place::Place;
use crate::rules::Findings;

/// What an object has come to so far.
pub(crate) struct Walk {
    pub(crate) budget: Budget,
    /// Whether no more rules are evaluated, because they cost too much or enough of them are broken.
    pub(crate) is_over: bool,
    findings: Findings,
    correlation: Correlation,
}

/// A part of the object and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) place: &'a Place,
    pub(crate) new: Json<'a>,
    /// What it is correlated with, which may be null.
    pub(crate) old: Option<Json<'a>>,
    /// Whose being unchanged excuses errors: the part itself, or else the closest one around it that is correlated.
    excuse: Option<Pair<'a>>,
}

impl<'a> At<'a> {
    fn child(self, node: Node<'a>, place: &'a Place, new: Json<'a>, old: Option<Json<'a>>) -> Self {
        let excuse = self.excuse.map(|around| old.map_or(around, |old| Pair { node, new, old }));
        Self { node, place, new, old, excuse }
    }
}

impl Walk {
    /// `budget` is what all rules together may cost.
    pub(crate) fn new(budget: u64) -> Self {
        let (findings, correlation) = (Findings::default(), Correlation::default());
        Self { budget: Budget::new(budget), is_over: false, findings, correlation }
    }

    /// What was found, and what is left of the budget: negative if it was not enough.
    pub(crate) fn finish(self) -> (Findings, i64) {
        let left = i64::try_from(self.budget.remaining()).unwrap_or(i64::MAX);
        (self.findings, if self.is_over { -1 } else { left })
    }

    /// Validates a whole object. What an update left alone is excused.
    pub(crate) fn object(
        &mut self,
        node: Node<'_>,
        place: &Place,
        path: &Path,
        new: Json<'_>,
        old: Option<Json<'_>>,
    ) {
        let excuse = old.map(|old| Pair { node, new, old });
        self.visit(At { node, place, new, old, excuse }, path);
    }

    /// Validates a value. Nothing is excused.
    pub(crate) fn part(
        &mut self,
        node: Node<'_>,
        place: &Place,
        path: &Path,
        new: Json<'_>,
        old: Option<Json<'_>>,
    ) {
        self.visit(At { node, place, new, old, excuse: None }, path);
    }

    fn visit(&mut self, at: At<'_>, path: &Path) {
        // Rules that are about null are rules of what is around it.
        if at.new.is_null() || self.is_over {
            return;
        }
        self.evaluate(at, path);
        if self.is_over {
            return;
        }
        if at.new.object().is_some() {
            self.members(at, path);
        } else if at.new.list().is_some() {
            self.items(at, path);
        }
    }

    fn members(&mut self, at: At<'_>, path: &Path) {
        let old = |name: &str| at.old.and_then(|old| old.member(name));
        if let Some((place, node)) = at.place.values.as_deref().zip(at.node.additional().schema()) {
            for (name, value) in at.new.object().into_iter().flatten() {
                self.visit(at.child(node, place, Json::Value(value), old(name)), &path.key(name));
            }
        }
        for (name, place) in &at.place.properties {
            let Some((node, new)) = at.node.property(name).zip(at.new.member(name)) else { continue };
            let mut child = at.child(node, place, new, old(name));
            // The old object was converted to the same version, so its type cannot be told to be unchanged.
            if at.node.is_root() && matches!(&**name, "apiVersion" | "kind") {
                child.excuse = None;
            }
            self.visit(child, &path.child(name));
        }
    }

    fn items(&mut self, at: At<'_>, path: &Path) {
        let Some((place, node)) = at.place.items.as_deref().zip(at.node.items()) else { return };
        let old = at.old.and_then(Json::list).map(|old| KeyedItems::new(at.node, old));
        for (index, item) in at.new.list().into_iter().flatten().enumerate() {
            let old = old.as_ref().and_then(|old| old.get(item)).map(Json::Value);
            self.visit(at.child(node, place, Json::Value(item), old), &path.index(index));
        }
    }

    /// So many errors are enough: an answer must not be hundreds of times as large as its request.
    pub(crate) fn error(&mut self, error: Error) {
        self.findings.errors.push(error);
        self.is_over |= self.findings.errors.len() >= MAX_ERRORS;
    }

    /// A rule is broken. That is excused if nothing changed, unless the rule is about the change.
    pub(crate) fn broken(&mut self, at: At<'_>, is_excusable: bool, error: Error) {
        let excuse = at.excuse.filter(|_| is_excusable);
        if !excuse.is_some_and(|pair| pair.is_unchanged(&mut self.correlation)) {
            self.error(error);
        } else if self.findings.warnings.len() < MAX_ERRORS {
            self.findings.warnings.push(error);
        }
    }
}
