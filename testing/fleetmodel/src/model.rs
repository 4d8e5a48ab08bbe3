use stateright::{Model, Property};

use crate::{
    Invariant, Race, Resource, Scenario, State,
    state::{Definition, Effect, Flying, Process},
    steps::Decisions,
};

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A process of a server starts, with a binary of a version.
    Start(usize, u8),
    /// A process is killed.
    Crash(usize),
    /// A process is asked to stop: it takes no new writes, waits for those on their way and gives back its lease.
    Stop(usize),
    /// A process decides to do the n-th of what it has to do.
    Decide(usize, usize),
    /// A process decides to write an object of a resource.
    Write(usize, usize),
    /// The n-th transaction on its way lands, or is refused.
    Land(usize),
    /// The stored version of the definition changes.
    Flip,
    /// The lease of a server goes away.
    LoseLease(usize),
    /// Somebody takes away what a server says about a resource.
    Strip(usize, usize),
    /// A migrator looks at the servers.
    Look(usize),
    /// A migrator does what is to be done next, as it has seen the servers last.
    Migrate(usize),
    /// The migrator's process is killed; another one takes over.
    TakeOver,
    /// A process sees everything that has happened.
    See(usize),
    /// A collector of a race looks for the lease of a server.
    LookForLease(usize, usize),
}

/// The model of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// What is explored.
    pub scenario: Scenario,
}

impl Fleet {
    pub(crate) fn decisions<'a>(&'a self, state: &'a State, process: usize) -> Decisions<'a> {
        Decisions { scenario: &self.scenario, state: state.seen_by(process), process }
    }

    pub(crate) fn race(&self, race: Race) -> bool {
        self.scenario.race == Some(race)
    }

    /// What a process has to do, whatever users do.
    fn duties(&self, state: &State, process: usize) -> Vec<Flying> {
        let decisions = self.decisions(state, process);
        let is_up = state.processes[process].up;
        if !is_up || state.processes[process].stopping {
            return Vec::new();
        }
        let mut all: Vec<Flying> = decisions.lease().into_iter().collect();
        all.extend(decisions.registrations());
        all.extend(decisions.collections());
        // What is on its way need not be sent again.
        all.retain(|flying| !state.flying.contains(flying));
        all
    }

    pub(crate) fn running(&self, state: &State) -> impl Iterator<Item = usize> {
        let up: Vec<usize> =
            (0..state.processes.len()).filter(|process| state.processes[*process].up).collect();
        up.into_iter()
    }

    /// When nobody has anything left to do, every process that runs must have said what it has to say, and nothing of
    /// others that are gone may be left, as long as there is somebody to see to it.
    fn is_settled(&self, state: &State) -> bool {
        // In this scenario the first of two resources cannot be registered.
        let stuck = self.stuck();
        let duty = |process| self.duties(state, process).iter().any(|flying| !self.is_futile(flying));
        let is_late = |process: usize| state.processes[process].seen.is_some();
        if !state.flying.is_empty() || self.running(state).any(|process| is_late(process) || duty(process)) {
            return true;
        }
        let yields = |process: usize| {
            state.leases[state.processes[process].server]
                .as_ref()
                .is_some_and(|lease| lease.process != process && state.processes[process].had)
        };
        let settled = |process: usize| {
            state.processes[process].stopping
                || yields(process)
                || self.decisions(state, process).is_settled(stuck)
        };
        let collects = |process: usize| {
            state.holds_lease(process)
                && !self.decisions(state, process).is_silent()
                && !state.processes[process].stopping
        };
        let clean = |resource: usize| {
            state.versions[resource].as_ref().is_none_or(|stored| {
                let dead = |id: &str| state.leases[crate::state::server(id)].is_none();
                !stored.entries.is_empty() && !stored.entries.iter().any(|entry| dead(&entry.api_server_id))
            })
        };
        self.running(state).all(settled)
            && (!self.running(state).any(collects) || (0..self.scenario.resources.len()).all(clean))
    }

    fn stuck(&self) -> Option<usize> {
        (self.scenario.resources.len() > 1 && self.scenario.budget.writes == 0).then_some(0)
    }

    /// Whether a transaction can never land in this scenario.
    fn is_futile(&self, flying: &Flying) -> bool {
        let touches = |stuck: usize| {
            let is_stuck =
                |effect: &Effect| matches!(effect, Effect::PutVersion { resource, .. } if *resource == stuck);
            flying.effects.iter().all(is_stuck)
        };
        self.stuck().is_some_and(touches)
    }

    fn start(&self, state: &mut State, server: usize, version: u8) {
        state.budget.starts -= 1;
        state.processes.push(Process {
            server,
            version,
            up: true,
            stopping: false,
            had: false,
            published: 0,
            latched: None,
            seen_absent: None,
            remembered: vec![(state.definition.version, state.definition.generation)],
            failed: false,
            seen: None,
        });
    }

    fn stop(&self, state: &mut State, process: usize) {
        let server = state.processes[process].server;
        if !state.processes[process].stopping {
            state.budget.stops -= 1;
            state.processes[process].stopping = true;
            if !self.race(Race::LeaseBeforeDrain) {
                return;
            }
        } else {
            state.processes[process].up = false;
        }
        if state.holds_lease(process) {
            state.revision += 1;
            state.leases[server] = None;
            state.everybody_counts_anew();
        }
    }

    fn flip(state: &mut State) {
        state.budget.flips -= 1;
        state.revision += 1;
        let Definition { version, generation, .. } = state.definition;
        let (version, generation) = (3 - version, generation + 1);
        state.definition = Definition { revision: state.revision, version, generation };
        state.processes.iter_mut().for_each(|process| process.remembered.push((version, generation)));
    }

    fn strip(state: &mut State, resource: usize, server: usize) {
        state.budget.strips -= 1;
        state.revision += 1;
        let (revision, id) = (state.revision, crate::state::id(server));
        if let Some(stored) = &mut state.versions[resource] {
            stored.revision = revision;
            stored.entries.retain(|entry| entry.api_server_id != id);
        }
        state.said_since[resource] = revision;
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        let budget = state.budget;
        let servers = 0..usize::from(self.scenario.servers);
        let is_up =
            |server: usize| state.processes.iter().any(|process| process.up && process.server == server);
        for server in servers.clone().filter(|_| budget.starts > 0) {
            if !is_up(server) || self.scenario.duplicates {
                // The version of the binary does not matter where only a definition says how objects are stored.
                let versions = if self.scenario.resources.iter().all(|kind| *kind == Resource::Custom) {
                    1..=1
                } else {
                    1..=2
                };
                actions.extend(versions.map(|version| Action::Start(server, version)));
            }
        }
        for process in self.running(state) {
            if budget.crashes > 0 {
                actions.push(Action::Crash(process));
            }
            let drained = !state.flying.iter().any(|flying| flying.process == process);
            let stopping = state.processes[process].stopping;
            if (stopping && drained) || (!stopping && budget.stops > 0) {
                actions.push(Action::Stop(process));
            }
        }
        if budget.flips > 0 {
            actions.push(Action::Flip);
        }
        let held = servers.filter(|server| state.leases[*server].is_some());
        for server in held {
            if budget.lease_losses > 0 {
                actions.push(Action::LoseLease(server));
            }
            let has = |resource: &usize| {
                let id = crate::state::id(server);
                state.entries(*resource).iter().any(|entry| entry.api_server_id == id)
            };
            if budget.strips > 0 {
                let stripped = (0..self.scenario.resources.len()).filter(has);
                actions.extend(stripped.map(|resource| Action::Strip(resource, server)));
            }
        }
    }
}

impl Model for Fleet {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(&self.scenario)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // What is broken once stays broken: there is nothing to see further on. Only what was sent too early has to land.
        if state.broken & !Invariant::GateMonotonicity.bit() != 0 {
            return;
        }
        self.faults(state, actions);
        actions.extend((0..state.flying.len()).map(Action::Land));
        let room = state.flying.len() < self.scenario.flying;
        let late = self.running(state).filter(|process| state.processes[*process].seen.is_some());
        actions.extend(late.map(Action::See));
        for process in self.running(state).filter(|_| room) {
            let duties = self.duties(state, process).len();
            actions.extend((0..duties).map(|duty| Action::Decide(process, duty)));
            if state.budget.writes > 0 {
                actions.extend(
                    (0..self.scenario.resources.len()).map(|resource| Action::Write(process, resource)),
                );
            }
            if self.race(Race::LeaseBeforeObject) {
                let gone = (0..state.leases.len()).filter(|server| state.leases[*server].is_none());
                actions.extend(gone.map(|server| Action::LookForLease(process, server)));
            }
        }
        self.migrations(state, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Start(server, version) => self.start(&mut state, server, version),
            Action::Crash(process) => {
                state.budget.crashes -= 1;
                state.processes[process].up = false;
            }
            Action::Stop(process) => self.stop(&mut state, process),
            Action::Decide(process, duty) => {
                let flying = self.duties(before, process).into_iter().nth(duty)?;
                if self.is_futile(&flying) {
                    return None;
                }
                state.flying.push(flying);
            }
            Action::Write(process, resource) => {
                let decisions = self.decisions(before, process);
                let flying = decisions.write(resource)?;
                if !decisions.has_published(&flying) {
                    state.breaks(Invariant::GateMonotonicity);
                }
                state.budget.writes -= 1;
                state.flying.push(flying);
            }
            Action::Land(at) => {
                let flying = state.flying.remove(at);
                if !state.land(&flying, &self.scenario) {
                    state.processes[flying.process].failed = true;
                }
            }
            Action::Flip => Self::flip(&mut state),
            Action::LoseLease(server) => {
                state.budget.lease_losses -= 1;
                state.revision += 1;
                state.leases[server] = None;
                state.everybody_counts_anew();
            }
            Action::Strip(resource, server) => Self::strip(&mut state, resource, server),
            Action::Look(resource) => self.look(&mut state, resource),
            Action::Migrate(resource) => self.migrate(&mut state, resource)?,
            Action::TakeOver => self.take_over(&mut state),
            Action::See(process) => state.processes[process].seen = None,
            Action::LookForLease(process, server) => state.processes[process].seen_absent = Some(server),
        }
        if self.scenario.late_views {
            state.nobody_sees_at_once(before);
        }
        if !self.is_settled(&state) {
            state.breaks(Invariant::Settled);
        }
        self.forget(&mut state);
        state.normalize();
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all: Vec<Property<Self>> = Vec::new();
        // The checker takes functions, not closures: one for each.
        macro_rules! always {
            ($($invariant:ident),*) => {
                $(all.push(Property::always(Invariant::$invariant.name(), |_, state: &State| {
                    !state.is_broken(Invariant::$invariant)
                }));)*
            };
        }
        always!(
            RegisterBeforeWrite,
            AgreementSoundness,
            CommonConsistency,
            EntryWellFormedness,
            MembershipBeforeEntry,
            NoLiveStrip,
            NoLostRegistration,
            FenceOnLeaseLoss,
            DrainBeforeFlip,
            LatestWins,
            GateMonotonicity,
            ShutdownOrder,
            CleanMigration,
            Idempotence,
            Settled
        );
        all.push(Property::sometimes("an object is written", |_, state: &State| {
            state.objects.iter().any(Option::is_some)
        }));
        all
    }
}

impl Fleet {
    /// Drops what nothing can depend on any more.
    fn forget(&self, state: &mut State) {
        let race = self.scenario.race;
        let custom = self.scenario.resources.contains(&Resource::Custom);
        for process in &mut state.processes {
            if race != Some(Race::OutOfOrder) || !custom {
                process.remembered.clear();
            }
            if race != Some(Race::NoRetry) {
                process.failed = false;
            }
            if !matches!(race, Some(Race::NoFence | Race::LeaseBeforeDrain | Race::LatchedGate)) {
                process.latched = None;
            }
            if !custom {
                process.published = 0;
            }
        }
    }
}
