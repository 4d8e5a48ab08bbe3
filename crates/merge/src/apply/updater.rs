//! The core of field ownership: what an update takes, and what an apply merges, prunes and conflicts with.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use super::{
    conflict::{Conflict, Conflicts},
    filter::ResetFields,
    managed::{Managed, ManagerId, Owned},
    versions::{self, TypeError, Typed, Versions},
};
use crate::{
    fields::FieldSet,
    typed::{Comparison, compare, merge, reconcile, remove, set_of, with_named_fields},
};

#[derive(Debug, thiserror::Error)]
pub(super) enum UpdaterError {
    #[error(transparent)]
    Conflicts(Conflicts),
    #[error("{0}")]
    Failed(String),
}

type Result<T, E = UpdaterError> = std::result::Result<T, E>;

fn failed(what: &str) -> impl Fn(&dyn std::fmt::Display) -> UpdaterError + '_ {
    move |why| UpdaterError::Failed(format!("failed to {what}: {why}"))
}

pub(super) struct Updater<'a, V: Versions> {
    pub(super) versions: &'a V,
    pub(super) reset_fields: &'a ResetFields,
    /// The version of the request.
    pub(super) api_version: &'a str,
}

impl<V: Versions> Updater<'_, V> {
    /// Takes what changed from its owners, and returns it.
    pub(super) fn update(
        &self,
        live: &Typed<'_, V::Type>,
        new: &Typed<'_, V::Type>,
        managed: &mut Managed,
    ) -> Result<FieldSet> {
        self.reconcile(live, managed)?;
        let comparison = self.settle(live, new, managed, None, true)?;
        Ok(comparison.changed())
    }

    /// The same if nothing changed.
    pub(super) fn update_nothing(&self, live: &Typed<'_, V::Type>, managed: &mut Managed) -> Result<()> {
        self.reconcile(live, managed)?;
        managed.managers.retain(|_, owned| !owned.fields.is_empty());
        Ok(())
    }

    /// Merges a configuration into the live object; the fields it names become the manager's. Returns the
    /// object, or `None` if it did not change.
    pub(super) fn apply(
        &self,
        live: &Typed<'_, V::Type>,
        config: &Typed<'_, V::Type>,
        managed: &mut Managed,
        manager: &ManagerId,
        force: bool,
    ) -> Result<Option<Value>> {
        self.reconcile(live, managed)?;
        let merged =
            merge(&live.object, &config.object, &live.ty).map_err(|why| failed("merge config")(&why))?;
        let fields = self.reset_fields.filter(self.api_version, &set_of(&config.object, &config.ty));
        let owned = Owned { fields, api_version: self.api_version.to_owned(), time: None };
        let last = managed.managers.insert(manager.clone(), owned);
        if let (Some(owned), Some(last)) = (managed.managers.get_mut(manager), &last) {
            owned.time = last.time;
        }
        let mut new = Typed { object: Cow::Owned(merged), ty: live.ty.clone() };
        if let Some(last) = last.filter(|last| !last.fields.is_empty()) {
            new = self.prune(new, managed, &last).map_err(|why| failed("prune fields")(&why))?;
        }
        self.settle(live, &new, managed, Some(manager), force)?;
        Ok((!crate::values::equal(&live.object, &new.object)).then(|| new.object.into_owned()))
    }

    /// Brings every manager's set under today's schema, and forgets managers of versions that are gone.
    fn reconcile(&self, live: &Typed<'_, V::Type>, managed: &mut Managed) -> Result<()> {
        let mut types: BTreeMap<String, Option<V::Type>> = BTreeMap::new();
        for version in managed.managers.values().map(|owned| &owned.api_version) {
            if !types.contains_key(version) {
                types.insert(version.clone(), self.type_at(live, version)?);
            }
        }
        managed.managers.retain(|_, owned| match types.get(&owned.api_version) {
            Some(Some(ty)) => {
                owned.fields = reconcile(&owned.fields, ty);
                true
            }
            _ => false,
        });
        Ok(())
    }

    fn type_at(&self, live: &Typed<'_, V::Type>, version: &str) -> Result<Option<V::Type>> {
        match versions::convert(self.versions, live, version) {
            Ok(typed) => Ok(Some(typed.ty)),
            Err(error) if error.is_missing_version() => Ok(None),
            Err(error) => Err(UpdaterError::Failed(error.to_string())),
        }
    }

    /// Compares old and new in every manager's version; what the change sets leaves its owners (or conflicts),
    /// what it removes leaves everybody. Managers without fields go. Returns the difference in the version of
    /// the request.
    fn settle(
        &self,
        old: &Typed<'_, V::Type>,
        new: &Typed<'_, V::Type>,
        managed: &mut Managed,
        applier: Option<&ManagerId>,
        force: bool,
    ) -> Result<Comparison> {
        let comparison =
            self.compare(old, new, self.api_version).map_err(|why| failed("compare objects")(&why))?;
        let mut comparisons = BTreeMap::from([(self.api_version.to_owned(), comparison.clone())]);
        let mut conflicts = Vec::new();
        for (id, owned) in managed.managers.iter().filter(|(id, _)| Some(*id) != applier) {
            if !comparisons.contains_key(&owned.api_version) {
                let found = self.compare(old, new, &owned.api_version);
                let found = found.map_err(|why| failed("compare objects")(&why))?;
                comparisons.insert(owned.api_version.clone(), found);
            }
            let taken = owned.fields.intersection(&comparisons[&owned.api_version].changed());
            conflicts.extend(taken.paths().into_iter().map(|path| Conflict { manager: id.clone(), path }));
        }
        if !force && !conflicts.is_empty() {
            return Err(UpdaterError::Conflicts(Conflicts(conflicts)));
        }
        managed.managers.retain(|id, owned| {
            if let Some(comparison) = comparisons.get(&owned.api_version).filter(|_| Some(id) != applier) {
                owned.fields = owned.fields.difference(&comparison.changed()).difference(&comparison.removed);
            }
            !owned.fields.is_empty()
        });
        Ok(comparison)
    }

    fn compare(
        &self,
        old: &Typed<'_, V::Type>,
        new: &Typed<'_, V::Type>,
        version: &str,
    ) -> std::result::Result<Comparison, TypeError> {
        let old = versions::convert(self.versions, old, version)?;
        let new = versions::convert(self.versions, new, version)?;
        let comparison = compare(&old.object, &new.object, &old.ty)?;
        Ok(comparison.filtered(|set| self.reset_fields.filter(version, set)))
    }

    /// Removes what the manager applied last time, does not apply now, and nobody else owns.
    fn prune(
        &self,
        merged: Typed<'static, V::Type>,
        managed: &Managed,
        last: &Owned,
    ) -> std::result::Result<Typed<'static, V::Type>, TypeError> {
        let at_last = match versions::convert(self.versions, &merged, &last.api_version) {
            Err(error) if error.is_missing_version() => return Ok(merged),
            other => other?,
        };
        let last_fields = with_named_fields(&last.fields, &at_last.ty);
        let pruned = cut(&at_last, &last_fields);
        let pruned = self.add_back_owned(&at_last, pruned, managed, &last.api_version)?;
        let pruned = versions::convert(self.versions, &pruned, &last.api_version)?;
        // Only what the manager itself had applied goes; the rest had no owner and stays.
        let gone = named_set(&at_last).difference(&named_set(&pruned)).intersection(&last_fields);
        let kept = cut(&at_last, &gone);
        let kept_here = versions::convert(self.versions, &kept, self.api_version)?;
        Ok(kept_here.into_owned())
    }

    /// Puts back what some manager owns, in each manager's version. The version of the pruned object goes first:
    /// conversion to the others may need what was pruned.
    fn add_back_owned(
        &self,
        merged: &Typed<'_, V::Type>,
        mut pruned: Typed<'static, V::Type>,
        managed: &Managed,
        first: &str,
    ) -> std::result::Result<Typed<'static, V::Type>, TypeError> {
        let mut owned_at: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owned in managed.managers.values() {
            let all = owned_at.entry(&owned.api_version).or_default();
            *all = all.union(&owned.fields);
        }
        let at_first = owned_at.remove(first).map(|owned| (first, owned));
        for (version, owned) in at_first.into_iter().chain(owned_at) {
            let converted = versions::convert(self.versions, merged, version)
                .and_then(|merged| Ok((merged, versions::convert(self.versions, &pruned, version)?)));
            let (merged, kept) = match converted {
                Err(error) if error.is_missing_version() => continue,
                other => other?,
            };
            let keep = named_set(&kept).union(&with_named_fields(&owned, &merged.ty));
            pruned = cut(&merged, &named_set(&merged).difference(&keep));
        }
        Ok(pruned)
    }
}

fn named_set<T: crate::typed::Type>(typed: &Typed<'_, T>) -> FieldSet {
    with_named_fields(&set_of(&typed.object, &typed.ty), &typed.ty)
}

fn cut<T: crate::typed::Type>(typed: &Typed<'_, T>, set: &FieldSet) -> Typed<'static, T> {
    let object =
        remove(&typed.object, set, &typed.ty).unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    Typed { object: Cow::Owned(object), ty: typed.ty.clone() }
}
