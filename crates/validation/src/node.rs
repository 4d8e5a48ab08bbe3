//! A value of the object together with where it is.
//!
//! Rules are written against [`Node`]s. A node is three words and freely copied; the way to it is remembered as a
//! step in a list that all nodes of one validation share, and becomes text only when an error is reported. A valid
//! object therefore costs no formatting at all.
//!
//! Members of a wrong type are as good as absent: that types are right is the schema's business.

mod told;

use std::{borrow::Cow, cell::RefCell};

use concord_meta::field::{BadValue, Error, Path};
use serde_json::{Map, Value};

use crate::gates::{Gate, Gates};

/// The place of errors that name none: upstream's path with an empty name, which it shows as `[]`.
const NOWHERE: u32 = u32::MAX;

/// What all nodes of one validation share.
#[derive(Default)]
pub(crate) struct Findings<'v> {
    gates: Gates,
    now: Option<i64>,
    steps: RefCell<Vec<(u32, Step<'v>)>>,
    errors: RefCell<Vec<Error>>,
    warnings: RefCell<Vec<String>>,
}

#[derive(Clone, Copy)]
enum Step<'v> {
    Field(&'v str),
    Key(&'v str),
    /// A key of which only this many bytes are shown.
    Cut(&'v str, usize),
    Index(usize),
}

impl<'v> Findings<'v> {
    /// Nothing yet, where these features are on.
    pub(crate) fn new(gates: Gates) -> Self {
        Self { gates, ..Self::default() }
    }

    /// The same at a time, in seconds since 1970.
    pub(crate) fn at(self, now: Option<i64>) -> Self {
        Self { now, ..self }
    }

    /// The errors so far, in the order of their discovery.
    pub(crate) fn take(&self) -> Vec<Error> {
        self.errors.take()
    }

    /// The warnings, in the order of their discovery.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    fn step(&self, parent: u32, step: Step<'v>) -> u32 {
        let mut steps = self.steps.borrow_mut();
        if steps.is_empty() {
            steps.reserve(64);
        }
        steps.push((parent, step));
        u32::try_from(steps.len()).unwrap_or(u32::MAX)
    }

    /// Paths are short; a parent always has a smaller number than its child, so this ends.
    fn path(&self, mut at: u32) -> Path {
        let steps = self.steps.borrow();
        let mut way = Vec::new();
        while let Some((parent, step)) = (at as usize).checked_sub(1).and_then(|at| steps.get(at)) {
            way.push(*step);
            at = *parent;
        }
        way.iter().rev().fold(Path::nil(), |path, step| match step {
            Step::Field(name) => path.child(name),
            Step::Key(key) => path.key(key),
            Step::Cut(key, max) => path.key(&told::cut(key, *max)),
            Step::Index(index) => path.index(*index),
        })
    }
}

/// A value and its place. The value may be absent: a place exists whether something stands there or not.
#[derive(Clone, Copy)]
pub(crate) struct Node<'v> {
    findings: &'v Findings<'v>,
    value: Option<&'v Value>,
    at: u32,
}

/// The root, whose members are an object's.
#[derive(Clone, Copy)]
pub(crate) struct Root<'v> {
    findings: &'v Findings<'v>,
    object: &'v Map<String, Value>,
}

impl<'v> Root<'v> {
    pub(crate) fn new(findings: &'v Findings<'v>, object: &'v Map<String, Value>) -> Self {
        Self { findings, object }
    }

    /// A member of the object.
    pub(crate) fn get(self, name: &'static str) -> Node<'v> {
        let value = self.object.get(name).filter(|value| !value.is_null());
        Node { findings: self.findings, value, at: self.findings.step(0, Step::Field(name)) }
    }

    /// A place without a value.
    pub(crate) fn child(self, name: &'static str) -> Node<'v> {
        Node { findings: self.findings, value: None, at: self.findings.step(0, Step::Field(name)) }
    }

    pub(crate) fn object(self) -> &'v Map<String, Value> {
        self.object
    }

    pub(crate) fn metadata(self) -> Node<'v> {
        self.get("metadata")
    }

    pub(crate) fn name(self) -> &'v str {
        self.object
            .get("metadata")
            .and_then(|meta| meta.get("name"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// An annotation's value.
    pub(crate) fn annotation(self, key: &str) -> Option<&'v str> {
        self.object.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    /// Whether a feature is there.
    pub(crate) fn gate(self, gate: Gate) -> bool {
        self.findings.gates.has(gate)
    }

    /// Warns about the object.
    pub(crate) fn warn(self, text: impl Into<String>) {
        self.findings.warnings.borrow_mut().push(text.into());
    }

    /// Adds errors that were found by other means.
    pub(crate) fn extend(self, errors: Vec<Error>) {
        self.findings.errors.borrow_mut().extend(errors);
    }
}

/// Places.
impl<'v> Node<'v> {
    fn to(self, step: Step<'v>, value: Option<&'v Value>) -> Self {
        let value = value.filter(|value| !value.is_null());
        Self { findings: self.findings, value, at: self.findings.step(self.at, step) }
    }

    /// A member.
    pub(crate) fn get(self, name: &'static str) -> Self {
        self.to(Step::Field(name), self.raw(name))
    }

    /// A member under another name than errors call it.
    pub(crate) fn get_as(self, name: &str, called: &'static str) -> Self {
        self.to(Step::Field(called), self.raw(name))
    }

    /// A member's member.
    pub(crate) fn get2(self, first: &'static str, second: &'static str) -> Self {
        self.get(first).get(second)
    }

    /// A place below this one without a value.
    pub(crate) fn child(self, name: &'v str) -> Self {
        self.to(Step::Field(name), None)
    }

    /// The place of an item without its value.
    pub(crate) fn at(self, index: usize) -> Self {
        self.to(Step::Index(index), None)
    }

    /// The place of a map's entry without its value.
    pub(crate) fn key(self, key: &'v str) -> Self {
        self.to(Step::Key(key), None)
    }

    /// The place without a name, for errors about the object as a whole.
    pub(crate) fn elsewhere(self, name: &'v str) -> Self {
        Self { value: None, at: self.findings.step(0, Step::Field(name)), ..self }
    }

    pub(crate) fn nowhere(self) -> Self {
        Self { value: None, at: NOWHERE, ..self }
    }

    /// Whether a feature is there.
    pub(crate) fn gate(self, gate: Gate) -> bool {
        self.findings.gates.has(gate)
    }

    /// The place of a map's entry whose key is shown without its middle if it has more bytes.
    pub(crate) fn cut_key(self, key: &'v str, max: usize) -> Self {
        self.to(Step::Cut(key, max), self.raw(key))
    }

    /// The same place with another value.
    pub(crate) fn holding(self, value: Option<&'v Value>) -> Self {
        Self { value: value.filter(|value| !value.is_null()), ..self }
    }

    /// The items of a list.
    pub(crate) fn items(self) -> impl ExactSizeIterator<Item = Self> {
        self.list().iter().enumerate().map(move |(index, item)| self.to(Step::Index(index), Some(item)))
    }

    /// The entries of a map.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'v str, Self)> {
        let members = self.object().into_iter().flatten();
        members.map(move |(key, value)| (key.as_str(), self.to(Step::Key(key), Some(value))))
    }
}

/// Values.
impl<'v> Node<'v> {
    pub(crate) fn value(self) -> Option<&'v Value> {
        self.value
    }

    /// A member without its place.
    pub(crate) fn raw(self, name: &str) -> Option<&'v Value> {
        self.value?.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn is_set(self) -> bool {
        self.value.is_some()
    }

    pub(crate) fn has(self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// The text; absent is empty, as Go's strings are.
    pub(crate) fn text(self) -> &'v str {
        self.value.and_then(Value::as_str).unwrap_or_default()
    }

    /// A member's text.
    pub(crate) fn str(self, name: &str) -> &'v str {
        self.raw(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The integer, if there is one.
    pub(crate) fn int(self) -> Option<i64> {
        self.value.and_then(Value::as_i64)
    }

    /// A member's integer; absent is zero.
    pub(crate) fn num(self, name: &str) -> i64 {
        self.raw(name).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Whether a member is `true`.
    pub(crate) fn flag(self, name: &str) -> bool {
        self.raw(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A member that may be `true`, `false` or absent.
    pub(crate) fn option(self, name: &str) -> Option<bool> {
        self.raw(name).and_then(Value::as_bool)
    }

    pub(crate) fn list(self) -> &'v [Value] {
        self.value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn object(self) -> Option<&'v Map<String, Value>> {
        self.value.and_then(Value::as_object)
    }

    /// The number of items or members.
    pub(crate) fn len(self) -> usize {
        match self.value {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value as an error shows it.
    pub(crate) fn shown(self) -> BadValue {
        self.value.map_or_else(|| BadValue::verbatim("null"), BadValue::from)
    }
}

/// Errors.
impl<'v> Node<'v> {
    fn report(self, error: impl FnOnce(&Path) -> Error) {
        let mut error = error(&self.findings.path(self.at));
        if self.at == NOWHERE {
            error.field = "[]".to_owned();
        }
        self.findings.errors.borrow_mut().push(error);
    }

    /// How many errors there are; compare before and after to learn whether a rule was broken.
    pub(crate) fn errors(self) -> usize {
        self.findings.errors.borrow().len()
    }

    /// Forgets the errors after the first `count`.
    pub(crate) fn forget(self, count: usize) {
        self.findings.errors.borrow_mut().truncate(count);
    }

    /// Whether rules find something; what they find is not reported.
    pub(crate) fn breaks(self, rules: impl FnOnce(Self)) -> bool {
        let before = self.errors();
        rules(self);
        let broken = self.errors() > before;
        self.forget(before);
        broken
    }

    pub(crate) fn required(self, detail: impl Into<Cow<'static, str>>) {
        self.report(|path| Error::required(path, detail));
    }

    pub(crate) fn invalid(self, value: impl Into<BadValue>, detail: impl Into<Cow<'static, str>>) {
        self.report(|path| Error::invalid(path, value, detail));
    }

    /// The node's own value is invalid.
    pub(crate) fn wrong(self, detail: impl Into<Cow<'static, str>>) {
        self.invalid(self.shown(), detail);
    }

    /// Invalid without a value to show.
    pub(crate) fn invalid_as_such(self, detail: impl Into<Cow<'static, str>>) {
        self.report(|path| {
            let mut error = Error::invalid(path, "", detail);
            error.value = None;
            error
        });
    }

    pub(crate) fn not_supported(self, value: impl Into<BadValue>, supported: &[&str]) {
        self.report(|path| Error::not_supported(path, value, supported));
    }

    pub(crate) fn duplicate(self, value: impl Into<BadValue>) {
        self.report(|path| Error::duplicate(path, value));
    }

    pub(crate) fn forbidden(self, detail: impl Into<Cow<'static, str>>) {
        self.report(|path| Error::forbidden(path, detail));
    }

    pub(crate) fn not_found(self, value: impl Into<BadValue>) {
        self.report(|path| Error::not_found(path, value));
    }

    pub(crate) fn too_long(self, max: usize) {
        self.report(|path| Error::too_long(path, max));
    }

    pub(crate) fn too_many(self, actual: usize, max: usize) {
        self.report(|path| Error::too_many(path, actual, max));
    }

    pub(crate) fn internal_error(self, detail: String) {
        self.report(|path| Error::internal(path, detail));
    }

    /// Adds to what the last error says; for the few whose detail upstream sets afterwards.
    pub(crate) fn detail(self, detail: impl Into<Cow<'static, str>>) {
        if let Some(error) = self.findings.errors.borrow_mut().last_mut() {
            error.detail = detail.into();
        }
    }
}
