//! What processes decide to do. Everything that the server decides is asked of `concord-storageversion`.

use std::borrow::Cow;

use concord_meta::names::label_value;
use concord_storageversion::{
    Entry, Fence, Holds, Keys, LeaseStep, Membership, Owner, Phase, Record, Step, abandoned, collection,
    gate, hostname_label, lease_step, phase, registration, withdrawal,
};

use crate::{
    Race, Resource, Scenario,
    state::{Effect, Flying, State, id, resource_name, version_name},
};

/// Looks at a state as one process does.
pub(crate) struct Decisions<'a> {
    pub(crate) scenario: &'a Scenario,
    /// As the process sees it.
    pub(crate) state: Cow<'a, State>,
    pub(crate) process: usize,
}

impl Decisions<'_> {
    fn race(&self, race: Race) -> bool {
        self.scenario.race == Some(race)
    }

    fn server(&self) -> usize {
        self.state.processes[self.process].server
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.scenario.silent_server && self.server() + 1 == usize::from(self.scenario.servers)
    }

    /// Whether somebody is about to do something about the leases.
    pub(crate) fn lease(&self) -> Option<Flying> {
        let process = &self.state.processes[self.process];
        let hostname = if self.server() == 0 { self.scenario.hostname.as_str() } else { "host" };
        let me = self.state.identity(self.process, hostname);
        let found = self.state.lease(self.server());
        if self.race(Race::SharedIdentity) && found.is_some() {
            return None;
        }
        match lease_step(&me, found.as_ref(), process.had, false) {
            LeaseStep::Create => {
                let label =
                    if self.race(Race::RawHostname) { hostname.to_owned() } else { hostname_label(hostname) };
                label_value(&label).is_empty().then(|| self.acquisition())
            }
            LeaseStep::Supersede { revision } => {
                Some(self.flying(vec![Holds::LeaseAt(me.id, revision)], vec![Effect::DeleteLease]))
            }
            LeaseStep::Hold { .. } | LeaseStep::Yield { .. } => None,
        }
    }

    /// The lease, and with it the entry of the first resource, as the server does it with the resources it needs first.
    fn acquisition(&self) -> Flying {
        let fence = Fence::Acquiring { id: id(self.server()) };
        let mut flying = self.flying(vec![fence.holds()], vec![Effect::PutLease]);
        let essential = self.scenario.resources.first() == Some(&Resource::BuiltIn);
        if essential && self.scenario.race.is_none() && !self.is_silent() {
            let step =
                self.record(0).and_then(|record| registration(&fence, self.state.found(0).as_ref(), &record));
            if let Some(step) = step {
                flying.holds.extend(step.holds.iter().skip(1).cloned());
                flying.effects.push(self.put(0, &step, 0));
            }
        }
        flying
    }

    /// By what right the process writes.
    pub(crate) fn fence(&self) -> Option<Fence> {
        let lease = self.state.lease(self.server())?;
        let mine = lease.holder == self.process.to_string() || self.race(Race::SharedIdentity);
        mine.then(|| Fence::Held { id: id(self.server()), since: lease.created })
    }

    fn registering_fence(&self) -> Option<Fence> {
        let lease = self.state.lease(self.server())?;
        match self.race(Race::PredecessorsLease) {
            true => Some(Fence::Held { id: id(self.server()), since: lease.created }),
            false => self.fence(),
        }
    }

    /// What the process stores, and how; `None` if it does not store it.
    fn record(&self, resource: usize) -> Option<Record> {
        let process = &self.state.processes[self.process];
        let definition = &self.state.definition;
        let (version, owner) = match self.scenario.resources[resource] {
            Resource::BuiltIn => (process.version, None),
            Resource::Dropped if process.version == 1 => (1, None),
            Resource::Dropped => return None,
            Resource::Custom => {
                let name = resource_name(resource);
                (definition.version, Some(Owner { name, uid: String::new(), revision: definition.revision }))
            }
        };
        let version = version_name(version);
        Some(Record {
            group: String::new(),
            resource: resource_name(resource),
            decodable: vec![version.clone()],
            served: vec![version.clone()],
            encoding: version,
            keys: Keys::default(),
            owner,
        })
    }

    fn flying(&self, holds: Vec<Holds>, effects: Vec<Effect>) -> Flying {
        Flying { process: self.process, holds, effects }
    }

    fn put(&self, resource: usize, step: &Step, generation: u8) -> Effect {
        let seen = self.state.entries(resource).to_vec();
        Effect::PutVersion { resource, entries: step.entries.clone(), seen, generation }
    }

    fn change(&self, resource: usize, step: &Step) -> Flying {
        // Only what a definition says can be outdated.
        let custom = self.scenario.resources[resource] == Resource::Custom;
        let generation = if custom { self.state.definition.generation } else { 0 };
        self.flying(step.holds.clone(), vec![self.put(resource, step, generation)])
    }

    /// What is to be done about the entries of the process itself.
    pub(crate) fn registrations(&self) -> Vec<Flying> {
        let process = &self.state.processes[self.process];
        let Some(fence) = self.registering_fence().filter(|_| !self.is_silent()) else { return Vec::new() };
        if process.failed && self.race(Race::NoRetry) {
            return Vec::new();
        }
        let mut all = Vec::new();
        for resource in 0..self.scenario.resources.len() {
            all.extend(self.registration(&fence, resource));
            // The first resource cannot be registered in that scenario, and nothing comes after it.
            if self.race(Race::Sequential) {
                return Vec::new();
            }
        }
        all
    }

    fn registration(&self, fence: &Fence, resource: usize) -> Vec<Flying> {
        let found = self.state.found(resource);
        let Some(mut record) = self.record(resource) else {
            let step = found.and_then(|found| withdrawal(fence, &name(resource), &found));
            return step
                .filter(|_| !self.race(Race::NoWithdrawal))
                .map(|step| self.change(resource, &step))
                .into_iter()
                .collect();
        };
        match self.scenario.race {
            Some(Race::CreateThenFill) if found.is_none() => {
                let step = registration(fence, None, &record);
                return step
                    .map(|step| self.change(resource, &Step { entries: Some(Vec::new()), ..step }))
                    .into_iter()
                    .collect();
            }
            Some(Race::OutOfOrder) => return self.publish_remembered(fence, resource, &record),
            Some(Race::UnstableOrder) if phase(fence.id(), found.as_ref(), &record) == Phase::Stable => {
                record.served.push("other".to_owned());
                record.served.reverse();
                record.served.truncate(1);
            }
            _ => {}
        }
        let step = registration(fence, found.as_ref(), &record);
        step.map(|step| self.change(resource, &step)).into_iter().collect()
    }

    /// What was to be published when the definition changed, whatever it is by now.
    fn publish_remembered(&self, fence: &Fence, resource: usize, record: &Record) -> Vec<Flying> {
        let process = &self.state.processes[self.process];
        let publish = |(version, generation): &(u8, u8)| {
            let version = version_name(*version);
            let record = Record {
                decodable: vec![version.clone()],
                served: vec![version.clone()],
                encoding: version,
                owner: None,
                ..record.clone()
            };
            let step = registration(fence, self.state.found(resource).as_ref(), &record)?;
            Some(self.flying(step.holds.clone(), vec![self.put(resource, &step, *generation)]))
        };
        process.remembered.iter().filter_map(publish).collect()
    }

    /// A write of an object, if the gate lets it through.
    pub(crate) fn write(&self, resource: usize) -> Option<Flying> {
        let process = &self.state.processes[self.process];
        let version = match self.scenario.resources[resource] {
            Resource::Custom => self.state.definition.version,
            Resource::BuiltIn => process.version,
            Resource::Dropped if process.version == 1 => 1,
            Resource::Dropped => return None,
        };
        let effect = vec![Effect::PutObject { resource, version }];
        if self.is_silent() {
            return self.fence().map(|fence| self.flying(vec![fence.holds()], effect));
        }
        match self.scenario.race {
            Some(Race::ExemptWrites | Race::InternalWriter) => return Some(self.flying(Vec::new(), effect)),
            Some(Race::NoFence | Race::LeaseBeforeDrain) if process.latched == Some(version) => {
                return Some(self.flying(Vec::new(), effect));
            }
            Some(Race::LatchedGate) if process.latched == Some(version) => {
                return self.fence().map(|fence| self.flying(vec![fence.holds()], effect));
            }
            _ => {}
        }
        if process.stopping {
            return None;
        }
        let name = name(resource);
        let found = self.state.found(resource);
        let open = gate(self.fence().as_ref(), &name, found.as_ref(), &version_name(version)).ok()?;
        let mut holds = open.to_vec();
        if self.scenario.resources[resource] == Resource::Custom {
            holds.push(Holds::DefinitionAt(resource_name(resource), self.state.definition.revision));
        }
        if self.race(Race::DrainCutShort) {
            holds.truncate(1);
        }
        Some(self.flying(holds, effect))
    }

    /// Whether what the process is about to write is what it has published, in the log that everybody sees.
    pub(crate) fn has_published(&self, flying: &Flying) -> bool {
        let own = id(self.server());
        let is_published = |effect: &Effect| match effect {
            Effect::PutObject { resource, version } => {
                let written = version_name(*version);
                let says = |entry: &Entry| entry.api_server_id == own && entry.encoding_version == written;
                self.state.entries(*resource).iter().any(says)
            }
            _ => true,
        };
        self.is_silent() || flying.effects.iter().all(is_published)
    }

    /// What the process does about entries of others.
    pub(crate) fn collections(&self) -> Vec<Flying> {
        let Some(fence) = self.fence().filter(|_| !self.is_silent()) else { return Vec::new() };
        let all = 0..self.scenario.resources.len();
        all.filter_map(|resource| self.collection(&fence, resource)).collect()
    }

    fn collection(&self, fence: &Fence, resource: usize) -> Option<Flying> {
        let process = &self.state.processes[self.process];
        let found = self.state.found(resource)?;
        let name = name(resource);
        let gone = |other: &str| match self.scenario.race {
            Some(Race::ErrorIsAbsent) => other != fence.id(),
            Some(Race::LeaseBeforeObject) => process.seen_absent == Some(crate::state::server(other)),
            _ => self.state.leases[crate::state::server(other)].is_none(),
        };
        let membership = |other: &str| if gone(other) { Membership::Absent } else { Membership::Member };
        let step = collection(fence, &name, &found, membership, usize::MAX);
        let empty = || {
            (!self.race(Race::CreateThenFill)).then(|| abandoned(fence, &name, &found, 0, i64::MAX)).flatten()
        };
        let mut step = step.or_else(empty)?;
        match self.scenario.race {
            Some(Race::LeaseBeforeObject | Race::RevisionAlone | Race::ErrorIsAbsent) => {
                step.holds.truncate(2)
            }
            Some(Race::UnconditionalDelete) if step.entries.is_none() => step.holds.truncate(1),
            _ => {}
        }
        Some(self.change(resource, &step))
    }

    /// Whether everything of this process is as it should be, apart from what cannot be.
    pub(crate) fn is_settled(&self, stuck: Option<usize>) -> bool {
        let resources = (0..self.scenario.resources.len()).filter(|resource| Some(*resource) != stuck);
        let own = id(self.server());
        let good = |resource: usize| match self.record(resource) {
            Some(record) => phase(&own, self.state.found(resource).as_ref(), &record) == Phase::Stable,
            None => !self.state.entries(resource).iter().any(|entry: &Entry| entry.api_server_id == own),
        };
        self.fence().is_some() && (self.is_silent() || resources.into_iter().all(good))
    }
}

/// The name of a StorageVersion.
pub(crate) fn name(resource: usize) -> String {
    concord_storageversion::object_name("", &resource_name(resource))
}
