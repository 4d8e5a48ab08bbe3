//! Where a watch starts.

use std::{collections::VecDeque, sync::Arc};

use concord_meta::{
    ResourceVersion, Status,
    options::{ListOptions, ReadAt},
    parse_resource_version,
};
use concord_replica::{Entry, Error, Scope, Subscription};
use concord_store::Revision;

use super::{Watch, WatchEnd, WatchRequest};
use crate::{Registry, Selection, Storage, failure};

enum Start {
    /// With the state not older than that.
    State(ReadAt),
    /// With what comes now.
    Now,
    /// With what comes after a revision.
    After(Revision),
}

impl Start {
    fn of(options: &ListOptions) -> Result<Self, Status> {
        let version = parse_resource_version(&options.resource_version)
            .map_err(|error| Status::untyped(error.to_string()))?;
        Ok(match (version, options.send_initial_events) {
            (ResourceVersion::Unset, Some(true)) => Self::State(ReadAt::MostRecent),
            (ResourceVersion::Any, Some(true)) => Self::State(ReadAt::Any),
            (ResourceVersion::At(revision), Some(true)) => Self::State(ReadAt::NotOlderThan(revision)),
            (ResourceVersion::At(revision), _) => Self::After(revision),
            (ResourceVersion::Unset | ResourceVersion::Any, _) => Self::Now,
        })
    }
}

impl Registry {
    /// The changes of a collection. A state that is too old or not here yet is not an error of the request: the
    /// watch begins, and ends with it.
    ///
    /// # Errors
    ///
    /// 400 for a selector that the kind does not have, 500 for a resource version that is none.
    pub async fn watch(
        &self,
        storage: &Arc<Storage>,
        request: WatchRequest<'_>,
    ) -> Result<Result<Watch, WatchEnd>, Status> {
        if storage.is_over() {
            return Ok(Err(WatchEnd::Closed));
        }
        let options = request.options;
        let selection =
            Selection::new(storage, request.namespace, &options.label_selector, &options.field_selector)?;
        let started = match Start::of(options)? {
            Start::State(read_at) => self.watch_state(storage, selection, read_at).await,
            Start::Now => self.watch_now(storage, selection),
            Start::After(revision) => self.watch_after(storage, selection, revision),
        };
        Ok(started.map_err(|status| WatchEnd::Error(Box::new(status))))
    }

    async fn watch_state(
        &self,
        storage: &Arc<Storage>,
        selection: Selection,
        read_at: ReadAt,
    ) -> Result<Watch, Status> {
        self.snapshot(read_at).await?;
        let scope = selection.scope(storage);
        let range = scope.range();
        let (snapshot, subscription) =
            self.replica.snapshot_and_subscribe(scope).map_err(|error| failure::read_failed(&error))?;
        let entries = snapshot.scan(&range);
        // Those that have to be translated are looked at then.
        let initial = entries.filter(|entry| storage.is_translated() || selection.matches(storage, entry));
        let initial = initial.cloned().collect();
        let initial_end = Some(snapshot.revision());
        Ok(Watch { initial, initial_end, ..Watch::new(storage, selection, subscription, 0) })
    }

    fn watch_now(&self, storage: &Arc<Storage>, selection: Selection) -> Result<Watch, Status> {
        let started = self.replica.snapshot_and_subscribe(selection.scope(storage));
        let (snapshot, subscription) = started.map_err(|error| failure::read_failed(&error))?;
        Ok(Watch::new(storage, selection, subscription, snapshot.revision()))
    }

    /// Several objects may have been written under one revision ([`concord_store::Txn::together`]). Whoever was told of the
    /// first of them knows the revision, and not that there are more: a connection may end between any two events. So
    /// what happened at the very revision that a watch goes on from is said again, if it is more than one thing.
    fn watch_after(
        &self,
        storage: &Arc<Storage>,
        selection: Selection,
        after: Revision,
    ) -> Result<Watch, Status> {
        let scope = selection.scope(storage);
        if let Ok(subscription) = self.replica.subscribe(scope.clone(), after.saturating_sub(1)) {
            return Ok(Watch::new(storage, selection, subscription, after));
        }
        let (subscription, left) = self.subscribe_at_edge(&scope, after).map_err(|error| match error {
            Error::Expired { requested, oldest } => Status::too_old_resource_version(requested, oldest),
            error => failure::read_failed(&error),
        })?;
        let is_meant = |entry: &Entry| storage.is_translated() || selection.matches(storage, entry);
        let initial = left.into_iter().filter(is_meant).collect();
        Ok(Watch { initial, ..Watch::new(storage, selection, subscription, after) })
    }

    /// The changes after a revision of which it is not known what happened at it: the oldest that there is, or one of the
    /// future. With what it left, if that is more than one thing.
    fn subscribe_at_edge(&self, scope: &Scope, after: Revision) -> Result<(Subscription, Vec<Entry>), Error> {
        let subscription = match self.replica.subscribe(scope.clone(), after) {
            // A revision of the future is waited for in silence.
            Err(Error::TooNew { .. }) => {
                let (_, later) = self.replica.snapshot_and_subscribe(scope.clone())?;
                return Ok((later, Vec::new()));
            }
            other => other?,
        };
        let snapshot = self.replica.newest()?.at(after)?;
        let range = scope.range();
        let left = snapshot.scan(&range).filter(|entry| entry.mod_revision == after).cloned();
        let left: Vec<Entry> = left.collect();
        Ok((subscription, if left.len() > 1 { left } else { Vec::new() }))
    }
}

impl Watch {
    fn new(
        storage: &Arc<Storage>,
        selection: Selection,
        subscription: Subscription,
        after: Revision,
    ) -> Self {
        Self {
            storage: storage.clone(),
            selection,
            subscription,
            after,
            initial: VecDeque::new(),
            initial_end: None,
            pending: VecDeque::new(),
            translation: None,
            is_past_end: false,
        }
    }
}
