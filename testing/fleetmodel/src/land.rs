//! What happens when a transaction lands, and what must be true then.

use std::collections::BTreeMap;

use concord_storageversion::{Entry, Status, agreement, common_encoding_version, derive};

use crate::{
    Race, Scenario,
    state::{Effect, Flying, State, StoredLease, StoredVersion, id, version_name},
};

/// What must always hold; the numbers are those of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// 1: an entry is there before the first write.
    RegisterBeforeWrite = 1,
    /// 2: where versions are agreed on, nothing else is written.
    AgreementSoundness = 2,
    /// 3: what is said to be common is, and the condition says so.
    CommonConsistency = 3,
    /// 4: no ID is in an object twice.
    EntryWellFormedness = 4,
    /// 5: entries are written by who holds the lease.
    MembershipBeforeEntry = 5,
    /// 6: nobody strips a live server.
    NoLiveStrip = 6,
    /// 7: no change discards an entry that it did not know of.
    NoLostRegistration = 7,
    /// 8 and 9: who has lost the lease writes nothing.
    FenceOnLeaseLoss = 9,
    /// 10: after another version was published, the old one is not written.
    DrainBeforeFlip = 10,
    /// 11: what is published is never older than what was published before.
    LatestWins = 11,
    /// 12: nothing is even sent before the entry it needs was seen in the log.
    GateMonotonicity = 12,
    /// 13: who has given back the lease writes nothing.
    ShutdownOrder = 13,
    /// 15 and 16: a migration that succeeded left nothing behind.
    CleanMigration = 15,
    /// 19: what is true already is not written again.
    Idempotence = 19,
    /// The liveness of the specification, as far as states tell: when nobody has anything left to do, all is well.
    Settled = 21,
}

impl Invariant {
    /// Every one.
    pub const ALL: [Self; 15] = [
        Self::RegisterBeforeWrite,
        Self::AgreementSoundness,
        Self::CommonConsistency,
        Self::EntryWellFormedness,
        Self::MembershipBeforeEntry,
        Self::NoLiveStrip,
        Self::NoLostRegistration,
        Self::FenceOnLeaseLoss,
        Self::DrainBeforeFlip,
        Self::LatestWins,
        Self::GateMonotonicity,
        Self::ShutdownOrder,
        Self::CleanMigration,
        Self::Idempotence,
        Self::Settled,
    ];

    /// What it is called in reports of the checker.
    pub fn name(self) -> &'static str {
        match self {
            Self::RegisterBeforeWrite => "register before write",
            Self::AgreementSoundness => "agreement soundness",
            Self::CommonConsistency => "common consistency",
            Self::EntryWellFormedness => "entry well-formedness",
            Self::MembershipBeforeEntry => "membership before entry",
            Self::NoLiveStrip => "no live strip",
            Self::NoLostRegistration => "no lost registration",
            Self::FenceOnLeaseLoss => "fence on lease loss",
            Self::DrainBeforeFlip => "drain before flip",
            Self::LatestWins => "latest wins",
            Self::GateMonotonicity => "gate monotonicity",
            Self::ShutdownOrder => "shutdown order",
            Self::CleanMigration => "clean migration",
            Self::Idempotence => "idempotence",
            Self::Settled => "settled",
        }
    }

    pub(crate) fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

impl State {
    pub(crate) fn breaks(&mut self, invariant: Invariant) {
        self.broken |= invariant.bit();
    }

    /// Whether an invariant was broken on the way here.
    pub fn is_broken(&self, invariant: Invariant) -> bool {
        self.broken & invariant.bit() != 0
    }

    /// Commits a transaction if what it needs holds. False if it does not.
    pub(crate) fn land(&mut self, flying: &Flying, scenario: &Scenario) -> bool {
        if !flying.holds.iter().all(|holds| self.does_hold(holds)) {
            return false;
        }
        self.revision += 1;
        for effect in &flying.effects {
            match effect {
                Effect::PutLease => self.put_lease(flying.process),
                Effect::DeleteLease => {
                    let server = self.processes[flying.process].server;
                    self.leases[server] = None;
                    self.everybody_counts_anew();
                }
                Effect::PutVersion { resource, entries, seen, generation } => {
                    self.put_version(flying.process, *resource, entries.as_deref(), seen, *generation);
                }
                Effect::PutObject { resource, version } => {
                    self.put_object(flying.process, *resource, *version, scenario);
                }
            }
        }
        true
    }

    fn put_lease(&mut self, process: usize) {
        let server = self.processes[process].server;
        self.leases[server] = Some(StoredLease { created: self.revision, revision: self.revision, process });
        self.processes[process].had = true;
        self.everybody_counts_anew();
    }

    pub(crate) fn everybody_counts_anew(&mut self) {
        let now = self.revision;
        self.said_since.iter_mut().for_each(|since| *since = now);
    }

    fn put_version(
        &mut self,
        process: usize,
        resource: usize,
        entries: Option<&[Entry]>,
        seen: &[Entry],
        generation: u8,
    ) {
        let own = id(self.processes[process].server);
        let before = self.entries(resource).to_vec();
        let after = entries.unwrap_or_default();
        let of =
            |entries: &[Entry], id: &str| entries.iter().find(|entry| entry.api_server_id == id).cloned();
        let (was, is) = (of(&before, &own), of(after, &own));
        if let Some(is) = is.as_ref().filter(|is| was.as_ref() != Some(is)) {
            if !self.holds_lease(process) {
                self.breaks(Invariant::MembershipBeforeEntry);
            }
            if was.as_ref().is_some_and(|was| was.encoding_version == is.encoding_version) {
                self.breaks(Invariant::Idempotence);
            }
            if generation != 0 && generation < self.processes[process].published {
                self.breaks(Invariant::LatestWins);
            }
            self.processes[process].published = generation.max(self.processes[process].published);
            self.processes[process].latched = is.encoding_version.trim_start_matches('v').parse().ok();
        }
        for lost in before.iter().filter(|entry| of(after, &entry.api_server_id).is_none()) {
            let server = crate::state::server(&lost.api_server_id);
            if self.leases[server].is_some() && lost.api_server_id != own {
                self.breaks(Invariant::NoLiveStrip);
            }
            if !seen.contains(lost) {
                self.breaks(Invariant::NoLostRegistration);
            }
        }
        let mut ids: Vec<&str> = after.iter().map(|entry| entry.api_server_id.as_str()).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            self.breaks(Invariant::EntryWellFormedness);
        }
        if !is_consistent(&before, after) {
            self.breaks(Invariant::CommonConsistency);
        }
        if said(&before) != said(after) {
            self.said_since[resource] = self.revision;
        }
        let revision = self.revision;
        self.versions[resource] =
            entries.map(|entries| StoredVersion { revision, entries: entries.to_vec() });
    }

    fn put_object(&mut self, process: usize, resource: usize, version: u8, scenario: &Scenario) {
        let written = version_name(version);
        let writer = self.processes[process].clone();
        let silent = scenario.silent_server && writer.server + 1 == usize::from(scenario.servers);
        let entries = self.entries(resource).to_vec();
        let own = id(writer.server);
        let own = entries.iter().find(|entry| entry.api_server_id == own);
        match own {
            Some(own) if own.encoding_version == written => {}
            Some(_) => self.breaks(Invariant::DrainBeforeFlip),
            None if silent => {}
            None => self.breaks(Invariant::RegisterBeforeWrite),
        }
        if !self.holds_lease(process) {
            self.breaks(Invariant::FenceOnLeaseLoss);
            if writer.stopping {
                self.breaks(Invariant::ShutdownOrder);
            }
        }
        if self.agreed(resource, scenario).is_some_and(|agreed| agreed != written) {
            self.breaks(Invariant::AgreementSoundness);
        }
        self.objects[resource] = Some(version);
    }

    /// The version that a migrator believes all to write.
    pub(crate) fn agreed(&self, resource: usize, scenario: &Scenario) -> Option<String> {
        let entries = self.entries(resource);
        if scenario.race == Some(Race::EntriesOnly) {
            return common_encoding_version(entries).map(ToOwned::to_owned);
        }
        let live: BTreeMap<String, u64> = self
            .leases
            .iter()
            .enumerate()
            .filter_map(|(server, lease)| Some((id(server), lease.as_ref()?.created)))
            .collect();
        agreement("", Some(entries), &live).ok().map(|agreed| agreed.version)
    }
}

/// Whether the status that follows from the entries says about them what is true, whatever it said before.
fn is_consistent(before: &[Entry], after: &[Entry]) -> bool {
    let earlier = derive(&Status::default(), before.to_vec(), 0, "then");
    let status = derive(&earlier, after.to_vec(), 0, "now");
    let first = after.first().map(|entry| entry.encoding_version.as_str());
    let common = first.filter(|first| after.iter().all(|entry| entry.encoding_version == *first));
    let condition = if common.is_some() { "True" } else { "False" };
    status.common_encoding_version.as_deref() == common
        && status.conditions.len() == 1
        && status.conditions[0].status == condition
}

/// Who says what.
fn said(entries: &[Entry]) -> Vec<(&str, &str)> {
    let mut said: Vec<(&str, &str)> =
        entries.iter().map(|entry| (entry.api_server_id.as_str(), entry.encoding_version.as_str())).collect();
    said.sort_unstable();
    said
}
