//! Which requests a FlowSchema is about.

use concord_meta::UserInfo;
use concord_server::{Attributes, RequestInfo};
use serde::Deserialize;

const ALL: &str = "*";

/// Some requests of some users.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<NonResourceRule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind")]
enum Subject {
    User {
        user: Named,
    },
    Group {
        group: Named,
    },
    #[serde(rename_all = "camelCase")]
    ServiceAccount {
        service_account: Account,
    },
    /// One of a kind that is not known, which is nobody.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Account {
    namespace: String,
    name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NonResourceRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    urls: Vec<String>,
}

fn any(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == ALL || item == wanted)
}

impl Rule {
    pub(crate) fn matches(&self, request: &Attributes<'_>) -> bool {
        let info = request.request;
        self.subjects.iter().any(|subject| subject.matches(request.user))
            && match info.is_resource_request {
                true => self.resource_rules.iter().any(|rule| rule.matches(info)),
                false => self.non_resource_rules.iter().any(|rule| rule.matches(info)),
            }
    }
}

impl Subject {
    fn matches(&self, user: &UserInfo) -> bool {
        match self {
            Self::User { user: named } => named.name == ALL || named.name == user.name,
            Self::Group { group } => group.name == ALL || user.is_in(&group.name),
            Self::ServiceAccount { service_account: Account { namespace, name } } => {
                let account = user.name.strip_prefix("system:serviceaccount:");
                let account = account.and_then(|rest| rest.split_once(':'));
                account.is_some_and(|(of, called)| of == namespace && (name == ALL || name == called))
            }
            Self::Other => false,
        }
    }
}

impl ResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        any(&self.verbs, &info.verb)
            && any(&self.api_groups, &info.api_group)
            && self.resources.iter().any(|resource| resource_matches(resource, info))
            && match info.namespace.as_str() {
                "" => self.cluster_scope,
                // Unlike for verbs, `*` is every namespace but none.
                namespace => any(&self.namespaces, namespace),
            }
    }
}

fn resource_matches(rule: &str, info: &RequestInfo) -> bool {
    if rule == ALL {
        return true;
    }
    match rule.split_once('/') {
        None => info.subresource.is_empty() && rule == info.resource,
        Some((resource, subresource)) => {
            !info.subresource.is_empty()
                && subresource == info.subresource
                && (resource == ALL || resource == info.resource)
        }
    }
}

impl NonResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        let path = info.path.as_str();
        let url = |rule: &String| {
            rule == ALL || rule == path || rule.strip_suffix('*').is_some_and(|start| path.starts_with(start))
        };
        any(&self.verbs, &info.verb) && self.urls.iter().any(url)
    }
}
