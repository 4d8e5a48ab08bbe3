//! Whether somebody may do something.

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use concord_meta::{
    GroupKind, Status, UserInfo,
    field::{self, BadValue},
    go,
    objectmeta::MEMBERS,
};
use concord_registry::{Invocation, Object, Virtual, metadata, with_owners};
use concord_schema::Schema;
use concord_server::{Attributes, Authorizer, Decision, RequestInfo};
use serde::Deserialize;
use serde_json::{Value, json};

use super::selectors::{FieldSelector, LabelSelector};

/// Whom a review asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whom {
    /// Whoever asks: SelfSubjectAccessReview.
    Oneself,
    /// The user in the review: SubjectAccessReview.
    Anybody,
    /// The user in the review, in one namespace: LocalSubjectAccessReview.
    AnybodyHere,
}

/// Answers what the authorizer would decide about a request.
pub(super) struct AccessReview {
    pub(super) schema: Arc<Schema>,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) whom: Whom,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    groups: Vec<String>,
    extra: std::collections::BTreeMap<String, Vec<String>>,
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<FieldSelector>,
    label_selector: Option<LabelSelector>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NonResourceAttributes {
    path: String,
    verb: String,
}

#[async_trait]
impl Virtual for AccessReview {
    fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, body: Object) -> Result<Object, Status> {
        let kind = invocation.resource.kind();
        let mut review = with_owners(&self.schema, kind, "", invocation.context, body);
        let spec = review.get("spec").map(Spec::deserialize).transpose();
        let spec = spec.map_err(|error| Status::bad_request(error.to_string()))?.unwrap_or_default();
        let errors = self.whom.errors(&spec, &review);
        if !errors.is_empty() {
            // Upstream asks the object for its kind, which it does not know.
            return Err(Status::invalid(&GroupKind::new("authorization.k8s.io", ""), "", &errors));
        }
        let somebody;
        let user = match self.whom {
            Whom::Oneself => invocation.context.user.as_ref(),
            Whom::Anybody | Whom::AnybodyHere => {
                somebody = spec.somebody();
                &somebody
            }
        };
        let request = spec.request();
        let (decision, reason) = self.authorizer.explain(&Attributes { user, request: &request }).await;
        review.insert("status".to_owned(), status(&decision, &reason, &spec.evaluation_errors()));
        Ok(review)
    }
}

fn status(decision: &Decision, reason: &str, errors: &[String]) -> Value {
    let mut status = json!({"allowed": decision.is_allowed()});
    if matches!(decision, Decision::Deny(_)) {
        status["denied"] = true.into();
    }
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    if !errors.is_empty() {
        status["evaluationError"] = errors.join("; ").into();
    }
    status
}

impl Whom {
    /// What is wrong with a review.
    fn errors(self, spec: &Spec, review: &Object) -> Vec<field::Error> {
        let path = field::Path::new("spec");
        let mut errors = Vec::new();
        match (&spec.resource_attributes, &spec.non_resource_attributes) {
            (Some(_), Some(other)) => {
                let why = "cannot be specified in combination with resourceAttributes";
                errors.push(field::Error::invalid(&path.child("nonResourceAttributes"), other.shown(), why));
            }
            (None, None) => {
                let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                let nothing = BadValue::verbatim("null");
                errors.push(field::Error::invalid(&path.child("resourceAttributes"), nothing, why));
            }
            _ => {}
        }
        if self != Self::Oneself && spec.user.is_empty() && spec.groups.is_empty() {
            let why = "at least one of user or group must be specified";
            errors.push(field::Error::invalid(&path.child("user"), "", why));
        }
        if let Some(attributes) = &spec.resource_attributes {
            let path = field::Path::new("spec.resourceAttributes");
            let fields = attributes.field_selector.as_ref();
            errors.extend(fields.into_iter().flat_map(|s| s.validate(&path.child("fieldSelector"))));
            let labels = attributes.label_selector.as_ref();
            errors.extend(labels.into_iter().flat_map(|s| s.validate(&path.child("labelSelector"))));
        }
        errors.extend(self.metadata_error(review));
        if self == Self::AnybodyHere {
            errors.extend(spec.errors_here(metadata(review).namespace()));
        }
        errors
    }

    /// A review is no object: it has no metadata, except where the namespace is part of the question.
    fn metadata_error(self, review: &Object) -> Option<field::Error> {
        let (ignored, why) = match self {
            Self::AnybodyHere => (&["managedFields", "namespace"][..], "must be empty except for namespace"),
            _ => (&["managedFields"][..], "must be empty"),
        };
        let members = review.get("metadata").and_then(Value::as_object)?;
        let said = |(name, value): (&String, &Value)| !ignored.contains(&name.as_str()) && !value.is_null();
        members.iter().any(said).then(|| {
            let shown = BadValue::verbatim(shown_metadata(members));
            field::Error::invalid(&field::Path::new("metadata"), shown, why)
        })
    }
}

/// The members of who owns what, in the order of Go's structure.
const OWNER: &[&str] =
    &["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

fn shown_metadata(members: &Object) -> String {
    ordered(members, &MEMBERS, |value| match value.as_array() {
        Some(owners) if members.get("managedFields") == Some(value) => {
            let owners = owners.iter().filter_map(Value::as_object);
            let owners: Vec<String> = owners.map(|owner| ordered(owner, OWNER, go::json)).collect();
            format!("[{}]", owners.join(","))
        }
        _ => go::json(value),
    })
}

fn ordered(members: &Object, order: &[&str], shown: impl Fn(&Value) -> String) -> String {
    let present = order.iter().filter_map(|name| Some((name, members.get(*name)?)));
    let members: Vec<String> =
        present.map(|(name, value)| format!("{}:{}", go::quote(name), shown(value))).collect();
    format!("{{{}}}", members.join(","))
}

impl NonResourceAttributes {
    /// Upstream shows its own structure.
    fn shown(&self) -> BadValue {
        let text = |text: &str| go::json(&Value::from(text));
        BadValue::verbatim(format!("{{\"Path\":{},\"Verb\":{}}}", text(&self.path), text(&self.verb)))
    }
}

impl Spec {
    /// What a review within a namespace may not ask.
    fn errors_here(&self, namespace: &str) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if let Some(attributes) = self.resource_attributes.as_ref().filter(|a| a.namespace != namespace) {
            let path = field::Path::new("spec.resourceAttributes.namespace");
            let why = "must match metadata.namespace";
            errors.push(field::Error::invalid(&path, &attributes.namespace, why));
        }
        if let Some(attributes) = &self.non_resource_attributes {
            let path = field::Path::new("spec.nonResourceAttributes");
            errors.push(field::Error::invalid(
                &path,
                attributes.shown(),
                "disallowed on this kind of request",
            ));
        }
        errors
    }

    fn somebody(&self) -> UserInfo {
        UserInfo {
            name: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone(),
            extra: self.extra.clone(),
        }
    }

    /// The request that is asked about. Of selectors only what is wrong with them is told: no rule of ours looks at them.
    fn request(&self) -> RequestInfo {
        if let Some(attributes) = &self.resource_attributes {
            let version = if attributes.version.is_empty() { "*" } else { &attributes.version };
            return RequestInfo {
                is_resource_request: true,
                verb: Cow::Owned(attributes.verb.clone()),
                api_group: attributes.group.clone(),
                api_version: version.to_owned(),
                namespace: attributes.namespace.clone(),
                resource: attributes.resource.clone(),
                subresource: attributes.subresource.clone(),
                name: attributes.name.clone(),
                ..RequestInfo::default()
            };
        }
        let attributes = self.non_resource_attributes.as_ref();
        RequestInfo {
            path: attributes.map(|attributes| attributes.path.clone()).unwrap_or_default(),
            verb: Cow::Owned(attributes.map(|attributes| attributes.verb.clone()).unwrap_or_default()),
            ..RequestInfo::default()
        }
    }

    fn evaluation_errors(&self) -> Vec<String> {
        let Some(attributes) = &self.resource_attributes else { return Vec::new() };
        let fields = attributes.field_selector.as_ref().and_then(FieldSelector::ignored);
        let labels = attributes.label_selector.as_ref().and_then(LabelSelector::ignored);
        let told = [("fieldSelector", fields), ("labelSelector", labels)].into_iter();
        let told = told.filter_map(|(name, ignored)| Some((name, ignored?)));
        told.map(|(name, how)| format!("spec.resourceAttributes.{name} {how} due to parse error")).collect()
    }
}

#[cfg(test)]
mod tests;
