use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{Batch, Closed};

/// The bounded buffer shared by all subscriptions to one scope.
///
/// A batch is stored once, whatever the number of subscriptions, and leaves when all have read it or
/// when the buffer is full. Whoever has not read it by then has lagged; nobody waits for anybody.
#[derive(Debug)]
pub(crate) struct Ring {
    state: Mutex<RingState>,
    wake: Notify,
    capacity: usize,
}

#[derive(Debug, Default)]
struct RingState {
    items: VecDeque<Item>,
    /// The number of batches ever pushed; the last of `items` has the number `pushed - 1`.
    pushed: u64,
    readers: usize,
    closed: Option<Closed>,
}

#[derive(Debug)]
struct Item {
    batch: Batch,
    /// How many readers have not read it.
    unread: usize,
}

impl RingState {
    /// The number of the first item that is still there.
    fn first(&self) -> u64 {
        self.pushed - self.items.len() as u64
    }

    /// Drops what everyone has read, so that a quiet ring keeps no value alive.
    fn release(&mut self) {
        while self.items.front().is_some_and(|item| item.unread == 0) {
            self.items.pop_front();
        }
    }
}

impl Ring {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), capacity }
    }

    /// Adds a reader of everything pushed from now on and returns its cursor.
    pub(crate) fn join(&self) -> u64 {
        let mut state = self.state.lock();
        state.readers += 1;
        state.pushed
    }

    /// Removes a reader and returns how many are left.
    pub(crate) fn leave(&self, cursor: u64) -> usize {
        let mut state = self.state.lock();
        state.readers -= 1;
        let read = usize::try_from(cursor.saturating_sub(state.first())).unwrap_or(usize::MAX);
        for item in state.items.iter_mut().skip(read) {
            item.unread -= 1;
        }
        state.release();
        state.readers
    }

    /// Adds a batch without waking anyone.
    pub(crate) fn push(&self, batch: Batch) {
        let mut state = self.state.lock();
        if state.items.len() == self.capacity {
            state.items.pop_front();
        }
        let unread = state.readers;
        state.items.push_back(Item { batch, unread });
        state.pushed += 1;
    }

    /// Wakes all readers that wait.
    pub(crate) fn wake(&self) {
        self.wake.notify_waiters();
    }

    /// Lets no further batch in; readers still get what is pending. The first reason stays.
    pub(crate) fn close(&self, reason: Closed) {
        self.state.lock().closed.get_or_insert(reason);
        self.wake();
    }

    /// Takes the next batch of a reader, if there is one.
    pub(crate) fn try_next(&self, cursor: &mut u64) -> Result<Option<Batch>, Closed> {
        let mut state = self.state.lock();
        let Some(index) = cursor.checked_sub(state.first()) else {
            return Err(Closed::Lagged);
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(item) = state.items.get_mut(index) else {
            return state.closed.map_or(Ok(None), Err);
        };
        item.unread -= 1;
        let batch = item.batch.clone();
        *cursor += 1;
        if index == 0 {
            state.release();
        }
        Ok(Some(batch))
    }

    /// Waits for the next batch of a reader. Cancel safe: a batch is taken only when it is returned.
    pub(crate) async fn next(&self, cursor: &mut u64) -> Result<Batch, Closed> {
        loop {
            let mut woken = std::pin::pin!(self.wake.notified());
            // Registered before the look, or a push between the look and the wait would be missed.
            woken.as_mut().enable();
            if let Some(batch) = self.try_next(cursor)? {
                return Ok(batch);
            }
            woken.await;
        }
    }

    /// Whether a reader has everything and more can come.
    pub(crate) fn is_drained(&self, cursor: u64) -> bool {
        let state = self.state.lock();
        state.closed.is_none() && cursor == state.pushed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concord_store::KeyValue;

    use super::*;
    use crate::{Event, EventKind};

    fn batch(revision: u64) -> Batch {
        let entry = KeyValue {
            key: "k".into(),
            value: "v".into(),
            create_revision: revision,
            mod_revision: revision,
        };
        Arc::new([Event { revision, kind: EventKind::Created(Arc::new(entry)) }])
    }

    fn read(ring: &Ring, cursor: &mut u64) -> Result<Option<u64>, Closed> {
        Ok(ring.try_next(cursor)?.map(|batch| batch[0].revision))
    }

    #[test]
    fn a_reader_that_is_too_slow_lags_and_the_other_does_not() {
        let ring = Ring::new(2);
        let (mut slow, mut fast) = (ring.join(), ring.join());
        for revision in 2..5 {
            ring.push(batch(revision));
            assert_eq!(read(&ring, &mut fast), Ok(Some(revision)));
        }
        assert_eq!(read(&ring, &mut slow), Err(Closed::Lagged));
        assert_eq!(read(&ring, &mut fast), Ok(None));
    }

    #[test]
    fn what_everyone_has_read_or_left_is_dropped() {
        let ring = Ring::new(8);
        let (mut one, two) = (ring.join(), ring.join());
        let kept = batch(2);
        ring.push(Arc::clone(&kept));
        assert_eq!(read(&ring, &mut one), Ok(Some(2)));
        assert_eq!(Arc::strong_count(&kept), 2, "the other reader still has to read it");
        assert_eq!(ring.leave(two), 1);
        assert_eq!(Arc::strong_count(&kept), 1);
        assert_eq!(ring.leave(one), 0);
    }

    #[test]
    fn a_lagged_reader_can_leave() {
        let ring = Ring::new(1);
        let (slow, mut fast) = (ring.join(), ring.join());
        ring.push(batch(2));
        ring.push(batch(3));
        ring.leave(slow);
        assert_eq!(read(&ring, &mut fast), Err(Closed::Lagged));
        ring.leave(fast);
        let mut fresh = ring.join();
        ring.push(batch(4));
        assert_eq!(read(&ring, &mut fresh), Ok(Some(4)));
    }

    #[test]
    fn pending_batches_come_before_the_reason_for_closing() {
        let ring = Ring::new(2);
        let mut cursor = ring.join();
        ring.push(batch(2));
        ring.close(Closed::Compacted);
        ring.close(Closed::Shutdown);
        assert!(!ring.is_drained(cursor));
        assert_eq!(read(&ring, &mut cursor), Ok(Some(2)));
        assert_eq!(read(&ring, &mut cursor), Err(Closed::Compacted));
        assert!(!ring.is_drained(cursor), "a closed ring proves nothing about the time after");
    }
}
