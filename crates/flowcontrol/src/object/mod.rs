//! The two kinds, as they are stored.

use concord_server::Attributes;
use serde::{Deserialize, Deserializer};

use crate::rule::Rule;

/// What tells the flows of a FlowSchema apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Distinguisher {
    /// Nothing: it is one flow.
    #[default]
    None,
    /// The name of the user.
    ByUser,
    /// The namespace of the request.
    ByNamespace,
}

/// Says which priority level some requests belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowSchema {
    /// The name.
    pub name: String,
    /// The uid, which answers tell.
    pub uid: String,
    /// Of several that match, the one with the lowest counts.
    pub precedence: i64,
    /// The name of the level.
    pub level: String,
    /// What tells flows apart.
    pub distinguisher: Distinguisher,
    pub(crate) rules: Vec<Rule>,
}

/// How the requests of a level wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Queuing {
    /// How many queues there are.
    pub queues: u32,
    /// How many of them a flow may use.
    pub hand_size: u32,
    /// How many requests each holds.
    pub queue_length_limit: u32,
}

impl Default for Queuing {
    fn default() -> Self {
        Self { queues: 64, hand_size: 8, queue_length_limit: 50 }
    }
}

/// A part of what the server can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriorityLevel {
    /// The name.
    pub name: String,
    /// The uid, which answers tell.
    pub uid: String,
    /// Whether its requests never wait.
    pub exempt: bool,
    /// Its part, in proportion to those of the others.
    pub shares: u32,
    /// How much of its part others may use while it does not, in percent.
    pub lendable_percent: u32,
    /// How much it may use of the others' parts, in percent of its own; `None` for as much as there is.
    pub borrowing_limit_percent: Option<u32>,
    /// How its requests wait; `None` if they do not but are sent away.
    pub queuing: Option<Queuing>,
}

#[derive(Deserialize)]
struct Stored<S> {
    metadata: Metadata,
    spec: S,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Name {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Kind {
    r#type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchemaSpec {
    #[serde(default)]
    priority_level_configuration: Name,
    #[serde(default = "default_precedence")]
    matching_precedence: i64,
    #[serde(default)]
    distinguisher_method: Option<Kind>,
    #[serde(default, deserialize_with = "list")]
    rules: Vec<Rule>,
}

fn default_precedence() -> i64 {
    1000
}

/// A list that may be null.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize)]
struct LevelSpec {
    r#type: String,
    #[serde(default)]
    limited: Option<Limits>,
    #[serde(default)]
    exempt: Option<Limits>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Limits {
    nominal_concurrency_shares: Option<u32>,
    lendable_percent: Option<u32>,
    borrowing_limit_percent: Option<u32>,
    limit_response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    r#type: String,
    #[serde(default)]
    queuing: Option<Queuing>,
}

impl FlowSchema {
    /// Reads a stored object; `None` if it is none.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let Stored { metadata, spec } = serde_json::from_slice::<Stored<SchemaSpec>>(value).ok()?;
        let distinguisher = match spec.distinguisher_method.unwrap_or_default().r#type.as_str() {
            "ByUser" => Distinguisher::ByUser,
            "ByNamespace" => Distinguisher::ByNamespace,
            _ => Distinguisher::None,
        };
        Some(Self {
            name: metadata.name,
            uid: metadata.uid,
            precedence: spec.matching_precedence,
            level: spec.priority_level_configuration.name,
            distinguisher,
            rules: spec.rules,
        })
    }

    /// Whether it is about this request.
    #[must_use]
    pub fn matches(&self, request: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(request))
    }
}

impl PriorityLevel {
    /// Reads a stored object; `None` if it is none.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let Stored { metadata, spec } = serde_json::from_slice::<Stored<LevelSpec>>(value).ok()?;
        let exempt = spec.r#type == "Exempt";
        let limits = if exempt { spec.exempt } else { spec.limited }.unwrap_or_default();
        let queuing = limits.limit_response.filter(|response| response.r#type == "Queue");
        Some(Self {
            name: metadata.name,
            uid: metadata.uid,
            exempt,
            shares: limits.nominal_concurrency_shares.unwrap_or(if exempt { 0 } else { 30 }),
            lendable_percent: limits.lendable_percent.unwrap_or_default(),
            borrowing_limit_percent: limits.borrowing_limit_percent,
            queuing: queuing.map(|response| response.queuing.unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests;
