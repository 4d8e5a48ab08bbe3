//! Feature gates: what a server does only if it is told to, or no longer if it is told not to.

mod read;

use std::collections::BTreeMap;

use read::{Gate, Stage, gates};

use crate::Release;

/// The component whose gates they are. A flag may name it: `kube:EnvFiles=true`.
const COMPONENT: &str = "kube";

/// Which features a server has: those that its release has by default, unless `--feature-gates` says otherwise.
///
/// `facts/features.txt` has all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// Every gate of the table, by name.
    on: BTreeMap<&'static str, bool>,
    min_compatibility: Release,
}

/// Why a `--feature-gates` makes no sense, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureGateError {
    /// Gates of a component that this server has nothing of.
    #[error("component not registered: {0}")]
    Component(String),
    /// Some gates with the component's name, others without it.
    #[error("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")]
    MixedPrefixes,
    /// A gate without `=true` or `=false`.
    #[error("missing bool value for {0}")]
    NoValue(String),
    /// A value that is neither true nor false.
    #[error("invalid value of {0}={1}, err: strconv.ParseBool: parsing {1:?}: invalid syntax")]
    Value(String, String),
    /// A gate that no release has.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// Gates that cannot be set so in this release; one sentence each.
    #[error("{}", aggregate(.0))]
    Refused(Vec<String>),
}

/// Several errors as Go shows them.
fn aggregate(sentences: &[String]) -> String {
    match sentences {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl FeatureGates {
    /// What a release has by default.
    pub fn of(release: Release) -> Self {
        let on = gates().map(|gate| (gate.name, gate.default_in(release)));
        Self { on: on.collect(), min_compatibility: release.before().max(Release::OLDEST) }
    }

    /// What a release has if `Name=true` and `Name=false` are said on top of its defaults. Each of `values` may have
    /// several, separated by commas.
    ///
    /// `min_compatibility` is the oldest release that the server shares a store with.
    ///
    /// # Errors
    ///
    /// See [`FeatureGateError`].
    pub fn parse<S: AsRef<str>>(
        release: Release,
        min_compatibility: Release,
        values: &[S],
    ) -> Result<Self, FeatureGateError> {
        let asked = asked(values)?;
        let table: Vec<Gate> = gates().collect();
        let mut set: BTreeMap<&'static str, bool> = BTreeMap::new();
        let mut refused = Vec::new();
        for (name, value) in asked.iter().filter(|(name, _)| !is_for_many(name)) {
            let gate = table.iter().find(|gate| gate.name == name);
            let gate = gate.ok_or_else(|| FeatureGateError::Unknown(name.clone()))?;
            match gate.in_release(release) {
                None => refused.push(format!(
                    "cannot set feature gate {name} to {value}, feature is PreAlpha at emulated version {release}, \
                     min compatibility version {min_compatibility}"
                )),
                Some(state) if state.locked && state.on != *value => refused.push(format!(
                    "cannot set feature gate {name} to {value}, feature is locked to {}",
                    state.on
                )),
                Some(_) => drop(set.insert(gate.name, *value)),
            }
        }
        if !refused.is_empty() {
            return Err(FeatureGateError::Refused(refused));
        }
        let mut gates = Self { min_compatibility, ..Self::of(release) };
        for (name, stage) in [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)] {
            let Some(value) = asked.get(name) else { continue };
            let of_stage = |gate: &&Gate| gate.in_release(release).is_some_and(|state| state.stage == stage);
            gates.on.extend(table.iter().filter(of_stage).map(|gate| (gate.name, *value)));
        }
        gates.on.extend(set);
        let lacking: Vec<String> = table.iter().filter_map(|gate| gates.lacking(gate)).collect();
        if lacking.is_empty() { Ok(gates) } else { Err(FeatureGateError::Refused(lacking)) }
    }

    /// Whether a feature is there. No server has one that is not in the table.
    pub fn enabled(&self, name: &str) -> bool {
        debug_assert!(self.on.contains_key(name), "{name} is not in the table");
        self.on.get(name).copied().unwrap_or(false)
    }

    /// Those of the gates that are set, and not as they are by default, which nothing in this server depends on: they belong
    /// to other components of a cluster, or to parts of upstream's server that this one does not have.
    pub fn without_effect<S: AsRef<str>>(&self, release: Release, values: &[S]) -> Vec<&'static str> {
        let asked = asked(values).unwrap_or_default();
        let idle = gates().filter(|gate| !gate.is_used() && asked.contains_key(gate.name));
        idle.filter(|gate| self.enabled(gate.name) != gate.default_in(release))
            .map(|gate| gate.name)
            .collect()
    }

    /// The oldest release that the server shares a store with: what is new in the store must make sense to it.
    pub fn min_compatibility(&self) -> Release {
        self.min_compatibility
    }

    /// All gates of the table, with what they are set to.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.on.iter().map(|(name, on)| (*name, *on))
    }

    /// The gates that a release has: their names, how far they are in upstream's word, which is empty for a stable one, and
    /// what they are set to.
    pub fn stages(&self, release: Release) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        gates().filter_map(move |gate| {
            let stage = match gate.in_release(release)?.stage {
                Stage::Alpha => "ALPHA",
                Stage::Beta => "BETA",
                Stage::Stable => "",
                Stage::Deprecated => "DEPRECATED",
            };
            Some((gate.name, stage, self.enabled(gate.name)))
        })
    }

    /// What is wrong with a gate that is on, while others are not that it builds on.
    fn lacking(&self, gate: &Gate) -> Option<String> {
        if !self.enabled(gate.name) {
            return None;
        }
        let off: Vec<&str> = gate.needs().filter(|name| !self.enabled(name)).collect();
        let sentence = || {
            let off = off.join(" ");
            format!("{} is enabled, but depends on features that are disabled: [{off}]", gate.name)
        };
        (!off.is_empty()).then(sentence)
    }
}

/// Whether a name stands for all gates of a stage.
fn is_for_many(name: &str) -> bool {
    ["AllAlpha", "AllBeta"].contains(&name)
}

/// What the flags say, the last one counting.
fn asked<S: AsRef<str>>(values: &[S]) -> Result<BTreeMap<String, bool>, FeatureGateError> {
    let (mut with_prefix, mut without) = (false, false);
    let mut pairs = Vec::new();
    for pair in values.iter().flat_map(|value| value.as_ref().split(',')).filter(|pair| !pair.is_empty()) {
        match pair.split_once(':') {
            None => without = true,
            Some((component, _)) if component.trim() == COMPONENT => with_prefix = true,
            Some((component, _)) => {
                return Err(FeatureGateError::Component(component.trim().to_owned()));
            }
        }
        pairs.push(pair.split_once(':').map_or(pair, |(_, pair)| pair).trim());
    }
    if with_prefix && without {
        return Err(FeatureGateError::MixedPrefixes);
    }
    pairs.into_iter().map(pair).collect()
}

fn pair(text: &str) -> Result<(String, bool), FeatureGateError> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(FeatureGateError::NoValue(text.to_owned()));
    };
    let (name, value) = (name.trim().to_owned(), value.trim());
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok((name, true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok((name, false)),
        _ => Err(FeatureGateError::Value(name, value.to_owned())),
    }
}

#[cfg(test)]
mod tests;
