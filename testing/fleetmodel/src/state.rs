//! What is in the log, what is on its way to it, and who is there.

use std::borrow::Cow;

use concord_storageversion::{Entry, Found, Holds, Identity, Lease};
use concord_store::Revision;

use crate::{Budget, Scenario, migration::Migration};

/// A whole fleet and its log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The newest revision.
    pub(crate) revision: Revision,
    /// By server.
    pub(crate) leases: Vec<Option<StoredLease>>,
    /// By resource.
    pub(crate) versions: Vec<Option<StoredVersion>>,
    /// The definition of the custom resource.
    pub(crate) definition: Definition,
    /// The version of the one object of each resource.
    pub(crate) objects: Vec<Option<u8>>,
    /// Since when every server has been saying what it says, by resource.
    pub(crate) said_since: Vec<Revision>,
    /// In the order of their start.
    pub(crate) processes: Vec<Process>,
    /// Transactions that were decided on and have not landed.
    pub(crate) flying: Vec<Flying>,
    pub(crate) migration: Option<Migration>,
    pub(crate) budget: Budget,
    /// The bits of the invariants that were broken.
    pub(crate) broken: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoredLease {
    pub(crate) created: Revision,
    pub(crate) revision: Revision,
    pub(crate) process: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoredVersion {
    pub(crate) revision: Revision,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Definition {
    pub(crate) revision: Revision,
    pub(crate) version: u8,
    pub(crate) generation: u8,
}

/// The log, as somebody has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    leases: Vec<Option<StoredLease>>,
    versions: Vec<Option<StoredVersion>>,
    definition: Definition,
}

/// A process of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) server: usize,
    /// The version of its binary.
    pub(crate) version: u8,
    pub(crate) up: bool,
    /// It takes no new writes.
    pub(crate) stopping: bool,
    /// It held the lease once.
    pub(crate) had: bool,
    /// The newest generation of the definition that it published.
    pub(crate) published: u8,
    /// What only races need: gates that stay open, what was seen or remembered.
    pub(crate) latched: Option<u8>,
    pub(crate) seen_absent: Option<usize>,
    pub(crate) remembered: Vec<(u8, u8)>,
    pub(crate) failed: bool,
    /// What it has seen of the log, if that is not all of it.
    pub(crate) seen: Option<View>,
}

/// What a transaction does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Effect {
    PutLease,
    DeleteLease,
    /// The entries a StorageVersion is to have, and those it had when that was decided.
    PutVersion {
        resource: usize,
        entries: Option<Vec<Entry>>,
        seen: Vec<Entry>,
        generation: u8,
    },
    PutObject {
        resource: usize,
        version: u8,
    },
}

/// A transaction on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Flying {
    pub(crate) process: usize,
    pub(crate) holds: Vec<Holds>,
    pub(crate) effects: Vec<Effect>,
}

/// The names of servers.
pub(crate) fn id(server: usize) -> String {
    char::from(b'a' + u8::try_from(server).unwrap_or(25).min(25)).to_string()
}

pub(crate) fn server(id: &str) -> usize {
    usize::from(id.bytes().next().unwrap_or(b'a').saturating_sub(b'a'))
}

/// The names of versions.
pub(crate) fn version_name(version: u8) -> String {
    format!("v{version}")
}

pub(crate) fn resource_name(resource: usize) -> String {
    format!("r{resource}")
}

/// The resource of a StorageVersion.
pub(crate) fn resource(name: &str) -> usize {
    name.rsplit('r').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

impl State {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let (servers, resources) = (usize::from(scenario.servers), scenario.resources.len());
        Self {
            revision: 2,
            leases: vec![None; servers],
            versions: vec![None; resources],
            definition: Definition { revision: 2, version: 1, generation: 1 },
            objects: vec![None; resources],
            said_since: vec![1; resources],
            processes: Vec::new(),
            flying: Vec::new(),
            migration: None,
            budget: scenario.budget,
            broken: 0,
        }
    }

    fn view(&self) -> View {
        let (leases, versions) = (self.leases.clone(), self.versions.clone());
        View { leases, versions, definition: self.definition.clone() }
    }

    /// The state as a process sees it.
    pub(crate) fn seen_by(&self, process: usize) -> Cow<'_, Self> {
        let Some(View { leases, versions, definition }) = self.processes[process].seen.clone() else {
            return Cow::Borrowed(self);
        };
        Cow::Owned(Self { leases, versions, definition, ..self.clone() })
    }

    /// Whoever runs sees what it saw before, until it sees more.
    pub(crate) fn nobody_sees_at_once(&mut self, before: &Self) {
        let (was, is) = (before.view(), self.view());
        for (at, process) in self.processes.iter_mut().enumerate() {
            let knew_all = before.processes.get(at).is_some_and(|known| known.up && known.seen.is_none());
            if knew_all && process.seen.is_none() {
                process.seen = Some(was.clone());
            }
            if !process.up || process.seen.as_ref() == Some(&is) {
                process.seen = None;
            }
        }
    }

    pub(crate) fn found(&self, resource: usize) -> Option<Found<'_>> {
        let stored = self.versions[resource].as_ref()?;
        Some(Found { revision: stored.revision, entries: &stored.entries })
    }

    pub(crate) fn entries(&self, resource: usize) -> &[Entry] {
        self.versions[resource].as_ref().map(|stored| stored.entries.as_slice()).unwrap_or_default()
    }

    pub(crate) fn lease(&self, server: usize) -> Option<Lease> {
        let stored = self.leases[server].as_ref()?;
        Some(Lease { created: stored.created, revision: stored.revision, holder: stored.process.to_string() })
    }

    pub(crate) fn identity(&self, process: usize, hostname: &str) -> Identity {
        Identity {
            id: id(self.processes[process].server),
            holder: process.to_string(),
            component: String::new(),
            hostname: hostname.to_owned(),
        }
    }

    /// Whether the process holds the lease of its server, in truth.
    pub(crate) fn holds_lease(&self, process: usize) -> bool {
        let lease = &self.leases[self.processes[process].server];
        lease.as_ref().is_some_and(|lease| lease.process == process)
    }

    pub(crate) fn does_hold(&self, holds: &Holds) -> bool {
        let lease = |id: &str| self.leases[server(id)].as_ref();
        let version = |name: &str| self.versions[resource(name)].as_ref();
        match holds {
            Holds::LeaseSince(id, since) => lease(id).is_some_and(|lease| lease.created == *since),
            Holds::LeaseAbsent(id) => lease(id).is_none(),
            Holds::LeaseAt(id, at) => lease(id).is_some_and(|lease| lease.revision == *at),
            Holds::StorageVersionAt(name, at) => version(name).is_some_and(|stored| stored.revision == *at),
            Holds::StorageVersionAbsent(name) => version(name).is_none(),
            Holds::DefinitionAt(_, at) => self.definition.revision == *at,
        }
    }

    /// Gives revisions the smallest numbers that keep their order: only that matters, and states that differ in nothing
    /// else are one.
    pub(crate) fn normalize(&mut self) {
        let mut all = Vec::new();
        self.each_revision(|revision| all.push(*revision));
        all.sort_unstable();
        all.dedup();
        self.each_revision(|revision| {
            let rank = all.binary_search(revision).unwrap_or_default();
            *revision = rank as Revision + 2;
        });
        self.flying.sort();
    }

    fn each_revision(&mut self, mut visit: impl FnMut(&mut Revision)) {
        visit(&mut self.revision);
        each_of_log(&mut self.leases, &mut self.versions, &mut self.definition, &mut visit);
        for seen in self.processes.iter_mut().filter_map(|process| process.seen.as_mut()) {
            each_of_log(&mut seen.leases, &mut seen.versions, &mut seen.definition, &mut visit);
        }
        self.said_since.iter_mut().for_each(&mut visit);
        if let Some(migration) = &mut self.migration {
            migration.each_revision(&mut visit);
        }
        for holds in self.flying.iter_mut().flat_map(|flying| &mut flying.holds) {
            match holds {
                Holds::LeaseSince(_, at)
                | Holds::LeaseAt(_, at)
                | Holds::StorageVersionAt(_, at)
                | Holds::DefinitionAt(_, at) => visit(at),
                Holds::LeaseAbsent(_) | Holds::StorageVersionAbsent(_) => {}
            }
        }
    }
}

fn each_of_log(
    leases: &mut [Option<StoredLease>],
    versions: &mut [Option<StoredVersion>],
    definition: &mut Definition,
    visit: &mut impl FnMut(&mut Revision),
) {
    for lease in leases.iter_mut().flatten() {
        visit(&mut lease.created);
        visit(&mut lease.revision);
    }
    versions.iter_mut().flatten().for_each(|stored| visit(&mut stored.revision));
    visit(&mut definition.revision);
}
