//! Members of the document of version 2 that follow one another, packed.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::json;

use crate::{
    components::Dialect,
    deflated::Deflated,
    leaf::Form,
    member::{Member, Members},
    protobuf,
    publication::to_json,
};

/// What has so many members that they are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Definitions,
    Paths,
}

impl Section {
    /// What it is called in the document.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Definitions => "definitions",
            Self::Paths => "paths",
        }
    }
}

/// Members that follow one another in a section.
#[derive(Debug)]
pub(crate) struct Run {
    section: Section,
    first: Box<str>,
    last: Box<str>,
    /// Of their text.
    hash: [u8; 32],
    json: Deflated,
    protobuf: OnceLock<Deflated>,
}

impl Run {
    /// Packs members; `None` if there are none.
    pub(crate) fn new(section: Section, members: &Members) -> Option<Arc<Self>> {
        let text = text(members);
        let hash = hash(&text);
        Self::of(section, members, &text, hash)
    }

    fn of(section: Section, members: &Members, text: &[u8], hash: [u8; 32]) -> Option<Arc<Self>> {
        let (first, last) = (members.first_key_value()?.0.as_str(), members.last_key_value()?.0.as_str());
        Some(Arc::new(Self {
            section,
            first: first.into(),
            last: last.into(),
            hash,
            json: Deflated::new(text),
            protobuf: OnceLock::new(),
        }))
    }

    /// What tells the members from others.
    pub(crate) fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// The members in a form: those of JSON with commas in between. They get it when it is first asked for.
    pub(crate) fn form(&self, form: Form) -> &Deflated {
        match form {
            Form::Json => &self.json,
            Form::Protobuf => self.protobuf.get_or_init(|| Deflated::new(&self.messages())),
        }
    }

    /// Messages that follow one another are one message, with the members of all of them.
    fn messages(&self) -> Vec<u8> {
        let section = self.section.name();
        let message = |(name, member): (String, Member)| {
            protobuf::encode(&json!({section: {name: member.value()}}), Dialect::V2)
        };
        self.members().into_iter().flat_map(message).collect()
    }

    fn members(&self) -> Members {
        let mut text = b"{".to_vec();
        self.json.read(&mut text);
        text.push(b'}');
        serde_json::from_slice(&text).expect("what was written here can be read here")
    }
}

/// The members of an object, without what is around them.
fn text(members: &Members) -> Vec<u8> {
    let mut text = to_json(members);
    text.pop();
    text.remove(0);
    text
}

fn hash(text: &[u8]) -> [u8; 32] {
    digest(&SHA256, text).as_ref().try_into().expect("a hash has 32 bytes")
}

/// The members of a section, in the order of their names. Most of them are packed; those that something is among, or is
/// asked about, are not.
#[derive(Default)]
pub(crate) struct Sorted {
    /// By their first names. None begins before another has ended.
    runs: BTreeMap<Box<str>, Arc<Run>>,
    /// None of these is among those of a run.
    loose: Members,
}

impl Sorted {
    /// Adds members. What somebody has already, they have in the same way.
    pub(crate) fn put(&mut self, run: &Arc<Run>) {
        let mut is_alone = true;
        while let Some(other) = self.run_within(&run.first, &run.last) {
            self.open(&other);
            is_alone = false;
        }
        let within = (Bound::Included(&*run.first), Bound::Included(&*run.last));
        if is_alone && self.loose.range::<str, _>(within).next().is_none() {
            self.runs.insert(run.first.clone(), run.clone());
        } else {
            self.loose.extend(run.members());
        }
    }

    /// The first name of a run that has members between these.
    fn run_within(&self, first: &str, last: &str) -> Option<Box<str>> {
        let upto = (Bound::Unbounded, Bound::Included(last));
        let (name, run) = self.runs.range::<str, _>(upto).next_back()?;
        (*run.last >= *first).then(|| name.clone())
    }

    fn open(&mut self, first: &str) {
        if let Some(run) = self.runs.remove(first) {
            self.loose.extend(run.members());
        }
    }

    /// The member of a name.
    pub(crate) fn get(&mut self, name: &str) -> Option<&mut Member> {
        if let Some(run) = self.run_within(name, name) {
            self.open(&run);
        }
        self.loose.get_mut(name)
    }

    /// Adds a member, unless there is one of that name.
    pub(crate) fn add(&mut self, name: String, member: Member) {
        if self.get(&name).is_none() {
            self.loose.insert(name, member);
        }
    }

    /// All of them packed, those that are not yet with the help of what was packed before. Also answers which of them were
    /// loose.
    pub(crate) fn pack(self, section: Section, before: &[Arc<Run>]) -> (Vec<Arc<Run>>, Vec<Arc<Run>>) {
        let (mut all, mut packed) = (Vec::new(), Vec::new());
        let mut loose = self.loose.into_iter().peekable();
        let mut pack = |all: &mut Vec<Arc<Run>>, next: Option<&str>| {
            let is_before = |(name, _): &(String, Member)| next.is_none_or(|next| **name < *next);
            let members: Members = std::iter::from_fn(|| loose.next_if(is_before)).collect();
            if members.is_empty() {
                return;
            }
            let text = text(&members);
            let hash = hash(&text);
            let known = before.iter().find(|run| run.section == section && run.hash == hash).cloned();
            let run = known.or_else(|| Run::of(section, &members, &text, hash));
            all.extend(run.clone());
            packed.extend(run);
        };
        for run in self.runs.into_values() {
            pack(&mut all, Some(&run.first));
            all.push(run);
        }
        pack(&mut all, None);
        (all, packed)
    }

    /// All members, none of them packed.
    #[cfg(test)]
    pub(crate) fn into_members(mut self) -> Members {
        while let Some((first, _)) = self.runs.first_key_value() {
            self.open(&first.clone());
        }
        self.loose
    }
}

#[cfg(test)]
impl From<Members> for Sorted {
    fn from(loose: Members) -> Self {
        Self { runs: BTreeMap::new(), loose }
    }
}
