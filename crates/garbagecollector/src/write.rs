//! The writes of the garbage collector, as upstream's makes them.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use concord_codec::{FieldValidation, PatchType};
use concord_merge::apply::Time;
use concord_meta::{
    Status, UserInfo,
    options::{DeleteOptions, Preconditions, PropagationPolicy},
};
use concord_registry::{
    Condition, Context, Object, ObjectName, Part, PatchRequest, Registry, Resource, metadata,
};
use serde_json::{Value, json};

use crate::{
    GarbageCollector,
    look::{Missing, Seen},
};

/// Who does it.
const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const GROUPS: [&str; 3] =
    ["system:serviceaccounts", "system:serviceaccounts:kube-system", UserInfo::AUTHENTICATED];
/// Who owns the fields that it writes.
const MANAGER: &str = "kube-controller-manager";
/// Who reports events.
const COMPONENT: &str = "garbage-collector-controller";

/// Changes one object.
pub(crate) struct Writer<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) resource: &'a Resource,
    pub(crate) name: ObjectName<'a>,
    pub(crate) seen: &'a Seen,
}

impl Writer<'_> {
    pub(crate) async fn delete(
        &self,
        policy: PropagationPolicy,
        condition: Arc<dyn Condition>,
    ) -> Result<(), Status> {
        let uid = Some(self.seen.uid.clone());
        // That the object is what it was is compared when the delete is committed.
        let options = DeleteOptions {
            preconditions: Preconditions { uid, resource_version: None },
            propagation_policy: Some(policy),
            ..DeleteOptions::default()
        };
        let mut context = context(Some(condition));
        let shown = json!({"preconditions": {"uid": self.seen.uid}, "propagationPolicy": written(policy)});
        if let Value::Object(shown) = shown {
            context.options = shown;
        }
        let delete = self.registry.delete(&context, self.resource, self.name, &options);
        Box::pin(delete).await.map(drop)
    }

    /// Removes owner references.
    pub(crate) async fn disown(
        &self,
        references: &[usize],
        condition: Arc<dyn Condition>,
    ) -> Result<(), Status> {
        let kept = self.references()?.into_iter().enumerate().filter(|(at, _)| !references.contains(at));
        let kept: Vec<Value> = kept.map(|(_, reference)| reference).collect();
        self.patch(json!({"ownerReferences": kept}), condition).await
    }

    /// Says that no owner has to wait for the object.
    pub(crate) async fn unblock(&self, condition: Arc<dyn Condition>) -> Result<(), Status> {
        let mut references = self.references()?;
        for reference in references.iter_mut().filter_map(Value::as_object_mut) {
            reference.insert("blockOwnerDeletion".to_owned(), false.into());
        }
        self.patch(json!({"ownerReferences": references}), condition).await
    }

    /// Removes a finalizer.
    pub(crate) async fn release(&self, finalizer: &str, condition: Arc<dyn Condition>) -> Result<(), Status> {
        let object = self.resource.object(&self.seen.item)?;
        let rest: Vec<&str> =
            metadata(&object).finalizers().into_iter().filter(|name| *name != finalizer).collect();
        self.patch(json!({"finalizers": rest}), condition).await
    }

    fn references(&self) -> Result<Vec<Value>, Status> {
        let object = self.resource.object(&self.seen.item)?;
        let references = metadata(&object).get("ownerReferences").and_then(Value::as_array);
        Ok(references.cloned().unwrap_or_default())
    }

    /// Changes the metadata of the object if it is still what was looked at.
    async fn patch(&self, mut change: Value, condition: Arc<dyn Condition>) -> Result<(), Status> {
        change["uid"] = self.seen.uid.as_str().into();
        change["resourceVersion"] = self.seen.item.revision.unwrap_or_default().to_string().into();
        let body = json!({"metadata": change}).to_string();
        let request = PatchRequest {
            name: self.name,
            part: Part::Main,
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            force: false,
            validation: FieldValidation::Ignore,
        };
        let context = context(Some(condition));
        Box::pin(self.registry.patch(&context, self.resource, request)).await.map(drop)
    }
}

fn written(policy: PropagationPolicy) -> &'static str {
    match policy {
        PropagationPolicy::Orphan => "Orphan",
        PropagationPolicy::Background => "Background",
        PropagationPolicy::Foreground => "Foreground",
    }
}

fn context(condition: Option<Arc<dyn Condition>>) -> Context {
    let user = UserInfo {
        name: USER.to_owned(),
        groups: GROUPS.iter().map(|group| (*group).to_owned()).collect(),
        ..UserInfo::default()
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time { unix: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) };
    let mut context = Context::new(user, now);
    MANAGER.clone_into(&mut context.manager);
    context.condition = condition;
    context
}

/// Tells of a reference to an owner in another namespace. That nobody could be told is no reason to do nothing.
pub(crate) async fn tell_of_stray(
    collector: &GarbageCollector,
    resource: &Resource,
    name: ObjectName<'_>,
    (seen, stray): (&Seen, &Missing),
) {
    let Some(events) = collector.kinds.of_kind("v1", "Event") else { return };
    let context = context(None);
    let event = event(resource, name, seen, stray, context.now);
    let namespace = if name.namespace.is_empty() { "default" } else { name.namespace };
    let created = collector.registry.create(&context, &events, namespace, event);
    if let Err(error) = Box::pin(created).await {
        tracing::warn!(namespace, name = name.name, %error, "An event could not be written.");
    }
}

fn event(resource: &Resource, name: ObjectName<'_>, seen: &Seen, stray: &Missing, now: Time) -> Object {
    let ObjectName { namespace, name } = name;
    let Missing { api_version, kind, name: owner, uid } = stray;
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let place = if namespace.is_empty() { "default" } else { namespace };
    let reference = format!("[{api_version}/{kind}, namespace: {namespace}, name: {owner}, uid: {uid}]");
    let event = json!({
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": format!("{name}.{nanoseconds:x}"), "namespace": place},
        "involvedObject": {
            "kind": resource.names.kind,
            "namespace": namespace,
            "name": name,
            "uid": seen.uid,
            "apiVersion": resource.version.to_string(),
        },
        "reason": "OwnerRefInvalidNamespace",
        "message": format!("ownerRef {reference} does not exist in namespace {namespace:?}"),
        "source": {"component": COMPONENT},
        "firstTimestamp": now.to_string(),
        "lastTimestamp": now.to_string(),
        "count": 1,
        "type": "Warning",
        "eventTime": null,
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    });
    match event {
        Value::Object(event) => event,
        _ => Object::new(),
    }
}
