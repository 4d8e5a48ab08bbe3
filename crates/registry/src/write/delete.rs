use concord_merge::apply::Time;
use concord_meta::{
    Status,
    objectmeta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN},
    options::{DeleteOptions, PropagationPolicy},
};
use concord_replica::Entry;

use super::{
    DeleteOutcome,
    attempt::{Attempts, Decision, Live},
    create::stored,
};
use crate::{
    Attributes, Context, DefaultDeletion, Guard, Item, Object, ObjectName, Operation, Registry, Resource,
    Storage, metadata, metadata_mut,
};

/// What a delete does to the object it found.
enum Plan {
    /// Nothing: it is being deleted already.
    Wait,
    /// It is marked, and goes away later.
    Mark(Box<Object>),
    /// It goes away now. Where objects have time to end, it says that it had none.
    Remove(Option<Box<Object>>),
}

struct Deletion<'a> {
    context: &'a Context,
    storage: &'a Storage,
    name: ObjectName<'a>,
    options: &'a DeleteOptions,
    /// Whether admission is asked about it.
    asks: bool,
}

impl Registry {
    /// Deletes an object, or begins to.
    ///
    /// # Errors
    ///
    /// Every refusal of a delete, as a Status.
    pub async fn delete(
        &self,
        context: &Context,
        resource: &Resource,
        name: ObjectName<'_>,
        options: &DeleteOptions,
    ) -> Result<DeleteOutcome, Status> {
        let storage = stored(resource)?;
        if let Some(why) = storage.strategy.forbid_delete(name.name) {
            return Err(Status::forbidden(&storage.resource, name.name, why));
        }
        self.delete_one(context, resource, name, options).await
    }

    /// Deletes an object of a collection. As upstream, nobody asks there which objects have to stay.
    pub(super) async fn delete_one(
        &self,
        context: &Context,
        resource: &Resource,
        name: ObjectName<'_>,
        options: &DeleteOptions,
    ) -> Result<DeleteOutcome, Status> {
        let storage = stored(resource)?;
        if options.propagation_policy.is_none()
            && options.orphan_dependents.is_none()
            && let Some(warning) = storage.strategy.deletion_warning()
        {
            context.warn(warning);
        }
        self.carry_out_deletion(&Deletion { context, storage, name, options, asks: true }, resource).await
    }

    /// Deletes an object in the course of a request that admission has let pass, such as an eviction: it is not asked about
    /// the delete as well.
    ///
    /// # Errors
    ///
    /// As [`Registry::delete`].
    pub async fn delete_admitted(
        &self,
        context: &Context,
        resource: &Resource,
        name: ObjectName<'_>,
        options: &DeleteOptions,
    ) -> Result<DeleteOutcome, Status> {
        let storage = stored(resource)?;
        self.carry_out_deletion(&Deletion { context, storage, name, options, asks: false }, resource).await
    }

    async fn carry_out_deletion(
        &self,
        deletion: &Deletion<'_>,
        resource: &Resource,
    ) -> Result<DeleteOutcome, Status> {
        let Deletion { storage, name, .. } = *deletion;
        let dry_run = deletion.context.dry_run || deletion.options.dry_run;
        let mut attempts = Attempts::new(self, storage, storage.key(name), dry_run);
        loop {
            let live = attempts.live().await?;
            let (entry, object, plan, guard) = match self.plan_delete(deletion, resource, &live).await {
                Ok(planned) => planned,
                Err(status) => {
                    attempts.refused(status)?;
                    continue;
                }
            };
            let outcome = self.carry_out_delete(deletion, &mut attempts, (&entry, &object), plan, guard);
            if let Some(outcome) = outcome.await? {
                return Ok(outcome);
            }
        }
    }

    async fn plan_delete(
        &self,
        deletion: &Deletion<'_>,
        resource: &Resource,
        live: &Live,
    ) -> Result<(Entry, Object, Plan, Guard), Status> {
        let Deletion { context, storage, name, .. } = *deletion;
        let Some(entry) = &live.entry else { return Err(Status::not_found(&storage.resource, name.name)) };
        let object = storage.object_to_delete(&Item::from(entry))?;
        deletion.check_preconditions(&object)?;
        let attributes = Attributes {
            context,
            resource,
            subresource: "",
            namespace: name.namespace,
            name: name.name,
            named: true,
            operation: Operation::Delete,
            old: Some(&object),
        };
        let mut guard = self.guard(&attributes, None, &live.snapshot)?;
        if deletion.asks {
            for admission in &self.admission {
                admission.admit(&attributes, None).await?;
            }
            self.validate_admission(&attributes, None).await?;
        }
        let plan = deletion.plan(&object);
        if matches!(plan, Plan::Remove(_)) {
            guard.extend(self.removal(&attributes, &live.snapshot)?);
        }
        Ok((entry.clone(), object, plan, guard))
    }

    async fn carry_out_delete(
        &self,
        deletion: &Deletion<'_>,
        attempts: &mut Attempts<'_>,
        (entry, object): (&Entry, &Object),
        plan: Plan,
        guard: Guard,
    ) -> Result<Option<DeleteOutcome>, Status> {
        let dry_run = deletion.context.dry_run || deletion.options.dry_run;
        let item = Item::from(entry);
        match plan {
            Plan::Wait if attempts.must_look_again() => Ok(None),
            Plan::Wait => Ok(Some(DeleteOutcome::Pending(item))),
            Plan::Mark(mut marked) => {
                let value = deletion.storage.encode_deleted(&mut marked)?;
                let revision = match value == item.value || dry_run {
                    true => item.revision,
                    false => attempts.commit(Some(entry), Decision::Put(value.clone()), guard).await?,
                };
                let marked = revision.map(|revision| Item { value, revision: Some(revision), ..item });
                Ok(marked.map(DeleteOutcome::Pending))
            }
            Plan::Remove(marked) => {
                let marked = marked.map(|mut marked| deletion.storage.encode(&mut marked)).transpose()?;
                let revision = match dry_run {
                    true => item.revision,
                    false => attempts.commit(Some(entry), Decision::Delete, guard).await?,
                };
                let item = Item { value: marked.unwrap_or(item.value), ..item };
                Ok(revision.map(|revision| deletion.gone(object, Item { revision: Some(revision), ..item })))
            }
        }
    }
}

impl Deletion<'_> {
    fn check_preconditions(&self, object: &Object) -> Result<(), Status> {
        let (kind, name) = (self.storage.group_kind(), self.name.name);
        let (is, must) = (metadata(object), &self.options.preconditions);
        if let Some(uid) = must.uid.as_deref().filter(|uid| *uid != is.uid()) {
            return Err(Status::delete_uid_mismatch(&kind, name, uid, is.uid()));
        }
        let version = is.resource_version();
        if let Some(required) = must.resource_version.as_deref().filter(|required| *required != version) {
            return Err(Status::delete_resource_version_mismatch(&kind, name, required, version));
        }
        Ok(())
    }

    fn gone(&self, object: &Object, item: Item) -> DeleteOutcome {
        if self.storage.strategy.return_deleted_object() {
            return DeleteOutcome::GoneObject(item);
        }
        let is = metadata(object);
        DeleteOutcome::Gone(Box::new(Status::deleted(&self.storage.resource, is.name(), is.uid())))
    }

    /// What is to happen to the object.
    fn plan(&self, object: &Object) -> Plan {
        let is = metadata(object);
        let strategy = &self.storage.strategy;
        let graceful = strategy.graceful_deletion(object, self.options);
        if let (true, Some(_)) = (is.is_terminating(), graceful) {
            return self.shorten(object);
        }
        let mut marked = object.clone();
        self.set_finalizers(&mut marked);
        let held = !metadata(&marked).finalizers().is_empty() || strategy.is_held(&marked);
        match graceful.filter(|grace| *grace > 0) {
            Some(grace) => {
                self.mark(&mut marked, grace);
                Plan::Mark(Box::new(marked))
            }
            None if held => {
                self.mark(&mut marked, 0);
                Plan::Mark(Box::new(marked))
            }
            None if graceful.is_some() => {
                self.mark(&mut marked, 0);
                Plan::Remove(Some(Box::new(marked)))
            }
            None => Plan::Remove(None),
        }
    }

    /// A deletion under way can only be made shorter.
    fn shorten(&self, object: &Object) -> Plan {
        let is = metadata(object);
        let held = !is.finalizers().is_empty() || self.storage.strategy.is_held(object);
        let Some(current) = is.deletion_grace_period() else {
            return if held { Plan::Wait } else { Plan::Remove(None) };
        };
        let asked = self.options.grace_period_seconds.map(|asked| if asked < 0 { 1 } else { asked });
        match asked.filter(|asked| *asked < current) {
            None => Plan::Wait,
            Some(0) if !held => Plan::Remove(None),
            Some(asked) => {
                let mut marked = object.clone();
                let ends = is.deletion_timestamp().unwrap_or(self.context.now);
                let sooner = Time { unix: ends.unix.saturating_sub(current.saturating_sub(asked)) };
                let metadata = metadata_mut(&mut marked);
                metadata.insert("deletionTimestamp".to_owned(), sooner.to_string().into());
                metadata.insert("deletionGracePeriodSeconds".to_owned(), asked.into());
                Plan::Mark(Box::new(marked))
            }
        }
    }

    /// Marks the object as being deleted, to be gone after so many seconds.
    fn mark(&self, object: &mut Object, grace: i64) {
        let is = metadata(object);
        let (first, generation) = (!is.is_terminating(), is.generation());
        let ends = Time { unix: self.context.now.unix.saturating_add(grace) };
        let metadata = metadata_mut(object);
        if first {
            metadata.insert("deletionTimestamp".to_owned(), ends.to_string().into());
            if generation > 0 {
                metadata.insert("generation".to_owned(), generation.saturating_add(1).into());
            }
        }
        if !self.storage.strategy.has_own_deletion() {
            metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        }
        if first {
            self.storage.strategy.begin_deletion(object);
        }
    }

    /// What happens to dependents is said by finalizers, for the garbage collector.
    fn set_finalizers(&self, object: &mut Object) {
        let default = self.storage.strategy.default_deletion();
        if default == DefaultDeletion::Unsupported {
            return;
        }
        let is: Vec<String> = metadata(object).finalizers().into_iter().map(ToOwned::to_owned).collect();
        let has = |name: &str| is.iter().any(|finalizer| finalizer == name);
        let wanted = self.propagation().or_else(|| match () {
            () if has(FINALIZER_ORPHAN) => Some(PropagationPolicy::Orphan),
            () if has(FINALIZER_FOREGROUND) => Some(PropagationPolicy::Foreground),
            () if default == DefaultDeletion::Orphan => Some(PropagationPolicy::Orphan),
            () => None,
        });
        let wanted = match wanted {
            Some(PropagationPolicy::Orphan) => Some(FINALIZER_ORPHAN),
            Some(PropagationPolicy::Foreground) => Some(FINALIZER_FOREGROUND),
            Some(PropagationPolicy::Background) | None => None,
        };
        let mut finalizers: Vec<String> = is
            .iter()
            .filter(|name| ![FINALIZER_ORPHAN, FINALIZER_FOREGROUND].contains(&name.as_str()))
            .cloned()
            .collect();
        finalizers.extend(wanted.map(ToOwned::to_owned));
        let metadata = metadata_mut(object);
        match finalizers.is_empty() {
            true => drop(metadata.remove("finalizers")),
            false => drop(metadata.insert("finalizers".to_owned(), finalizers.into())),
        }
    }

    fn propagation(&self) -> Option<PropagationPolicy> {
        self.options.propagation_policy.or_else(|| {
            self.options.orphan_dependents.map(|orphan| match orphan {
                true => PropagationPolicy::Orphan,
                false => PropagationPolicy::Background,
            })
        })
    }
}
