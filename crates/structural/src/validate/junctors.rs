//! `anyOf`, `oneOf`, `allOf` and `not`.

use concord_meta::{field::Error, go};
use serde_json::Value;

use super::{Mark, Object, Walk};
use crate::schema::Node;

/// What a branch is asked about: a value, or the whole object, which is not a value.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Value(&'a Value),
    Object(&'a Object),
}

/// The errors of a branch that failed, and how many checks applied.
struct Failed {
    errors: Vec<Error>,
    dropped: usize,
    count: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn junctors(&mut self, node: Node<'a>, value: &'a Value) -> u32 {
        // The check itself counts once.
        if node.has_junctors() { 1 + self.all_junctors(node, Subject::Value(value)) } else { 1 }
    }

    pub(super) fn whole_junctors(&mut self, node: Node<'a>, object: &'a Object) {
        if node.has_junctors() {
            self.all_junctors(node, Subject::Object(object));
        }
    }

    fn all_junctors(&mut self, node: Node<'a>, subject: Subject<'a>) -> u32 {
        let mut count = 0;
        if node.any_of().len() > 0 {
            count += self.any_of(node, subject);
        }
        if node.one_of().len() > 0 {
            count += self.one_of(node, subject);
        }
        if node.all_of().len() > 0 {
            count += self.all_of(node, subject);
        }
        if let Some(not) = node.not() {
            let mark = self.mark();
            self.branch(not, subject);
            let holds = !self.failed_since(mark);
            self.forget_since(mark);
            if holds {
                self.about_here("must not validate the schema (not)");
            }
        }
        count
    }

    /// Checks a branch. Nothing inside of a junctor correlates with an old value.
    fn branch(&mut self, node: Node<'a>, subject: Subject<'a>) -> u32 {
        match subject {
            Subject::Value(value) => self.value(node, value, None),
            Subject::Object(object) => {
                // As `checks` counts an object.
                let mut count = 4;
                if self.is_typed(node) {
                    count += 1 + u32::from(self.check_type(node, &Value::Object(Object::new())));
                }
                if node.has_junctors() {
                    count += self.all_junctors(node, subject);
                }
                self.enumeration_of_object(node, object);
                count + 1 + self.members(node, object, None)
            }
        }
    }

    /// An error of which upstream tells the place only in its text.
    fn about_here(&mut self, what: &str) {
        let name = self.trail.name();
        self.add_placeless(format!("{} {what}", go::quote(&name)));
    }

    fn take_since(&mut self, mark: Mark, count: u32) -> Failed {
        let errors = self.errors.split_off(mark.errors.min(self.errors.len()));
        let dropped = self.dropped - mark.dropped;
        self.dropped = mark.dropped;
        Failed { errors, dropped, count }
    }

    fn put_back(&mut self, failed: Failed) -> u32 {
        self.dropped += failed.dropped;
        for error in failed.errors {
            self.add(|_| error);
        }
        failed.count
    }

    fn any_of(&mut self, node: Node<'a>, subject: Subject<'a>) -> u32 {
        let mut best: Option<Failed> = None;
        for branch in node.any_of() {
            let mark = self.mark();
            let count = self.branch(branch, subject);
            if !self.failed_since(mark) {
                return count;
            }
            let failed = self.take_since(mark, count);
            if best.as_ref().is_none_or(|best| failed.count > best.count) {
                best = Some(failed);
            }
        }
        self.about_here("must validate at least one schema (anyOf)");
        best.map_or(0, |best| self.put_back(best))
    }

    fn one_of(&mut self, node: Node<'a>, subject: Subject<'a>) -> u32 {
        let (mut best, mut first, mut valid): (Option<Failed>, u32, usize) = (None, 0, 0);
        for branch in node.one_of() {
            let mark = self.mark();
            let count = self.branch(branch, subject);
            if !self.failed_since(mark) {
                first = if valid == 0 { count } else { first };
                valid += 1;
                continue;
            }
            let failed = self.take_since(mark, count);
            if best.as_ref().is_none_or(|best| failed.count > best.count) {
                best = Some(failed);
            }
        }
        let found = match valid {
            1 => return first,
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        self.about_here(&format!("must validate one and only one schema (oneOf). {found}"));
        best.filter(|_| valid == 0).map_or(0, |best| self.put_back(best))
    }

    fn all_of(&mut self, node: Node<'a>, subject: Subject<'a>) -> u32 {
        let (mut count, mut valid) = (0, 0);
        for branch in node.all_of() {
            let mark = self.mark();
            count += self.branch(branch, subject);
            valid += usize::from(!self.failed_since(mark));
        }
        if valid != node.all_of().len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.about_here(&format!("must validate all the schemas (allOf){none}"));
        }
        count
    }
}
