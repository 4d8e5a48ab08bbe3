//! Controllers that look at one thing at a time.

use std::{
    collections::BTreeSet,
    mem,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use concord_meta::Status;
use concord_registry::{QueueEvent, Registry};
use concord_replica::{Closed, Error as ReplicaError, Event, Scope, Snapshot, Subscription};
use futures_util::{StreamExt as _, future::select_all, stream};

use crate::backoff::Backoff;

/// How many things are done at the same moment.
const AT_ONCE: usize = 16;

/// A controller that looks at one thing at a time, whenever something about it may have changed.
pub(crate) trait Sync: Send {
    /// What is looked at.
    type Item: Ord + Clone + Send;

    /// What the queue is called in metrics: as upstream's, where there is one.
    const QUEUE: &'static str;

    /// What there is to look at in the beginning.
    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<Self::Item>);

    /// What there is to look at because of a change in one of the scopes, which is given by its place in the list.
    fn changed(&self, scope: usize, event: &Event, items: &mut BTreeSet<Self::Item>);

    /// Told when all there is to look at in the beginning has been looked at, whether or not it could be put right.
    fn looked_at_all(&self) {}

    /// Puts it right, if it is not.
    fn sync(&self, item: &Self::Item) -> impl Future<Output = Result<(), Status>> + Send;
}

/// Follows the scopes until the replica ends.
pub(crate) async fn run<C: Sync>(controller: &C, registry: &Registry, scopes: &[Scope]) {
    let mut backoff = Backoff::new();
    loop {
        match subscribe(registry, scopes) {
            Ok((snapshot, changes)) => {
                backoff.reset();
                let closed = follow(controller, registry, &snapshot, changes).await;
                if matches!(closed, Closed::Shutdown | Closed::Failed) {
                    return;
                }
            }
            Err(ReplicaError::Shutdown | ReplicaError::Failed { .. }) => return,
            Err(_) => {}
        }
        backoff.pause().await;
    }
}

/// The subscriptions begin no later than the snapshot, which is taken last: nothing falls between.
fn subscribe(registry: &Registry, scopes: &[Scope]) -> Result<(Snapshot, Vec<Subscription>), ReplicaError> {
    let replica = registry.replica();
    let subscribed = scopes.iter().map(|scope| Ok(replica.snapshot_and_subscribe(scope.clone())?.1));
    let subscribed = subscribed.collect::<Result<Vec<_>, ReplicaError>>()?;
    Ok((replica.newest()?, subscribed))
}

async fn follow<C: Sync>(
    controller: &C,
    registry: &Registry,
    snapshot: &Snapshot,
    mut changes: Vec<Subscription>,
) -> Closed {
    let mut items = BTreeSet::new();
    controller.all(snapshot, &mut items);
    let mut backoff = Backoff::new();
    loop {
        let failed = sync_all(controller, registry, mem::take(&mut items)).await;
        controller.looked_at_all();
        let next = next(controller, &mut changes, &mut items);
        let outcome = if failed.is_empty() {
            backoff.reset();
            next.await
        } else {
            // What failed is tried again, also if nothing changes.
            tokio::select! {
                outcome = next => outcome,
                () = backoff.pause() => Ok(()),
            }
        };
        if let Err(closed) = outcome {
            return closed;
        }
        items.extend(failed);
    }
}

/// What could not be put right.
async fn sync_all<C: Sync>(controller: &C, registry: &Registry, items: BTreeSet<C::Item>) -> Vec<C::Item> {
    let (tell, taken) = (|event| registry.observe_queue(C::QUEUE, event), Instant::now());
    tell(QueueEvent::Added(items.len()));
    let left = &AtomicUsize::new(items.len());
    let synced = stream::iter(items).map(|item| async move {
        let begun = Instant::now();
        tell(QueueEvent::Begun(begun - taken));
        tell(QueueEvent::Depth(left.fetch_sub(1, Ordering::Relaxed) - 1));
        let done = controller.sync(&item).await;
        tell(QueueEvent::Done { took: begun.elapsed(), again: done.is_err() });
        let error = done.err()?;
        tracing::debug!(%error, "An object could not be put right yet.");
        Some(item)
    });
    synced.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

/// Waits for a change, and takes all that are there.
async fn next<C: Sync>(
    controller: &C,
    changes: &mut [Subscription],
    items: &mut BTreeSet<C::Item>,
) -> Result<(), Closed> {
    while items.is_empty() {
        let waiting = changes.iter_mut().map(|changes| Box::pin(changes.next()));
        let (first, scope, _) = select_all(waiting).await;
        first?.iter().for_each(|event| controller.changed(scope, event, items));
        for (scope, changes) in changes.iter_mut().enumerate() {
            while let Some(batch) = changes.try_next()? {
                batch.iter().for_each(|event| controller.changed(scope, event, items));
            }
        }
    }
    Ok(())
}
