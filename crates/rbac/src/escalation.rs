//! Nobody grants what they do not have.

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use concord_meta::{GroupResource, Status, UserInfo, go};
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use concord_server::{Attributes as Question, Authorizer, RequestInfo};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    MissingRole, Policy, PolicyRule, Rbac, RoleRef,
    covers::{covers, describe_missing},
    object::GROUP,
};

/// Refuses roles and bindings that would give more than their author has.
///
/// A role needs all its rules to be the author's own, or the verb `escalate` on the role; a binding all rules of the role
/// it refers to, or the verb `bind` on that role. Who may do everything by being privileged may do this, too.
///
/// This is admission and no strategy, since it asks who may do what, and it belongs to the end of the chain's changing
/// half: upstream asks after whoever may change an object and before the object is validated.
pub struct EscalationCheck {
    rbac: Rbac,
    authorizer: Arc<dyn Authorizer>,
}

impl EscalationCheck {
    /// `authorizer` is the one that decides about requests: who it allows to escalate may do so, by whichever of its
    /// members. What a user has is what the rules say.
    pub fn new(rbac: Rbac, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { rbac, authorizer }
    }

    async fn check_role(&self, write: &Write<'_>) -> Result<(), Status> {
        let about = RequestInfo {
            verb: Cow::Borrowed("escalate"),
            resource: write.plural.to_owned(),
            name: if write.named { write.name.to_owned() } else { String::new() },
            ..write.about()
        };
        if self.allows(write, &about).await || write.is_housekeeping() {
            return Ok(());
        }
        self.confirm(write, &field::<Vec<PolicyRule>>(write.object, "rules")?)?;
        if write.is_aggregated() && self.confirm(write, &full_authority()).is_err() {
            return Err(write.forbid("must have cluster-admin privileges to use the aggregationRule"));
        }
        Ok(())
    }

    async fn check_binding(&self, write: &Write<'_>) -> Result<(), Status> {
        if write.is_housekeeping() {
            return Ok(());
        }
        let role = field::<RoleRef>(write.object, "roleRef")?;
        let plural = match role.kind.as_str() {
            "Role" => Some("roles"),
            "ClusterRole" => Some("clusterroles"),
            _ => None,
        };
        if let Some(plural) = plural {
            let about = RequestInfo {
                verb: Cow::Borrowed("bind"),
                api_group: role.api_group.clone(),
                resource: plural.to_owned(),
                name: role.name.clone(),
                ..write.about()
            };
            if self.allows(write, &about).await {
                return Ok(());
            }
        }
        let policy = self.rbac.policy();
        let rules = policy.rules_of(&role, write.namespace).map_err(|missing| write.not_found(&missing))?;
        self.confirm(write, rules)
    }

    async fn allows(&self, write: &Write<'_>, request: &RequestInfo) -> bool {
        self.authorizer.authorize(&Question { user: write.user, request }).await.is_allowed()
    }

    /// Refuses what the user does not have.
    fn confirm(&self, write: &Write<'_>, rules: &[PolicyRule]) -> Result<(), Status> {
        let policy = self.rbac.policy();
        let (own, errors) = rules_of_user(&policy, write.user, write.namespace);
        let missing = covers(&own, rules);
        if missing.is_nothing() {
            return Ok(());
        }
        let mut message = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            go::quote(&write.user.name),
            go::quote_slice(&write.user.groups),
            describe_missing(&missing),
        );
        if !errors.is_empty() {
            let errors: Vec<String> = errors.iter().map(|missing| write.not_found(missing).message).collect();
            message.push_str(&format!("; resolution errors: [{}]", crate::authorizer::aggregate(errors)));
        }
        Err(write.forbid(&message))
    }
}

#[async_trait]
impl Admission for EscalationCheck {
    fn name(&self) -> &'static str {
        "RBACEscalationCheck"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let resource = attributes.resource;
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let (Some(object), true) = (object, writes && resource.version.group == GROUP) else { return Ok(()) };
        let write = Write {
            user: &attributes.context.user,
            plural: &resource.names.plural,
            namespace: attributes.namespace,
            name: attributes.name,
            named: attributes.named,
            object,
            old: attributes.old,
        };
        if write.user.is_in(UserInfo::PRIVILEGED) {
            return Ok(());
        }
        match write.plural {
            "roles" | "clusterroles" => self.check_role(&write).await,
            "rolebindings" | "clusterrolebindings" => self.check_binding(&write).await,
            _ => Ok(()),
        }
    }
}

/// A role or binding that is about to be written.
struct Write<'a> {
    user: &'a UserInfo,
    plural: &'a str,
    namespace: &'a str,
    name: &'a str,
    /// Only then the name counts in asking who may escalate.
    named: bool,
    object: &'a Object,
    old: Option<&'a Object>,
}

impl Write<'_> {
    /// A question about something in the namespace of the object.
    fn about(&self) -> RequestInfo {
        RequestInfo {
            is_resource_request: true,
            api_group: GROUP.to_owned(),
            api_version: "*".to_owned(),
            namespace: self.namespace.to_owned(),
            ..RequestInfo::default()
        }
    }

    /// Whether it only changes what the garbage collector has to.
    fn is_housekeeping(&self) -> bool {
        let Some(old) = self.old else { return false };
        let others = |object: &Object| {
            let mut object = object.clone();
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
                    metadata.remove(field);
                }
            }
            object
        };
        others(self.object) == others(old)
    }

    /// Whether the rules are, or were, those of other roles.
    fn is_aggregated(&self) -> bool {
        let has = |object: &Object| {
            let selectors = object.get("aggregationRule").and_then(|rule| rule.get("clusterRoleSelectors"));
            selectors.and_then(Value::as_array).is_some_and(|selectors| !selectors.is_empty())
        };
        has(self.object) || self.old.is_some_and(has)
    }

    /// Upstream looks for the role as if the request were about it, and names the request's resource instead.
    fn not_found(&self, missing: &MissingRole) -> Status {
        match missing {
            MissingRole::NotFound { name, .. } => {
                Status::not_found(&GroupResource::new(GROUP, self.plural), name)
            }
            MissingRole::UnsupportedKind(_) => Status::untyped(missing.to_string()),
        }
    }

    fn forbid(&self, why: &str) -> Status {
        let name = metadata(self.object).name();
        Status::forbidden(&GroupResource::new(GROUP, self.plural), name, why)
    }
}

fn rules_of_user(policy: &Policy, user: &UserInfo, namespace: &str) -> (Vec<PolicyRule>, Vec<MissingRole>) {
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for granted in policy.granted(user, namespace) {
        match granted.rules {
            Ok(own) => rules.extend_from_slice(own),
            Err(missing) => errors.push(missing),
        }
    }
    (rules, errors)
}

/// What cluster-admin has.
fn full_authority() -> Vec<PolicyRule> {
    let all = || vec!["*".to_owned()];
    let resources = PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() };
    vec![resources, PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() }]
}

/// A member of an object that the schema has been over; one that is missing or null is empty.
fn field<T: DeserializeOwned + Default>(object: &Object, name: &str) -> Result<T, Status> {
    let value = object.get(name).filter(|value| !value.is_null());
    let read = value.map(T::deserialize).transpose();
    read.map(Option::unwrap_or_default).map_err(|error| Status::bad_request(error.to_string()))
}
