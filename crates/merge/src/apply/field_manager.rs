use std::borrow::Cow;

use concord_meta::GroupVersionKind;
use serde_json::Value;

use super::{
    conflict::Conflicts,
    filter::ResetFields,
    last_applied,
    managed::{Managed, ManagerId, Operation, Owned},
    object,
    time::Time,
    updater::{Updater, UpdaterError},
    versions::{self, Typed, Versions},
};
use crate::{
    answer::Answer,
    fields::{FieldSet, Path},
    typed::Duplicates,
};

/// What an object says it is. An apiVersion that is none reads as empty, as upstream has it.
fn kind_of(object: &Value) -> GroupVersionKind {
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    GroupVersionKind::from_api_version(text("apiVersion"), text("kind"))
        .unwrap_or_else(|_| GroupVersionKind::new("", "", text("kind")))
}

/// Why an apply was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The configuration is of another type than the endpoint.
    #[error("invalid object type: {0}")]
    InvalidObjectType(GroupVersionKind),
    /// The configuration says who owns what.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsSet,
    /// Others own what the configuration would change.
    #[error(transparent)]
    Conflicts(Conflicts),
    /// The configuration or the live object does not fit the schema, or conversion failed.
    #[error("{0}")]
    Failed(String),
}

impl ApplyError {
    /// What the server answers.
    pub fn answer(&self) -> Answer {
        match self {
            Self::InvalidObjectType(_) | Self::ManagedFieldsSet => Answer::BadRequest,
            Self::Conflicts(_) => Answer::Conflict,
            Self::Failed(_) => Answer::Untyped,
        }
    }

    /// The message of the Status.
    pub fn message(&self) -> String {
        self.answer().message(self)
    }
}

impl From<UpdaterError> for ApplyError {
    fn from(error: UpdaterError) -> Self {
        match error {
            UpdaterError::Conflicts(conflicts) => Self::Conflicts(conflicts),
            UpdaterError::Failed(why) => Self::Failed(why),
        }
    }
}

/// An apply patch.
#[derive(Clone, Copy, Debug)]
pub struct ApplyRequest<'a> {
    /// The configuration.
    pub config: &'a Value,
    /// The fieldManager.
    pub manager: &'a str,
    /// Whether to take what others own.
    pub force: bool,
    /// The time of the request.
    pub now: Time,
}

/// Keeps managedFields for one endpoint: a kind in one version, or one of its subresources.
#[derive(Clone, Debug)]
pub struct FieldManager<V> {
    /// What the endpoint serves.
    pub kind: GroupVersionKind,
    /// The subresource, or empty.
    pub subresource: String,
    /// The schema of the kind.
    pub versions: V,
    /// What the endpoint does not take from clients.
    pub reset_fields: ResetFields,
}

const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Never recorded: the server sets these, or everybody must send them.
const UNTRACKED: [&[&str]; 12] = [
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

fn tracked(set: &FieldSet) -> FieldSet {
    set.difference(&UNTRACKED.iter().map(|path| Path::of_fields(path.iter().copied())).collect())
}

impl<V: Versions> FieldManager<V> {
    /// The new object with managedFields that record what the manager changed. `live` is `None` on create.
    ///
    /// If ownership cannot be computed the live object's record is kept, so that a broken conversion webhook
    /// does not lose it.
    pub fn update(&self, live: Option<&Value>, new: Value, manager: &str, now: Time) -> Value {
        let entries = self.entries_of_update(live, &new, manager, now).unwrap_or_else(|_| {
            live.map(object::managed_fields).filter(|entries| !entries.is_null()).cloned()
        });
        let mut object = new;
        object::set_managed_fields(&mut object, entries);
        object
    }

    fn entries_of_update(
        &self,
        live: Option<&Value>,
        new: &Value,
        manager: &str,
        now: Time,
    ) -> Result<Option<Value>, String> {
        let mut managed = self.managed_of(live, new);
        // An object that was stored without managers is not tracked until somebody applies to it.
        let is_untracked =
            managed.managers.is_empty() && live.is_some_and(|live| !object::text(live, "uid").is_empty());
        match live {
            _ if is_untracked => {}
            Some(live) if live == new => self.track_nothing(new, &mut managed)?,
            _ => {
                let new = object::cow_without_managed_fields(new);
                let live = match live {
                    Some(live) => object::cow_without_managed_fields(live),
                    None => Cow::Owned(self.versions.empty()),
                };
                self.track_update(&live, &new, &mut managed, manager, now)?;
            }
        }
        Ok(managed.encode())
    }

    /// The managers before an update. Clients may set managedFields, or reset them with `[]` or `[{}]`; one that
    /// drops or garbles them changes nothing.
    fn managed_of(&self, live: Option<&Value>, new: &Value) -> Managed {
        let of_live =
            || live.and_then(|live| Managed::decode(object::managed_fields(live)).ok()).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        match object::managed_fields(new) {
            Value::Array(entries) if entries.is_empty() => Managed::default(),
            Value::Array(entries) if matches!(entries.as_slice(), [Value::Object(entry)] if entry.is_empty()) => {
                Managed::default()
            }
            entries => match Managed::decode(entries) {
                Ok(managed) if !managed.managers.is_empty() => managed,
                _ => of_live(),
            },
        }
    }

    /// What an update that changes nothing makes of the managers: what it always does, without looking for differences.
    fn track_nothing(&self, object: &Value, managed: &mut Managed) -> Result<(), String> {
        let object = object::cow_without_managed_fields(object);
        let object = self.typed("convert object", "to smd typed", &object, Duplicates::Allowed)?;
        let tracked = self.updater(&self.api_version()).update_nothing(&object, managed);
        tracked.map_err(|error| format!("failed to update ManagedFields: {error}"))?;
        managed.cap();
        Ok(())
    }

    fn track_update(
        &self,
        live: &Value,
        new: &Value,
        managed: &mut Managed,
        manager: &str,
        now: Time,
    ) -> Result<(), String> {
        let new = self.typed("convert new object", "to smd typed", new, Duplicates::Allowed)?;
        let live = self.typed("convert live object", "to smd typed", live, Duplicates::Allowed)?;
        let api_version = self.api_version();
        let changed = self.updater(&api_version).update(&live, &new, managed);
        let changed = tracked(&changed.map_err(|error| format!("failed to update ManagedFields: {error}"))?);
        if !changed.is_empty() {
            let id = self.manager_id(manager, Operation::Update);
            let fresh = || Owned { fields: FieldSet::new(), api_version, time: None };
            let owned = managed.managers.entry(id).or_insert_with(fresh);
            owned.fields = owned.fields.union(&changed);
            owned.time = Some(now);
        }
        managed.cap();
        Ok(())
    }

    /// The live object with a configuration applied; `live` is `None` if it does not exist yet. Defaults are
    /// not applied.
    pub fn apply(&self, live: Option<&Value>, request: ApplyRequest<'_>) -> Result<Value, ApplyError> {
        let kind = kind_of(request.config);
        if kind != self.kind {
            return Err(ApplyError::InvalidObjectType(kind));
        }
        if object::managed_fields(request.config).is_array() {
            return Err(ApplyError::ManagedFieldsSet);
        }
        let live = live.cloned().unwrap_or_else(|| self.versions.empty());
        let managed = Managed::decode(object::managed_fields(&live))
            .map_err(|error| ApplyError::Failed(format!("failed to decode managed fields: {error}")))?;
        let live = object::without_managed_fields(live);
        let (mut object, managed) = match self.apply_once(&live, &managed, request) {
            Err(ApplyError::Conflicts(conflicts)) => {
                last_applied::resolve(self, &live, request, conflicts)?;
                self.apply_once(&live, &managed, ApplyRequest { force: true, ..request })?
            }
            other => other?,
        };
        last_applied::refresh(&mut object, request);
        object::set_managed_fields(&mut object, managed.encode());
        Ok(object)
    }

    fn apply_once(
        &self,
        live: &Value,
        managed: &Managed,
        request: ApplyRequest<'_>,
    ) -> Result<(Value, Managed), ApplyError> {
        let mut managed = managed.clone();
        if managed.managers.is_empty() {
            let empty = self.versions.empty();
            self.track_update(&empty, live, &mut managed, BEFORE_FIRST_APPLY, request.now).map_err(
                |why| ApplyError::Failed(format!("failed to create manager for existing fields: {why}")),
            )?;
        }
        let config = self
            .typed("create typed patch object", "", request.config, Duplicates::Refused)
            .map_err(ApplyError::Failed)?;
        let live = self
            .typed("create typed live object", "", live, Duplicates::Allowed)
            .map_err(ApplyError::Failed)?;
        let id = self.manager_id(request.manager, Operation::Apply);
        let api_version = self.api_version();
        let changed = self.updater(&api_version).apply(&live, &config, &mut managed, &id, request.force)?;
        if let Some(owned) = managed.managers.get_mut(&id) {
            owned.fields = tracked(&owned.fields);
            if changed.is_some() {
                owned.time = Some(request.now);
            }
        }
        managed.managers.retain(|_, owned| !owned.fields.is_empty());
        Ok((changed.unwrap_or_else(|| live.object.into_owned()), managed))
    }

    fn api_version(&self) -> String {
        self.kind.group_version().to_string()
    }

    fn updater<'a>(&'a self, api_version: &'a str) -> Updater<'a, V> {
        Updater { versions: &self.versions, reset_fields: &self.reset_fields, api_version }
    }

    pub(super) fn typed<'a>(
        &self,
        what: &str,
        to: &str,
        object: &'a Value,
        duplicates: Duplicates,
    ) -> Result<Typed<'a, V::Type>, String> {
        self.typed_object(object, duplicates).map_err(|why| {
            let (namespace, name) = (object::text(object, "namespace"), object::text(object, "name"));
            let (kind, space) = (kind_of(object), if to.is_empty() { "" } else { " " });
            format!("failed to {what} ({namespace}/{name}; {kind}){space}{to}: {why}")
        })
    }

    fn typed_object<'a>(
        &self,
        object: &'a Value,
        duplicates: Duplicates,
    ) -> Result<Typed<'a, V::Type>, versions::TypeError> {
        versions::typed(&self.versions, Cow::Borrowed(object), &self.api_version(), duplicates)
    }

    fn manager_id(&self, manager: &str, operation: Operation) -> ManagerId {
        ManagerId {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: if operation == Operation::Apply { String::new() } else { self.api_version() },
            subresource: self.subresource.clone(),
        }
    }
}
