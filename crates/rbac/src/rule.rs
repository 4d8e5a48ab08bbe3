use concord_server::RequestInfo;
use serde::{Deserialize, Deserializer, Serialize};

const ALL: &str = "*";

/// What may be done: verbs, on resources or on other paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// The verbs; `*` for all.
    #[serde(deserialize_with = "list")]
    pub verbs: Vec<String>,
    /// The API groups; empty is the core group, `*` all.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources: `pods`, `pods/log`, `*/scale`, or `*` for all with all subresources.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The names; none for all.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources; a `*` at the end stands for whatever follows.
    #[serde(rename = "nonResourceURLs", deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

/// A list that may be null, as Go writes one that was never made.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl PolicyRule {
    /// Whether the rule allows the request.
    pub fn allows(&self, request: &RequestInfo) -> bool {
        if !has(&self.verbs, &request.verb) {
            return false;
        }
        if !request.is_resource_request {
            return self.non_resource_urls.iter().any(|url| url_covers(url, &request.path));
        }
        has(&self.api_groups, &request.api_group)
            && self
                .resources
                .iter()
                .any(|rule| covers_resource(rule, &request.resource, &request.subresource))
            && (self.resource_names.is_empty() || self.resource_names.contains(&request.name))
    }
}

/// Whether a list has the word, or the one that stands for all.
fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|item| item == ALL || item == word)
}

fn covers_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == ALL {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    rule.strip_suffix(subresource)
        .and_then(|rest| rest.strip_suffix('/'))
        .is_some_and(|rest| rest == ALL || rest == resource)
}

/// Whether a path in a rule stands for this one, too.
pub(crate) fn url_covers(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with(ALL) && path.starts_with(rule.trim_end_matches(ALL))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str, urls: &str) -> PolicyRule {
        let split = |text: &str| match text {
            "" => Vec::new(),
            text => text.split(',').map(|word| word.replace("core", "")).collect(),
        };
        PolicyRule {
            verbs: split(verbs),
            api_groups: split(groups),
            resources: split(resources),
            resource_names: split(names),
            non_resource_urls: split(urls),
        }
    }

    #[test]
    fn what_rules_allow() {
        let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
        let pods = || rule("get,list", "core", "pods", "", "");
        for (rule, method, path, allowed) in [
            (pods(), &get, "/api/v1/namespaces/a/pods/b", true),
            (pods(), &get, "/api/v1/pods", true),
            (pods(), &get, "/api/v1/pods?watch=1", false),
            (pods(), &get, "/api/v1/namespaces/a/pods/b/log", false),
            (pods(), &get, "/apis/apps/v1/namespaces/a/pods/b", false),
            (pods(), &delete, "/api/v1/namespaces/a/pods/b", false),
            (pods(), &get, "/pods", false),
            (rule("*", "*", "*", "", ""), &get, "/api/v1/namespaces/a/pods/b/log", true),
            (rule("*", "*", "*", "", ""), &get, "/healthz", false),
            (rule("get", "core", "pods/log", "", ""), &get, "/api/v1/namespaces/a/pods/b/log", true),
            (rule("get", "core", "pods/log", "", ""), &get, "/api/v1/namespaces/a/pods/b", false),
            (rule("get", "core", "*/log", "", ""), &get, "/api/v1/namespaces/a/pods/b/log", true),
            (rule("get", "core", "*/log", "", ""), &get, "/api/v1/namespaces/a/pods/b/catalog", false),
            (rule("get", "core", "pods/*", "", ""), &get, "/api/v1/namespaces/a/pods/b/log", false),
            (rule("get", "core", "pods", "b", ""), &get, "/api/v1/namespaces/a/pods/b", true),
            (rule("get", "core", "pods", "b", ""), &get, "/api/v1/namespaces/a/pods/c", false),
            // A collection has no name, so a rule with names never allows it, unless a selector demands the name.
            (rule("list", "core", "pods", "b", ""), &get, "/api/v1/namespaces/a/pods", false),
            (
                rule("list", "core", "pods", "b", ""),
                &get,
                "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db",
                true,
            ),
            (rule("create", "core", "pods", "b", ""), &post, "/api/v1/namespaces/a/pods", false),
            (rule("get", "", "", "", "/healthz"), &get, "/healthz", true),
            (rule("get", "", "", "", "/healthz"), &get, "/healthz/etcd", false),
            (rule("get", "", "", "", "/healthz/*"), &get, "/healthz/etcd", true),
            (rule("get", "", "", "", "/healthz/*"), &get, "/healthz", false),
            (rule("get", "", "", "", "/healthz*"), &get, "/healthzilla", true),
            (rule("get", "", "", "", "*"), &get, "/metrics", true),
            (rule("get", "", "", "", "*"), &post, "/metrics", false),
            (rule("*", "", "", "", "*"), &get, "/api/v1/pods", false),
            (rule("", "*", "*", "", "*"), &get, "/api/v1/pods", false),
            (PolicyRule::default(), &get, "/api/v1/pods", false),
        ] {
            let request = RequestInfo::new(method, &path.parse().expect("a URI")).expect("readable");
            assert_eq!(rule.allows(&request), allowed, "{rule:?} {method} {path}");
        }
    }

    #[test]
    fn lists_may_be_null() {
        let rule: PolicyRule = serde_json::from_str(r#"{"verbs":null,"resources":["a"]}"#).expect("good");
        assert_eq!(rule, PolicyRule { resources: vec!["a".to_owned()], ..PolicyRule::default() });
    }
}
