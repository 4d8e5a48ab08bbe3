//! Reading `facts/features.txt`: see there for what it looks like.

use crate::Release;

const TABLE: &str = include_str!("../../facts/features.txt");

/// One gate: a line of the table.
pub(super) struct Gate {
    pub(super) name: &'static str,
    line: &'static str,
}

/// How far a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Alpha,
    Beta,
    Stable,
    Deprecated,
}

/// What a gate is in one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) stage: Stage,
    /// Whether upstream has it on by default.
    pub(super) on: bool,
    /// Whether it cannot be set.
    pub(super) locked: bool,
}

/// All gates, by name.
pub(super) fn gates() -> impl Iterator<Item = Gate> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').next().map(|name| Gate { name, line }))
}

impl Gate {
    /// What it is in a release; `None` if the release does not have it.
    pub(super) fn in_release(&self, release: Release) -> Option<State> {
        self.states().filter(|(since, _)| *since <= release).last().map(|(_, state)| state)
    }

    /// Whether this server has it on by default when it is of a release.
    pub(super) fn default_in(&self, release: Release) -> bool {
        let here = || self.words("here").any(|value| value == "on");
        self.in_release(release).is_some_and(|state| state.on || (!state.locked && here()))
    }

    /// Whether something in this server depends on it.
    pub(super) fn is_used(&self) -> bool {
        self.words("here").any(|value| value == "used")
    }

    /// What it has been, the oldest first.
    pub(super) fn states(&self) -> impl Iterator<Item = (Release, State)> {
        let words = self.line.split(' ').filter_map(|word| word.split_once('='));
        words.filter_map(|(since, state)| Some((since.parse().ok()?, State::read(state)?)))
    }

    /// The gates that it needs.
    pub(super) fn needs(&self) -> impl Iterator<Item = &'static str> {
        self.words("needs").flat_map(|names| names.split(','))
    }

    fn words(&self, of: &'static str) -> impl Iterator<Item = &'static str> + use<> {
        let words = self.line.split(' ').filter_map(|word| word.split_once('='));
        words.filter(move |(name, _)| *name == of).map(|(_, value)| value)
    }

    /// What of its line cannot be read.
    #[cfg(test)]
    pub(super) fn unread(&self) -> Vec<&'static str> {
        let read = |word: &str| match word.split_once('=') {
            Some(("needs" | "here", value)) => !value.is_empty(),
            Some((since, state)) => since.parse::<Release>().is_ok() && State::read(state).is_some(),
            None => word == self.name,
        };
        self.line.split(' ').filter(|word| !read(word)).collect()
    }
}

impl State {
    /// Reads `beta/on`.
    fn read(text: &str) -> Option<Self> {
        let (stage, default) = text.split_once('/')?;
        let stage = match stage {
            "alpha" => Stage::Alpha,
            "beta" => Stage::Beta,
            "ga" => Stage::Stable,
            "deprecated" => Stage::Deprecated,
            _ => return None,
        };
        let (on, locked) = match default {
            "on" => (true, false),
            "off" => (false, false),
            "locked-on" => (true, true),
            "locked-off" => (false, true),
            _ => return None,
        };
        Some(Self { stage, on, locked })
    }
}
