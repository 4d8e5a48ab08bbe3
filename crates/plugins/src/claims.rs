//! Who may say what becomes of claims for devices, and where they may reach past what keeps users apart.
//!
//! Upstream has these among the rules of the kind, hence the form of the answers.

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use concord_meta::{GroupKind, RequestAttributes, Status, UserInfo, field};
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use concord_server::{Attributes as Question, Authorizer, Decision, RequestInfo};
use serde_json::Value;

use crate::{Objects, at, concerns};

const GROUP: &str = "resource.k8s.io";
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Lets claims have access to devices that others use only in namespaces that are marked for it, and only those say what
/// a claim has been given, or how its devices do, who may.
pub struct ResourceClaimAuthorization {
    namespaces: Objects,
    authorizer: Arc<dyn Authorizer>,
    granular: bool,
}

impl ResourceClaimAuthorization {
    /// By the labels of these namespaces. `granular` says whether parts of the status need permissions of their own: the
    /// feature DRAResourceClaimGranularStatusAuthorization.
    pub fn new(namespaces: Objects, authorizer: Arc<dyn Authorizer>, granular: bool) -> Self {
        Self { namespaces, authorizer, granular }
    }

    /// What is wrong with access as an administrator, asked for at a place.
    async fn admin(&self, namespace: &str, place: &field::Path) -> Result<Option<field::Error>, Status> {
        let marked = self.namespaces.find(namespace).await?.is_some_and(|namespace| {
            let labels = metadata(&namespace).labels().cloned().unwrap_or_default();
            labels.get(ADMIN_LABEL).and_then(Value::as_str) == Some("true")
        });
        let why = format!(
            "admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
        );
        Ok((!marked).then(|| field::Error::forbidden(place, why)))
    }

    async fn status(
        &self,
        attributes: &Attributes<'_>,
        new: &Object,
        old: &Object,
    ) -> Result<Vec<field::Error>, Status> {
        let mut errors = Vec::new();
        if admin_result(old).is_none()
            && let Some(index) = admin_result(new)
        {
            let results = field::Path::new("status").child("allocation").child("devices").child("results");
            let place = results.index(index).child("adminAccess");
            errors.extend(self.admin(attributes.namespace, &place).await?);
        }
        if self.granular {
            errors.extend(self.binding(attributes, new, old).await);
            errors.extend(self.devices(attributes, new, old).await);
        }
        Ok(errors)
    }

    async fn binding(&self, attributes: &Attributes<'_>, new: &Object, old: &Object) -> Option<field::Error> {
        let same = |name: &str| at(new, &["status", name]) == at(old, &["status", name]);
        if same("allocation") && same("reservedFor") {
            return None;
        }
        let (user, verb) = (&attributes.context.user, &attributes.context.verb);
        let refused = self.refused(user, &[verb.to_string()], "binding", ["", ""]).await?;
        let why = format!(
            "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"{verb}\" \
             permission: {refused}"
        );
        Some(field::Error::forbidden(&field::Path::new("status").child("allocation"), why))
    }

    async fn devices(&self, attributes: &Attributes<'_>, new: &Object, old: &Object) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let Some(allocation) = at(new, &["status", "allocation"]) else { return errors };
        let user = &attributes.context.user;
        let here = node_of(allocation).is_some_and(|node| is_on_node(user, node));
        let prefixes = if here { &["associated-node", "arbitrary-node"][..] } else { &["arbitrary-node"] };
        let verb = &attributes.context.verb;
        let verbs: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}:{verb}")).collect();
        for driver in changed_drivers(new, old) {
            let place = [attributes.namespace, driver];
            if let Some(refused) = self.refused(user, &verbs, "driver", place).await {
                let why = format!(
                    "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: \
                     {refused}",
                    verbs.join(" ")
                );
                errors.push(field::Error::forbidden(&field::Path::new("status").child("devices"), why));
            }
        }
        errors
    }

    /// Why none of the verbs is allowed, if none is.
    async fn refused(
        &self,
        user: &UserInfo,
        verbs: &[String],
        subresource: &str,
        [namespace, name]: [&str; 2],
    ) -> Option<String> {
        let mut first = None;
        for verb in verbs {
            let request = RequestInfo {
                is_resource_request: true,
                verb: Cow::Owned(verb.clone()),
                api_group: GROUP.to_owned(),
                api_version: "*".to_owned(),
                namespace: namespace.to_owned(),
                resource: "resourceclaims".to_owned(),
                subresource: subresource.to_owned(),
                name: name.to_owned(),
                ..RequestInfo::default()
            };
            let reason = match self.authorizer.authorize(&Question { user, request: &request }).await {
                Decision::Allow => return None,
                Decision::Deny(reason) | Decision::NoOpinion(reason) => reason,
            };
            let described = RequestAttributes {
                user: &user.name,
                verb,
                group: GROUP,
                resource: "resourceclaims",
                subresource,
                namespace,
                name,
                path: "",
            };
            first.get_or_insert_with(|| Status::not_authorized(&described, &reason).message);
        }
        first
    }
}

#[async_trait]
impl Admission for ResourceClaimAuthorization {
    fn name(&self) -> &'static str {
        "ResourceClaimAuthorization"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let Some(object) = object else { return Ok(()) };
        let is = |plural: &str, subresource: &str| concerns(attributes, GROUP, plural, subresource);
        let kind = match is("resourceclaimtemplates", "") {
            true => "ResourceClaimTemplate",
            false => "ResourceClaim",
        };
        let errors = match (attributes.operation, attributes.old) {
            (Operation::Create, _) if is("resourceclaims", "") || is("resourceclaimtemplates", "") => {
                match admin_request(object) {
                    Some(index) => {
                        let requests = field::Path::new("spec").child("devices").child("requests");
                        let place = requests.index(index).child("adminAccess");
                        self.admin(attributes.namespace, &place).await?.into_iter().collect()
                    }
                    None => Vec::new(),
                }
            }
            (Operation::Update, Some(old)) if is("resourceclaims", "status") => {
                self.status(attributes, object, old).await?
            }
            _ => Vec::new(),
        };
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(&GroupKind::new(GROUP, kind), metadata(object).name(), &errors))
    }
}

fn list<'a>(object: &'a Object, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The first request, of a claim or a template of one, that asks for access as an administrator.
fn admin_request(object: &Object) -> Option<usize> {
    let of_claim = list(object, &["spec", "devices", "requests"]);
    let requests =
        if of_claim.is_empty() { list(object, &["spec", "spec", "devices", "requests"]) } else { of_claim };
    // Before v1beta2 it stood in the request itself.
    let asks = |request: &Value| [request, &request["exactly"]].iter().any(|at| at["adminAccess"] == true);
    requests.iter().position(asks)
}

fn admin_result(claim: &Object) -> Option<usize> {
    let results = list(claim, &["status", "allocation", "devices", "results"]);
    results.iter().position(|result| result["adminAccess"] == true)
}

/// The drivers about whose devices something else is said than before, in their order.
fn changed_drivers<'a>(new: &'a Object, old: &'a Object) -> Vec<&'a str> {
    let (new, old) = (list(new, &["status", "devices"]), list(old, &["status", "devices"]));
    let added = new.iter().filter(|device| !old.contains(device));
    let gone = old.iter().filter(|device| !new.contains(device));
    let mut drivers: Vec<&str> = added.chain(gone).filter_map(|device| device["driver"].as_str()).collect();
    drivers.sort_unstable();
    drivers.dedup();
    drivers
}

/// The one node that an allocation is for, if it is for one.
fn node_of(allocation: &Value) -> Option<&str> {
    let [term] = allocation.pointer("/nodeSelector/nodeSelectorTerms")?.as_array()?.as_slice() else {
        return None;
    };
    let has_expressions = term["matchExpressions"].as_array().is_some_and(|list| !list.is_empty());
    let [rule] = term.get("matchFields")?.as_array()?.as_slice() else { return None };
    let [node] = rule.get("values")?.as_array()?.as_slice() else { return None };
    let by_name = rule["key"] == "metadata.name" && rule["operator"] == "In" && !has_expressions;
    node.as_str().filter(|_| by_name)
}

/// Whether a user is a service account whose token is bound to a pod on the node.
fn is_on_node(user: &UserInfo, node: &str) -> bool {
    let on = user.extra.get(NODE_NAME).map_or(&[][..], Vec::as_slice);
    user.name.starts_with("system:serviceaccount:") && !node.is_empty() && on == [node]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn access_as_an_administrator_is_found_in_claims_and_templates_of_every_version() {
        for (spec, expected) in [
            (
                json!({"devices": {"requests": [{"exactly": {}}, {"exactly": {"adminAccess": true}}]}}),
                Some(1),
            ),
            (json!({"devices": {"requests": [{"adminAccess": true}]}}), Some(0)),
            (json!({"spec": {"devices": {"requests": [{"exactly": {"adminAccess": true}}]}}}), Some(0)),
            (json!({"devices": {"requests": [{"exactly": {"adminAccess": false}}]}}), None),
        ] {
            assert_eq!(admin_request(&object(&json!({"spec": spec}))), expected, "{spec}");
        }
    }

    #[test]
    fn only_drivers_whose_devices_change_are_asked_about() {
        let claim = |devices: Value| object(&json!({"status": {"devices": devices}}));
        let before = claim(json!([{"driver": "a", "device": "x"}, {"driver": "b", "device": "y"}]));
        let after = claim(json!([{"driver": "a", "device": "x"}, {"driver": "c", "device": "z"}]));
        assert_eq!(changed_drivers(&after, &before), ["b", "c"]);
        assert!(changed_drivers(&before, &before).is_empty());
    }

    #[test]
    fn a_service_account_is_on_the_node_of_an_allocation() {
        let allocation =
            |fields: Value| json!({"nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}});
        let one = allocation(json!([{"key": "metadata.name", "operator": "In", "values": ["n"]}]));
        assert_eq!(node_of(&one), Some("n"));
        let many = allocation(json!([{"key": "metadata.name", "operator": "In", "values": ["n", "m"]}]));
        assert_eq!(node_of(&many), None);
        let mut user = UserInfo { name: "system:serviceaccount:a:b".to_owned(), ..UserInfo::default() };
        assert!(!is_on_node(&user, "n"));
        user.extra.insert(NODE_NAME.to_owned(), vec!["n".to_owned()]);
        assert!(is_on_node(&user, "n") && !is_on_node(&user, "m"));
    }
}
