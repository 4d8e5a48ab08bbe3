//! Which requests are written down, and how much of them.

mod load;

use concord_meta::{UserInfo, field, is_confidential};

use crate::{Level, Stages};

/// Why a policy cannot be used. The texts are upstream's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// It is neither YAML nor JSON.
    #[error("failed decoding: {0}")]
    Decode(String),
    /// It is something else than a Policy of `audit.k8s.io/v1`.
    #[error("unknown group version field {0} in policy")]
    Kind(String),
    /// Something in it is not as it should be.
    #[error("{}", field::aggregate(.0))]
    Invalid(Vec<field::Error>),
    /// It has no rules.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who asks; `None` if that could not be found out.
    pub user: Option<&'a UserInfo>,
    /// What is to be done.
    pub verb: &'a str,
    /// Whether the request is about a resource, or else about a path.
    pub is_resource: bool,
    /// The path.
    pub path: &'a str,
    /// The namespace; empty for what is in none.
    pub namespace: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The name of the object, or empty.
    pub name: &'a str,
}

impl Attributes<'_> {
    /// How much may be written down at most.
    fn highest(&self) -> Level {
        match self.is_resource && is_confidential(self.group, self.resource, self.subresource) {
            true => Level::Metadata,
            false => Level::RequestResponse,
        }
    }
}

/// How much of a request is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// How much.
    pub level: Level,
    /// When nothing is written.
    pub omit_stages: Stages,
    /// Whether what is written has no managed fields.
    pub omit_managed_fields: bool,
}

/// Which requests are written down: an audit policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    omit_stages: Stages,
    omit_managed_fields: bool,
}

/// A rule; an empty list matches everything.
#[derive(Debug, Clone, PartialEq)]
struct Rule {
    level: Level,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    non_resource_urls: Vec<String>,
    omit_stages: Stages,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
}

impl Policy {
    /// Reads a policy from YAML or JSON. What in it upstream does not know is told to `warn`.
    ///
    /// # Errors
    ///
    /// [`PolicyError`].
    pub fn parse(text: &[u8], warn: impl FnMut(&str)) -> Result<Self, PolicyError> {
        load::policy(text, warn)
    }

    /// What the first rule that matches says. What no rule matches is not written down.
    ///
    /// Of what is confidential never more than who asked for what is written down, whatever the rule says: contrary to
    /// upstream, so that a rule for everything does not collect the passwords of a cluster in one file.
    #[must_use]
    pub fn decide(&self, request: &Attributes<'_>) -> Decision {
        let rule = self.rules.iter().find(|rule| rule.matches(request));
        let (level, omit, fields) = match rule {
            Some(rule) => (rule.level, rule.omit_stages, rule.omit_managed_fields),
            None => (Level::None, Stages::default(), None),
        };
        Decision {
            level: level.min(request.highest()),
            omit_stages: self.omit_stages.union(omit),
            omit_managed_fields: fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

fn any(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == wanted)
}

impl Rule {
    fn matches(&self, request: &Attributes<'_>) -> bool {
        let is_user = |user: &UserInfo| any(&self.users, &user.name);
        let in_group = |user: &UserInfo| user.groups.iter().any(|group| any(&self.groups, group));
        (self.users.is_empty() || request.user.is_some_and(is_user))
            && (self.groups.is_empty() || request.user.is_some_and(in_group))
            && (self.verbs.is_empty() || any(&self.verbs, request.verb))
            && self.matches_what(request)
    }

    fn matches_what(&self, request: &Attributes<'_>) -> bool {
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return request.is_resource
                && (self.namespaces.is_empty() || any(&self.namespaces, request.namespace))
                && (self.resources.is_empty() || self.resources.iter().any(|some| some.matches(request)));
        }
        self.non_resource_urls.is_empty()
            || !request.is_resource
                && self.non_resource_urls.iter().any(|url| path_matches(request.path, url))
    }
}

/// As upstream: exactly, everything, or all that begins with what stands before the stars at the end.
fn path_matches(path: &str, rule: &str) -> bool {
    rule == "*" || rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

impl GroupResources {
    fn matches(&self, request: &Attributes<'_>) -> bool {
        if self.group != request.group && self.group != "*" {
            return false;
        }
        let named = self.names.is_empty() || any(&self.names, request.name);
        self.resources.is_empty()
            || named && self.resources.iter().any(|rule| resource_matches(rule, request))
    }
}

/// `pods` is pods alone, `pods/log` their log, `pods/*` both and all else of them, `*/scale` the scale of all.
fn resource_matches(rule: &str, request: &Attributes<'_>) -> bool {
    let (resource, subresource) = (request.resource, request.subresource);
    let exact = match subresource {
        "" => rule == resource,
        _ => rule.split_once('/') == Some((resource, subresource)),
    };
    exact
        || rule == "*"
        || !subresource.is_empty() && rule.strip_prefix("*/") == Some(subresource)
        || rule.strip_suffix("/*") == Some(resource)
}

#[cfg(test)]
mod tests;
