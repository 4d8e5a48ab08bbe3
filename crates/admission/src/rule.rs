//! Which requests a rule is about.

use concord_meta::GroupVersionResource;
use concord_registry::{Object, Operation};

use crate::read::{text, texts};

/// `CREATE` and so on.
pub(crate) fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

/// What a rule is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) resource: &'a GroupVersionResource,
    pub(crate) subresource: &'a str,
    /// That of a Namespace object is its name.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) operation: Operation,
}

/// A rule of a webhook or of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: Scope,
    /// Only of policies. None means all.
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
    Unknown,
}

impl Rule {
    pub(crate) fn read(rule: &Object) -> Self {
        Self {
            operations: texts(rule, "operations"),
            groups: texts(rule, "apiGroups"),
            versions: texts(rule, "apiVersions"),
            resources: texts(rule, "resources"),
            scope: match text(rule, "scope") {
                "" | "*" => Scope::All,
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::Unknown,
            },
            names: texts(rule, "resourceNames"),
        }
    }

    pub(crate) fn matches(&self, subject: &Subject<'_>) -> bool {
        let resource = subject.resource;
        self.matches_scope(subject)
            && listed(&self.operations, operation_name(subject.operation))
            && listed(&self.groups, &resource.group)
            && listed(&self.versions, &resource.version)
            && self
                .resources
                .iter()
                .any(|wanted| is_resource(wanted, &resource.resource, subject.subresource))
            && (self.names.is_empty() || self.names.iter().any(|name| name == subject.name))
    }

    fn matches_scope(&self, subject: &Subject<'_>) -> bool {
        let GroupVersionResource { group, version, resource } = subject.resource;
        let is_namespace = group.is_empty() && version == "v1" && resource == "namespaces";
        let in_cluster = is_namespace || subject.namespace.is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Cluster => in_cluster,
            Scope::Namespaced => !in_cluster,
            Scope::Unknown => false,
        }
    }
}

fn listed(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| item == "*" || item == wanted)
}

/// `pods`, `pods/log`, `pods/*`, `*/status`, `*` or `*/*`.
fn is_resource(wanted: &str, resource: &str, subresource: &str) -> bool {
    let (wanted, part) = wanted.split_once('/').unwrap_or((wanted, ""));
    (wanted == "*" || wanted == resource) && (part == "*" || part == subresource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A rule for everything but what is given.
    fn rule(given: &serde_json::Value) -> Rule {
        let mut rule =
            json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]});
        for (field, value) in given.as_object().expect("an object") {
            rule[field] = value.clone();
        }
        Rule::read(rule.as_object().expect("an object"))
    }

    #[test]
    fn rules_match() {
        let (create, delete) = (Operation::Create, Operation::Delete);
        for (given, resource, subresource, namespace, operation, expect) in [
            (json!({}), "/v1/pods", "", "ns", create, true),
            (json!({"operations": ["CREATE", "UPDATE"]}), "/v1/pods", "", "ns", create, true),
            (json!({"operations": ["CREATE", "UPDATE"]}), "/v1/pods", "", "ns", delete, false),
            (json!({"operations": ["CONNECT"]}), "/v1/pods", "exec", "ns", Operation::Connect, true),
            (json!({"apiGroups": [""]}), "/v1/pods", "", "ns", create, true),
            (json!({"apiGroups": [""]}), "apps/v1/deployments", "", "ns", create, false),
            (json!({"apiVersions": ["v1beta1"]}), "apps/v1/deployments", "", "ns", create, false),
            (json!({"resources": ["pods"]}), "/v1/pods", "", "ns", create, true),
            (json!({"resources": ["pods"]}), "/v1/pods", "status", "ns", create, false),
            (json!({"resources": ["pods/*"]}), "/v1/pods", "status", "ns", create, true),
            (json!({"resources": ["pods/*"]}), "/v1/pods", "", "ns", create, true),
            (json!({"resources": ["pods/status"]}), "/v1/pods", "", "ns", create, false),
            (json!({"resources": ["*/status"]}), "/v1/pods", "status", "ns", create, true),
            (json!({"resources": ["*"]}), "/v1/pods", "status", "ns", create, false),
            (json!({"resources": ["*"]}), "/v1/pods", "", "ns", create, true),
            (json!({"scope": "Namespaced"}), "/v1/pods", "", "ns", create, true),
            (json!({"scope": "Namespaced"}), "/v1/nodes", "", "", create, false),
            (json!({"scope": "Namespaced"}), "/v1/namespaces", "", "name", create, false),
            (json!({"scope": "Cluster"}), "/v1/pods", "", "ns", create, false),
            (json!({"scope": "Cluster"}), "/v1/nodes", "", "", create, true),
            (json!({"scope": "Cluster"}), "/v1/namespaces", "", "name", create, true),
            (json!({"scope": "*"}), "/v1/namespaces", "", "name", create, true),
            (json!({"scope": "Elsewhere"}), "/v1/pods", "", "ns", create, false),
            (json!({"resourceNames": ["web"]}), "/v1/pods", "", "ns", create, true),
            (json!({"resourceNames": ["db"]}), "/v1/pods", "", "ns", create, false),
        ] {
            let parts: Vec<&str> = resource.split('/').collect();
            let resource = GroupVersionResource::new(parts[0], parts[1], parts[2]);
            let subject = Subject { resource: &resource, subresource, namespace, name: "web", operation };
            assert_eq!(rule(&given).matches(&subject), expect, "{given} {subject:?}");
        }
    }
}
