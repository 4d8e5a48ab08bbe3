//! A migrator, which decides by the rules of `concord-migrator`.
//!
//! It looks at the servers at one moment and acts at a later one, as the real one does, whose replica of the log may be
//! behind. There is one object of each resource, so that a walk is one write, through a server and its gate.

use std::collections::BTreeMap;

use concord_migrator::{
    Census, Row,
    rules::{Agreed, Next, Orders, Run, Stage, Writers, next},
};
use concord_store::Revision;

use crate::{Action, Fleet, Invariant, Race, State, state::version_name};

/// A migration of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Migration {
    seen: Option<Seen>,
    run: Option<Pass>,
}

/// The servers, as they were when they were looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    agreed: Option<u8>,
    since: Revision,
    /// Whether that was after the objects were counted. How long before does not matter.
    is_newer: bool,
}

/// What is kept of a [`Run`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pass {
    version: u8,
    checkpoint: Revision,
    stage: Reached,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Reached {
    Walking,
    Walked { deferred: bool },
    Counted { deferred: bool, found: Option<u8>, revision: Revision },
}

impl Migration {
    pub(crate) fn each_revision(&mut self, mut visit: impl FnMut(&mut Revision)) {
        if let Some(seen) = &mut self.seen {
            visit(&mut seen.since);
        }
        let Some(run) = &mut self.run else { return };
        visit(&mut run.checkpoint);
        if let Reached::Counted { revision, .. } = &mut run.stage {
            visit(revision);
        }
    }
}

fn row(version: u8) -> Row {
    Row { version: version_name(version), encryption: String::new() }
}

impl Seen {
    /// As the migrator is told about it.
    fn writers(&self, race: Option<Race>, counted: Option<Revision>) -> Writers {
        let Some(version) = self.agreed else { return Writers::Disagree("they do not".to_owned()) };
        Writers::Agree(Agreed {
            target: row(version),
            fingerprint: 0,
            since: if race == Some(Race::ValuesCompared) { 0 } else { self.since },
            revision: match counted {
                Some(counted) if self.is_newer || race == Some(Race::StaleServers) => counted,
                Some(counted) => counted - 1,
                None => 0,
            },
            is_known: true,
        })
    }
}

impl Pass {
    fn run(&self) -> Run {
        let stage = match self.stage {
            Reached::Walking => Stage::Walking,
            Reached::Walked { deferred } => Stage::Walked { failed: 0, deferred: deferred.into() },
            Reached::Counted { deferred, found, revision } => {
                let rows: BTreeMap<Row, u64> = found.map(|version| (row(version), 1)).into_iter().collect();
                Stage::Counted { failed: 0, deferred: deferred.into(), census: Census { rows, revision } }
            }
        };
        Run { target: row(self.version), fingerprint: 0, checkpoint: self.checkpoint, stage }
    }

    fn counted(&self) -> Option<Revision> {
        match self.stage {
            Reached::Counted { revision, .. } => Some(revision),
            _ => None,
        }
    }
}

impl Fleet {
    pub(crate) fn migrations(&self, state: &State, actions: &mut Vec<Action>) {
        if state.migration.is_some() || state.budget.migrations > 0 {
            actions.push(Action::Look(0));
        }
        if state.migration.as_ref().is_some_and(|migration| migration.seen.is_some()) {
            actions.push(Action::Migrate(0));
            if state.budget.crashes > 0 {
                actions.push(Action::TakeOver);
            }
        }
    }

    pub(crate) fn look(&self, state: &mut State, resource: usize) {
        if state.migration.is_none() {
            state.budget.migrations -= 1;
        }
        let agreed = state.agreed(resource, &self.scenario);
        let seen = Seen {
            agreed: agreed.and_then(|agreed| agreed.trim_start_matches('v').parse().ok()),
            since: state.said_since[resource],
            is_newer: true,
        };
        state.migration.get_or_insert_default().seen = Some(seen);
    }

    /// Nothing that a process knows outlives it.
    pub(crate) fn take_over(&self, state: &mut State) {
        state.budget.crashes -= 1;
        state.migration = Some(Migration::default());
    }

    /// `None` if there is nothing to do but to look again.
    pub(crate) fn migrate(&self, state: &mut State, resource: usize) -> Option<()> {
        let Migration { seen, run } = state.migration.clone()?;
        let seen = seen?;
        let counted = run.as_ref().and_then(Pass::counted);
        let writers = seen.writers(self.scenario.race, counted);
        let decided = next(Orders::default(), &writers, run.as_ref().map(Pass::run).as_ref());
        let (version, checkpoint) = match &run {
            Some(run) => (run.version, run.checkpoint),
            None => (seen.agreed?, state.revision),
        };
        let stage = match decided {
            Next::Await(_) | Next::Pause => return None,
            Next::Begin => {
                let pass =
                    Pass { version: seen.agreed?, checkpoint: state.revision, stage: Reached::Walking };
                state.migration = Some(Migration { seen: Some(seen), run: Some(pass) });
                return Some(());
            }
            Next::Walk => Reached::Walked { deferred: !self.rewrite(state, resource, version) },
            Next::Count => {
                let is_looked_at = !self.race(Race::ValuesCompared);
                let found = state.objects[resource].filter(|_| is_looked_at);
                let deferred = matches!(run?.stage, Reached::Walked { deferred: true }) && is_looked_at;
                Reached::Counted { deferred, found, revision: state.revision }
            }
            Next::Again => Reached::Walking,
            Next::Succeed(census) => {
                // What is stored otherwise must have been stored by somebody who said so after the objects were counted.
                let is_left = state.objects[resource].is_some_and(|stored| stored != version);
                if is_left && state.said_since[resource] <= census.revision {
                    state.breaks(Invariant::CleanMigration);
                }
                state.migration = None;
                return Some(());
            }
            Next::Fail(_) | Next::Report(_) | Next::Cancel => {
                state.migration = None;
                return Some(());
            }
        };
        let is_newer = seen.is_newer && !matches!(stage, Reached::Counted { .. });
        let seen = Some(Seen { is_newer, ..seen });
        state.migration = Some(Migration { seen, run: Some(Pass { version, checkpoint, stage }) });
        Some(())
    }

    /// Has a server write the object again, as it writes everything. Whether it has the right version then.
    fn rewrite(&self, state: &mut State, resource: usize, version: u8) -> bool {
        let is_right = |state: &State| state.objects[resource].is_none_or(|stored| stored == version);
        if is_right(state) {
            return true;
        }
        let through = self.running(state).find_map(|process| self.decisions(state, process).write(resource));
        if let Some(flying) = through {
            state.land(&flying, &self.scenario);
        }
        is_right(state)
    }
}
