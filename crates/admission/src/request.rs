//! What admission knows about a request.

use std::sync::{Arc, OnceLock};

use concord_meta::{GroupResource, GroupVersionKind, GroupVersionResource, Status};
use concord_registry::{Attributes, Object, Operation, Resource};
use concord_server::{AdmissionMetrics, AdmissionStep};
use serde_json::{Value, json};

use crate::{
    read::{member, text},
    rule::{Subject, operation_name},
    shared::Shared,
};

/// The kinds that are policies. They are exempt from admission: who could not change them could not repair them.
const POLICIES: [&str; 4] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// The kinds that configure webhooks, which are exempt from webhooks, but not from policies.
const WEBHOOKS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Reviews, which policies are never asked about: one that refused them would lock everybody out.
const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// One request, as webhooks and policies see it.
pub(crate) struct Request<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) attributes: &'a Attributes<'a>,
    pub(crate) resource: GroupVersionResource,
    pub(crate) kind: GroupVersionKind,
    /// That of a Namespace object is its name.
    pub(crate) namespace: &'a str,
    equivalents: OnceLock<Vec<Arc<Resource>>>,
}

/// As what a webhook or a policy wants to see a request: the resource it asked for, or an equivalent one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) resource: GroupVersionResource,
    pub(crate) kind: GroupVersionKind,
}

/// The objects of a request in one version.
#[derive(Debug, Clone)]
pub(crate) struct Versioned {
    pub(crate) object: Value,
    pub(crate) old: Value,
}

impl<'a> Request<'a> {
    /// `None` if no webhook is asked about it.
    pub(crate) fn to_webhooks(shared: &'a Shared, attributes: &'a Attributes<'a>) -> Option<Self> {
        let request = Self::new(shared, attributes);
        (!request.is_one_of(&POLICIES) && !request.is_one_of(&WEBHOOKS)).then_some(request)
    }

    /// `None` if no policy is asked about it.
    pub(crate) fn to_policies(shared: &'a Shared, attributes: &'a Attributes<'a>) -> Option<Self> {
        let request = Self::new(shared, attributes);
        let resource = (request.resource.group.as_str(), request.resource.resource.as_str());
        (!request.is_one_of(&POLICIES) && !REVIEWS.contains(&resource)).then_some(request)
    }

    fn is_one_of(&self, kinds: &[&str]) -> bool {
        self.kind.group == "admissionregistration.k8s.io" && kinds.contains(&self.kind.kind.as_str())
    }

    fn new(shared: &'a Shared, attributes: &'a Attributes<'a>) -> Self {
        let Attributes { resource, subresource, namespace, name, .. } = *attributes;
        let subresource = resource.subresource(subresource);
        let kind = subresource.map_or_else(|| resource.kind(), |subresource| subresource.kind.clone());
        let resource = resource.version.with_resource(&resource.names.plural);
        let is_namespace = resource.group.is_empty() && resource.resource == "namespaces";
        let namespace = if is_namespace { name } else { namespace };
        Self { shared, attributes, resource, kind, namespace, equivalents: OnceLock::new() }
    }

    pub(crate) fn matched(&self) -> Matched {
        Matched { resource: self.resource.clone(), kind: self.kind.clone() }
    }

    pub(crate) fn subject<'s>(&'s self, resource: &'s GroupVersionResource) -> Subject<'s> {
        Subject {
            resource,
            subresource: self.attributes.subresource,
            namespace: self.namespace,
            name: self.attributes.name,
            operation: self.attributes.operation,
        }
    }

    /// What is counted under a name in one of the steps of admission.
    pub(crate) fn step<'s>(&self, name: &'s str, step: &'static str) -> AdmissionStep<'s> {
        AdmissionStep { name, step, operation: operation_name(self.attributes.operation) }
    }

    /// Where that is counted.
    pub(crate) fn metrics(&self) -> &'a AdmissionMetrics {
        self.shared.metrics.admission()
    }

    pub(crate) fn group_resource(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The same resource in other versions or groups: what is stored at the same place, and has the subresource.
    pub(crate) fn equivalents(&self) -> &[Arc<Resource>] {
        self.equivalents.get_or_init(|| {
            let Some(storage) = self.attributes.resource.storage() else { return Vec::new() };
            let subresource = self.attributes.subresource;
            let mut all = self.shared.resources();
            all.retain(|other| {
                other.storage().is_some_and(|other| other.prefix == storage.prefix)
                    && (subresource.is_empty() || other.subresource(subresource).is_some())
                    && other.version != self.attributes.resource.version
            });
            all
        })
    }

    /// What the request is as one for an equivalent resource.
    pub(crate) fn as_equivalent(&self, resource: &Resource) -> Matched {
        let subresource = resource.subresource(self.attributes.subresource);
        let kind = subresource.map_or_else(|| resource.kind(), |subresource| subresource.kind.clone());
        Matched { resource: resource.version.with_resource(&resource.names.plural), kind }
    }

    /// An object of the request as the kind that somebody wants to see.
    ///
    /// # Errors
    ///
    /// 500, if it cannot be converted.
    pub(crate) fn convert(&self, object: Option<&Object>, kind: &GroupVersionKind) -> Result<Value, Status> {
        let Some(object) = object else { return Ok(Value::Null) };
        let mut object = object.clone();
        self.convert_in_place(&mut object, kind)?;
        Ok(Value::Object(object))
    }

    pub(crate) fn convert_in_place(
        &self,
        object: &mut Object,
        kind: &GroupVersionKind,
    ) -> Result<(), Status> {
        let version = kind.group_version();
        let Some(storage) = self.attributes.resource.storage() else { return Ok(()) };
        let is_same = text(object, "apiVersion") == version.to_string();
        // What is of another kind than the resource, as a Scale, has one version.
        if is_same || text(object, "kind") != storage.kind {
            return Ok(());
        }
        storage.converter.convert(object, &version).map_err(Status::internal_error)
    }

    /// Both objects of the request as the kind that somebody wants to see.
    ///
    /// # Errors
    ///
    /// 500, if they cannot be converted.
    pub(crate) fn versioned(
        &self,
        object: Option<&Object>,
        kind: &GroupVersionKind,
    ) -> Result<Versioned, Status> {
        Ok(Versioned { object: self.convert(object, kind)?, old: self.convert(self.attributes.old, kind)? })
    }

    /// Does something with the resource in the version that somebody saw it in.
    pub(crate) fn with_resource<T>(&self, matched: &Matched, with: impl FnOnce(&Resource) -> T) -> T {
        let version = matched.resource.group_version();
        match self.equivalents().iter().find(|resource| resource.version == version) {
            Some(resource) => with(resource),
            None => with(self.attributes.resource),
        }
    }

    /// The namespace that the request is in, for expressions; null for none. A Namespace is in none.
    ///
    /// # Errors
    ///
    /// 404 if there is no such namespace.
    pub(crate) async fn namespace_object(&self) -> Result<Value, Status> {
        let is_namespace = self.kind.group.is_empty() && self.kind.kind == "Namespace";
        match self.namespace.is_empty() || is_namespace {
            true => Ok(Value::Null),
            false => Ok(Value::Object(self.shared.namespace(self.namespace).await?)),
        }
    }

    /// The labels of the namespace that the request is in or about.
    ///
    /// # Errors
    ///
    /// 404 if there is no such namespace.
    pub(crate) async fn namespace_labels(&self, object: Option<&Object>) -> Result<Object, Status> {
        let Attributes { subresource, operation, .. } = *self.attributes;
        let writes = matches!(operation, Operation::Create | Operation::Update);
        let is_namespace = self.resource.resource == "namespaces" && subresource.is_empty() && writes;
        let found;
        let namespace = match object {
            // What is being written is what counts, not what is stored.
            Some(object) if is_namespace => object,
            _ => {
                found = self.shared.namespace(self.namespace).await?;
                &found
            }
        };
        let labels = member(namespace, "metadata").and_then(|metadata| member(metadata, "labels"));
        Ok(labels.cloned().unwrap_or_default())
    }

    /// The request without its objects: `request` of an AdmissionReview, and of expressions.
    pub(crate) fn describe(&self, matched: &Matched) -> Object {
        let Attributes { context, subresource, name, operation, .. } = *self.attributes;
        let kind = |kind: &GroupVersionKind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let resource = |of: &GroupVersionResource| json!({"group": of.group, "version": of.version, "resource": of.resource});
        let mut request = Object::from_iter([
            ("kind".to_owned(), kind(&matched.kind)),
            ("resource".to_owned(), resource(&matched.resource)),
            ("requestKind".to_owned(), kind(&self.kind)),
            ("requestResource".to_owned(), resource(&self.resource)),
            ("operation".to_owned(), operation_name(operation).into()),
            ("userInfo".to_owned(), self.user_info()),
            ("dryRun".to_owned(), context.dry_run.into()),
            ("options".to_owned(), self.options()),
        ]);
        let texts = [
            ("subResource", subresource),
            ("requestSubResource", subresource),
            ("name", name),
            ("namespace", self.namespace),
        ];
        for (field, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
            request.insert(field.to_owned(), value.into());
        }
        request
    }

    fn user_info(&self) -> Value {
        let user = &self.attributes.context.user;
        let mut info = Object::from_iter([("username".to_owned(), user.name.as_str().into())]);
        if !user.uid.is_empty() {
            info.insert("uid".to_owned(), user.uid.as_str().into());
        }
        if !user.groups.is_empty() {
            info.insert("groups".to_owned(), user.groups.clone().into());
        }
        if !user.extra.is_empty() {
            info.insert("extra".to_owned(), json!(user.extra));
        }
        Value::Object(info)
    }

    fn options(&self) -> Value {
        let kind = match self.attributes.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            Operation::Connect => return Value::Null,
        };
        let mut options = self.attributes.context.options.clone();
        options.insert("kind".to_owned(), kind.into());
        options.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        Value::Object(options)
    }
}
