//! Who may let admission policies read what.
//!
//! What a policy reads it can tell those whom it refuses, so that its author has to be somebody who may read it, too.
//! Upstream has this among the rules of the kinds, hence the form of the answers.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock, Weak},
};

use async_trait::async_trait;
use concord_meta::{GroupVersionKind, Status, UserInfo, field};
use concord_registry::{Admission, Attributes, Object, Operation, Resources, metadata};
use concord_replica::Replica;
use concord_server::{Attributes as Question, Authorizer, RequestInfo};
use serde_json::Value;

use crate::{Objects, at};

const GROUP: &str = "admissionregistration.k8s.io";
/// Policies, by what binds them.
const BOUND: [(&str, &str); 2] = [
    ("validatingadmissionpolicybindings", "validatingadmissionpolicies"),
    ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"),
];

/// Lets only those say of which kind the parameters of a policy are who may read all objects of it, and only those bind
/// parameters who may read them.
pub struct PolicyParameterAuthorization {
    authorizer: Arc<dyn Authorizer>,
    replica: Arc<Replica>,
    resources: OnceLock<Weak<dyn Resources>>,
}

/// What is known of the kind of a policy's parameters.
struct Kind {
    group: String,
    version: String,
    /// Its plural, if it is served.
    plural: Option<String>,
}

impl PolicyParameterAuthorization {
    /// `authorizer` is the one that decides about requests; policies are those of the replica.
    pub fn new(authorizer: Arc<dyn Authorizer>, replica: Arc<Replica>) -> Self {
        Self { authorizer, replica, resources: OnceLock::new() }
    }

    /// Says what is served. Until then no kind can be found.
    pub fn connect(&self, resources: Weak<dyn Resources>) {
        // Whoever is first is right: there is one server.
        self.resources.set(resources).ok();
    }

    fn served(&self) -> Option<Arc<dyn Resources>> {
        self.resources.get().and_then(Weak::upgrade)
    }

    fn kind(&self, [api_version, kind]: [&str; 2]) -> Kind {
        let Ok(wanted) = GroupVersionKind::from_api_version(api_version, kind) else { return Kind::any() };
        let all = self.served().map(|served| served.all()).unwrap_or_default();
        let found = all.into_iter().find(|resource| resource.kind() == wanted);
        let plural = found.map(|resource| resource.names.plural.clone());
        Kind { group: wanted.group, version: wanted.version, plural }
    }

    async fn is_allowed(
        &self,
        user: &UserInfo,
        verb: &'static str,
        kind: &Kind,
        [namespace, name]: [&str; 2],
    ) -> bool {
        let request = RequestInfo {
            is_resource_request: true,
            verb: Cow::Borrowed(verb),
            api_group: kind.group.clone(),
            api_version: kind.version.clone(),
            namespace: namespace.to_owned(),
            resource: kind.plural.clone().unwrap_or_else(|| "*".to_owned()),
            name: name.to_owned(),
            ..RequestInfo::default()
        };
        self.authorizer.authorize(&Question { user, request: &request }).await.is_allowed()
    }

    /// Why a policy may not have parameters of this kind.
    async fn policy(&self, user: &UserInfo, new: &Object, old: Option<&Object>) -> Option<String> {
        let said = param_kind(new)?;
        if old.and_then(param_kind) == Some(said)
            || self.is_allowed(user, "get", &self.kind(said), ["*", "*"]).await
        {
            return None;
        }
        let ([api_version, kind], user) = (said, shown(user));
        Some(format!(
            "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
             apiVersion={api_version})"
        ))
    }

    /// A policy, by its name, in the version in which it is bound.
    async fn bound(
        &self,
        attributes: &Attributes<'_>,
        policies: &'static str,
        name: &str,
    ) -> Result<Option<Object>, Status> {
        let Some(served) = self.served() else { return Ok(None) };
        match Objects::of_version(&self.replica, &*served, &attributes.resource.version, policies) {
            Ok(policies) => policies.find(name).await,
            Err(_) => Ok(None),
        }
    }

    /// Why a binding may not have these parameters.
    async fn binding(
        &self,
        attributes: &Attributes<'_>,
        policies: &'static str,
        new: &Object,
    ) -> Result<Option<String>, Status> {
        let Some(reference) = at(new, &["spec", "paramRef"]) else { return Ok(None) };
        let (name, namespace) = (text(reference, "name"), text(reference, "namespace"));
        let verb = if name.is_empty() { "list" } else { "get" };
        let policy = at(new, &["spec", "policyName"]).and_then(Value::as_str).unwrap_or_default();
        let found = self.bound(attributes, policies, policy).await?;
        let said = found.as_ref().and_then(param_kind);
        let kind = said.map_or_else(Kind::any, |said| self.kind(said));
        let user = &attributes.context.user;
        if self.is_allowed(user, verb, &kind, [namespace, name]).await {
            return Ok(None);
        }
        let user = shown(user);
        let unknown = match (&found, said, &kind.plural) {
            (None, ..) => format!("unable to get policy {policy}"),
            (_, Some([version, kind]), None) => format!("unable to resolve paramKind &{{{version} {kind}}}"),
            _ => {
                // Upstream takes one for the other where policies change objects.
                let changes = policies == BOUND[1].1;
                let (user, verb) = if changes { (verb, user.as_str()) } else { (user.as_str(), verb) };
                let why = "permission on the object referenced by paramRef";
                return Ok(Some(format!("user {user} does not have \"{verb}\" {why}")));
            }
        };
        Ok(Some(format!(
            "{unknown} to determine minimum required permissions and user {user} does not have \"{verb}\" permission for \
             all groups, versions and resources"
        )))
    }
}

impl Kind {
    fn any() -> Self {
        Self { group: "*".to_owned(), version: "*".to_owned(), plural: None }
    }
}

#[async_trait]
impl Admission for PolicyParameterAuthorization {
    fn name(&self) -> &'static str {
        "PolicyParameterAuthorization"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let resource = attributes.resource;
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let concerned = writes && resource.version.group == GROUP && attributes.subresource.is_empty();
        let Some(object) = object.filter(|_| concerned) else { return Ok(()) };
        let (user, plural) = (&attributes.context.user, resource.names.plural.as_str());
        // What the server writes by itself, as when it migrates what is stored, has no verb and changes nothing of this.
        if attributes.context.verb.is_empty() || user.is_in(UserInfo::PRIVILEGED) {
            return Ok(());
        }
        let (member, why) =
            match BOUND.iter().find(|(bindings, policies)| [*bindings, *policies].contains(&plural)) {
                Some((bindings, policies)) if *bindings == plural => {
                    ("paramRef", self.binding(attributes, policies, object).await?)
                }
                Some(_) => ("paramKind", self.policy(user, object, attributes.old).await),
                None => return Ok(()),
            };
        let Some(why) = why else { return Ok(()) };
        let error = field::Error::forbidden(&field::Path::new("spec").child(member), why);
        Err(Status::invalid(&resource.kind().group_kind(), metadata(object).name(), &[error]))
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The version and the kind of a policy's parameters.
fn param_kind(policy: &Object) -> Option<[&str; 2]> {
    let kind = at(policy, &["spec", "paramKind"])?;
    Some(["apiVersion", "kind"].map(|name| text(kind, name)))
}

/// A user as Go shows one.
fn shown(user: &UserInfo) -> String {
    let extra = user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" ")));
    let extra: Vec<String> = extra.collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_user_is_shown_as_go_shows_one() {
        let mut user = UserInfo {
            name: "u".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            ..UserInfo::default()
        };
        assert_eq!(shown(&user), "&{u  [system:authenticated] map[]}");
        user.uid = "77".to_owned();
        user.groups.insert(0, "g1".to_owned());
        user.extra = BTreeMap::from([("k".to_owned(), vec!["v".to_owned()])]);
        assert_eq!(shown(&user), "&{u 77 [g1 system:authenticated] map[k:[v]]}");
    }
}
