//! What pods may be, by the labels of their namespace.

mod baseline;
mod check;
mod config;
mod existing;
mod host;
mod policy;
mod restricted;

use async_trait::async_trait;
use concord_meta::{GroupKind, Status};
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use serde_json::Value;

pub use self::config::{PodSecurityConfig, PodSecurityConfigError};
use self::{
    check::{Pod, Violation, details, violations},
    policy::{Level, LevelVersion, PREFIX, Policy},
};
use crate::{Objects, at, forbidden};

/// The newest release that changed a check.
const NEWEST: u32 = 35;

/// What never changes what a pod is.
const HARMLESS: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// Where the workloads have the template of their pods.
const TEMPLATES: [(&str, &str, &[&str]); 8] = [
    ("", "podtemplates", &["template"]),
    ("", "replicationcontrollers", &["spec", "template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
];

/// Holds pods to the level that their namespace has in its labels: refuses them, warns of them, or notes them for whoever
/// audits. Workloads whose pods would be refused are warned of.
pub struct PodSecurity {
    namespaces: Objects,
    pods: Objects,
    newest: u32,
    config: PodSecurityConfig,
}

/// What a request is about, as far as this concerns pods.
enum Subject<'a> {
    Namespace,
    Pod,
    Workload(&'a [&'a str]),
}

impl PodSecurity {
    /// By the labels of these namespaces, and by what the configuration says where there are none. `minor` is the release
    /// that is emulated: what it did not know yet is not checked.
    pub fn new(namespaces: Objects, pods: Objects, minor: u32, config: PodSecurityConfig) -> Self {
        Self { namespaces, pods, newest: minor.min(NEWEST), config }
    }

    /// Whether nothing is checked because of where something is or who asks.
    fn is_exempt(&self, attributes: &Attributes<'_>) -> bool {
        let by = if self.config.exempts_namespace(attributes.namespace) {
            "namespace"
        } else if self.config.exempts_user(&attributes.context.user.name) {
            "user"
        } else {
            return false;
        };
        note(attributes, "exempt", by);
        true
    }

    /// Whether nothing is checked because of what pods run in.
    fn is_class_exempt(&self, attributes: &Attributes<'_>, pod: Pod<'_>) -> bool {
        let exempt = self.config.exempts_class(pod.spec);
        if exempt {
            note(attributes, "exempt", "runtimeClass");
        }
        exempt
    }

    /// The policy for objects in a namespace. Few namespaces have one, which is seen without decoding them.
    async fn policy(&self, namespace: &str) -> Result<(Policy, Option<String>), Status> {
        let found = self.namespaces.mentioning(namespace, PREFIX.as_bytes()).await?;
        let labels = found.as_ref().and_then(|found| metadata(found).labels());
        let (policy, errors) = self.config.defaults.with(labels);
        let error = (!errors.is_empty()).then(|| concord_meta::field::aggregate(&errors));
        Ok((policy, error))
    }

    fn check(&self, level: LevelVersion, pod: Pod<'_>) -> Vec<Violation> {
        violations(level, self.newest, pod)
    }

    async fn namespace(&self, attributes: &Attributes<'_>, namespace: &Object) -> Result<(), Status> {
        let labels = metadata(namespace).labels();
        let (policy, errors) = self.config.defaults.with(labels);
        let before = attributes.old.map(|old| self.config.defaults.with(metadata(old).labels()));
        if !errors.is_empty() && before.as_ref().is_none_or(|(_, before)| *before != errors) {
            return Err(Status::invalid(&GroupKind::new("", "Namespace"), attributes.name, &errors));
        }
        let new = policy.enforce;
        if let Some((Policy { enforce: old, .. }, _)) = before {
            let relaxed = new.version == old.version && new.level <= old.level;
            if new.level == Level::Privileged || relaxed {
                return Ok(());
            }
        }
        let warnings = if self.config.exempts_namespace(attributes.name) {
            self.config.ignored(attributes.name, &policy, labels).into_iter().collect()
        } else if before.is_some() {
            let exempt = |spec: &Object| self.config.exempts_class(spec);
            let check = |pod: Pod<'_>| self.check(new, pod);
            let pods = self.pods.each(attributes.name).await?;
            existing::warnings(pods, attributes.name, exempt, check, &new.to_string())?
        } else {
            Vec::new()
        };
        warnings.iter().for_each(|warning| attributes.context.warn(warning));
        Ok(())
    }

    async fn pod(&self, attributes: &Attributes<'_>, pod: &Object) -> Result<(), Status> {
        if self.is_exempt(attributes) {
            return Ok(());
        }
        let (policy, error) = self.policy(attributes.namespace).await?;
        if error.is_none() && policy.is_privileged() {
            note(attributes, "enforce-policy", "privileged:latest");
            return Ok(());
        }
        let is_same = attributes.old.is_some_and(|old| !existing::is_significant(pod, old));
        let Some(subject) = Pod::of(pod).filter(|_| !is_same) else { return Ok(()) };
        if self.is_class_exempt(attributes, subject) {
            return Ok(());
        }
        if let Some(error) = error {
            note(attributes, "error", &format!("Failed to parse policy: {error}"));
        }
        note(attributes, "enforce-policy", &policy.enforce.to_string());
        let refused = self.check(policy.enforce, subject);
        self.audit(attributes, policy, subject);
        if !refused.is_empty() {
            let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, details(&refused));
            return Err(forbidden(attributes, &why));
        }
        self.warn(attributes, policy, subject);
        Ok(())
    }

    async fn workload(&self, attributes: &Attributes<'_>, template: &Object) -> Result<(), Status> {
        if self.is_exempt(attributes) {
            return Ok(());
        }
        let (policy, error) = self.policy(attributes.namespace).await?;
        let told = [policy.warn, policy.audit].iter().any(|mode| mode.level != Level::Privileged);
        if error.is_none() && !told {
            return Ok(());
        }
        let subject = Pod::of(template);
        if subject.is_some_and(|subject| self.is_class_exempt(attributes, subject)) {
            return Ok(());
        }
        if let Some(error) = &error {
            note(attributes, "error", &format!("Failed to parse policy: {error}"));
        }
        if let Some(subject) = subject {
            self.audit(attributes, policy, subject);
            self.warn(attributes, policy, subject);
        }
        Ok(())
    }

    fn audit(&self, attributes: &Attributes<'_>, policy: Policy, subject: Pod<'_>) {
        let found = self.check(policy.audit, subject);
        if !found.is_empty() {
            note(attributes, "audit-violations", &would_violate(policy.audit, &found));
        }
    }

    fn warn(&self, attributes: &Attributes<'_>, policy: Policy, subject: Pod<'_>) {
        let found = self.check(policy.warn, subject);
        if !found.is_empty() {
            attributes.context.warn(&would_violate(policy.warn, &found));
        }
    }
}

#[async_trait]
impl Admission for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let Some((object, subject)) = object.filter(|_| writes).zip(subject(attributes)) else {
            return Ok(());
        };
        match subject {
            Subject::Namespace => self.namespace(attributes, object).await,
            Subject::Pod => self.pod(attributes, object).await,
            Subject::Workload(path) => match at(object, path).and_then(Value::as_object) {
                Some(template) => self.workload(attributes, template).await,
                None => Ok(()),
            },
        }
    }
}

/// Nothing if the request cannot make pods other than they are.
fn subject<'a>(attributes: &Attributes<'_>) -> Option<Subject<'a>> {
    let (group, plural) =
        (attributes.resource.version.group.as_str(), attributes.resource.names.plural.as_str());
    match (group, plural, attributes.subresource) {
        ("", "pods", subresource) if !HARMLESS.contains(&subresource) => Some(Subject::Pod),
        ("", "namespaces", "") => Some(Subject::Namespace),
        (_, _, "") => {
            let row = TEMPLATES.iter().find(|row| (row.0, row.1) == (group, plural));
            row.map(|(_, _, path)| Subject::Workload(path))
        }
        _ => None,
    }
}

fn would_violate(level: LevelVersion, found: &[Violation]) -> String {
    format!("would violate PodSecurity \"{level}\": {}", details(found))
}

fn note(attributes: &Attributes<'_>, key: &str, value: &str) {
    attributes.context.annotate(format!("{PREFIX}{key}"), value);
}

#[cfg(test)]
mod tests;
