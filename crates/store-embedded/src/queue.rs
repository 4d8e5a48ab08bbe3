use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_store::{Committed, Error, Revision, Txn};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Requests waiting for the writer may hold this many KiB together; more callers than that wait.
const QUEUE_KIB: usize = 64 * 1024;
/// Bounds of one batch, so that one sync answers many and nobody waits for too many.
const BATCH_REQUESTS: usize = 2048;
const BATCH_KIB: usize = 8 * 1024;

/// A batch of nothing but what is done in the background begins with so many requests, or when it has waited so long for
/// them. With fewer in each batch there are more batches, and everybody else is interrupted more often (docs/benchmarks.md).
/// They are no more than a migration has under way from its beginning: otherwise it would wait each time.
const COMPANY: usize = 48;
const COMPANY_PAUSE: Duration = Duration::from_millis(1);

/// What the writer thread is asked to do.
#[derive(Debug)]
pub(crate) enum Request {
    Transact { txn: Txn, answer: oneshot::Sender<Result<Committed, Error>> },
    Compact { revision: Revision, answer: oneshot::Sender<Result<(), Error>> },
    Refresh { key: Bytes, revision: Revision, ttl: Duration, answer: oneshot::Sender<Result<bool, Error>> },
}

/// Hands requests to the writer thread, all that have gathered at once.
#[derive(Debug)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Waiting>,
    /// How many of them are urgent.
    urgent: usize,
    closed: bool,
    /// With what the writer goes on. Woken for each request, it would only look, and wait again.
    enough: Enough,
}

/// So many urgent requests, or so many of any kind.
#[derive(Debug, Default)]
struct Enough {
    urgent: usize,
    all: usize,
}

/// A request and the room it takes, given back when it was answered.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request: Request,
    _room: OwnedSemaphorePermit,
    kib: usize,
    /// Whether somebody waits for it who would notice.
    pub(crate) is_urgent: bool,
}

/// How long to wait for how many urgent requests before a batch begins. Clients that were answered together
/// ask again together: a batch that starts with the first of them makes the others wait for a whole
/// sync. A lone client never waits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gather {
    pub(crate) count: usize,
    pub(crate) pause: Duration,
}

/// What the writer finds when it wakes.
#[derive(Debug)]
pub(crate) enum Wakeup {
    /// Requests, or none if only the time has come.
    Work(Vec<Waiting>),
    /// There will be no more requests.
    Closed,
}

impl Queue {
    pub(crate) fn new() -> Self {
        let room = Arc::new(Semaphore::new(QUEUE_KIB));
        Self { inner: Mutex::default(), wake: Condvar::new(), room }
    }

    pub(crate) async fn push(&self, request: Request, bytes: usize) -> Result<(), Error> {
        let kib = bytes / 1024 + 1;
        let permits = u32::try_from(kib.min(QUEUE_KIB)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(permits).await.map_err(|_| closed())?;
        let is_urgent = request.is_urgent();
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(closed());
        }
        inner.urgent += usize::from(is_urgent);
        inner.waiting.push_back(Waiting { request, _room: room, kib, is_urgent });
        let is_enough = inner.has_enough();
        drop(inner);
        if is_enough {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Waits for requests, at the longest until `deadline`, and then a little for their company.
    pub(crate) fn wait(&self, deadline: Option<Instant>, gather: Gather) -> Wakeup {
        let mut inner = self.inner.lock();
        inner.enough = Enough { urgent: 1, all: 1 };
        while inner.waiting.is_empty() {
            if inner.closed {
                return Wakeup::Closed;
            }
            match deadline {
                None => self.wake.wait(&mut inner),
                Some(deadline) if self.wake.wait_until(&mut inner, deadline).timed_out() => break,
                Some(_) => {}
            }
        }
        let since = Instant::now();
        while !inner.waiting.is_empty() && !inner.closed {
            let (enough, pause) = match inner.urgent {
                0 => (Enough { urgent: 1, all: COMPANY }, COMPANY_PAUSE),
                _ => (Enough { urgent: gather.count, all: usize::MAX }, gather.pause),
            };
            inner.enough = enough;
            if inner.has_enough() || self.wake.wait_until(&mut inner, since + pause).timed_out() {
                break;
            }
        }
        Wakeup::Work(inner.take_batch())
    }

    /// Refuses new requests; the writer still answers those that wait.
    pub(crate) fn close(&self) {
        self.inner.lock().closed = true;
        self.room.close();
        self.wake.notify_one();
    }
}

/// Closes the queue when the writer ends, also by a panic, so that nobody waits for an answer for ever.
pub(crate) struct CloseOnExit<'a>(pub(crate) &'a Queue);

impl Drop for CloseOnExit<'_> {
    fn drop(&mut self) {
        self.0.close();
        let mut inner = self.0.inner.lock();
        inner.waiting.clear();
        inner.urgent = 0;
    }
}

impl Request {
    fn is_urgent(&self) -> bool {
        !matches!(self, Self::Transact { txn, .. } if txn.together)
    }
}

impl Inner {
    fn has_enough(&self) -> bool {
        self.urgent >= self.enough.urgent || self.waiting.len() >= self.enough.all
    }

    fn take_batch(&mut self) -> Vec<Waiting> {
        let mut kib = 0;
        let fits = |waiting: &&Waiting| {
            kib += waiting.kib;
            kib <= BATCH_KIB
        };
        let count = self.waiting.iter().take(BATCH_REQUESTS).take_while(fits).count();
        // A single request is always smaller than a batch, but it must never be stuck.
        let count = count.max(1).min(self.waiting.len());
        let batch: Vec<Waiting> = self.waiting.drain(..count).collect();
        self.urgent -= batch.iter().filter(|waiting| waiting.is_urgent).count();
        batch
    }
}

/// The answer to requests after the store was closed.
pub(crate) fn closed() -> Error {
    Error::unavailable("the store is closed")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Longer than any test may take.
    const NEVER: Duration = Duration::from_secs(3600);

    async fn push(queue: &Queue, times: usize) {
        for _ in 0..times {
            let request = Request::Compact { revision: 1, answer: oneshot::channel().0 };
            queue.push(request, 0).await.expect("it is open");
        }
    }

    async fn push_background(queue: &Queue, times: usize) {
        for _ in 0..times {
            let request =
                Request::Transact { txn: Txn::new().put("a", "b").together(), answer: oneshot::channel().0 };
            queue.push(request, 0).await.expect("it is open");
        }
    }

    /// A writer that waits in turns for one request and for three, and says how many it got each time.
    fn writer(queue: Arc<Queue>) -> mpsc::Receiver<Option<usize>> {
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            for gather in [Gather::default(), Gather { count: 3, pause: NEVER }].into_iter().cycle() {
                let got = match queue.wait(None, gather) {
                    Wakeup::Work(waiting) => Some(waiting.len()),
                    Wakeup::Closed => None,
                };
                if said.send(got).is_err() || got.is_none() {
                    return;
                }
            }
        });
        heard
    }

    #[tokio::test]
    async fn the_writer_goes_on_with_the_first_or_with_as_many_as_it_waits_for() {
        let queue = Arc::new(Queue::new());
        let heard = writer(queue.clone());
        // Often enough for the writer to wait already, at some time, when the first of them comes.
        for _ in 0..500 {
            for count in [1, 3] {
                push(&queue, count).await;
                assert_eq!(heard.recv(), Ok(Some(count)));
            }
        }
    }

    #[tokio::test]
    async fn what_is_done_in_the_background_waits_for_company_but_nobody_waits_for_it() {
        let queue = Arc::new(Queue::new());
        let heard = writer(queue.clone());
        let mut largest = 0;
        for _ in 0..100 {
            let mut left = COMPANY;
            push_background(&queue, left).await;
            while left > 0 {
                // More than one batch only if this thread stopped for longer than the writer waits.
                let got = heard.recv().ok().flatten().expect("a batch");
                largest = largest.max(got);
                left -= got;
            }
        }
        assert_eq!(largest, COMPANY);

        let queue = Queue::new();
        push_background(&queue, 2).await;
        push(&queue, 1).await;
        let alone = queue.wait(None, Gather { count: 1, pause: NEVER });
        assert!(matches!(alone, Wakeup::Work(waiting) if waiting.len() == 3), "with whoever is there");
        push_background(&queue, COMPANY - 1).await;
        let begin = Instant::now();
        let lonely = queue.wait(None, Gather { count: 3, pause: NEVER });
        assert!(matches!(lonely, Wakeup::Work(waiting) if waiting.len() == COMPANY - 1), "not for ever");
        assert!(begin.elapsed() >= COMPANY_PAUSE, "{:?}", begin.elapsed());
    }

    #[tokio::test]
    async fn those_who_come_while_others_wait_for_company_wait_for_each_other() {
        let queue = Arc::new(Queue::new());
        for _ in 0..200 {
            let theirs = queue.clone();
            let writer = std::thread::spawn(move || {
                let mut batches = Vec::new();
                while batches.iter().sum::<usize>() < 4
                    && let Wakeup::Work(waiting) = theirs.wait(None, Gather { count: 3, pause: NEVER })
                {
                    batches.push(waiting.len());
                }
                batches
            });
            push_background(&queue, 1).await;
            push(&queue, 1).await;
            push(&queue, 2).await;
            let batches = writer.join().expect("no panic");
            // The first may have waited long enough before the others came.
            assert!(batches == [4] || batches == [1, 3], "{batches:?}");
        }
    }

    #[tokio::test]
    async fn who_waits_for_company_does_not_outlive_the_queue() {
        let queue = Arc::new(Queue::new());
        let heard = writer(queue.clone());
        push(&queue, 1).await;
        assert_eq!(heard.recv(), Ok(Some(1)));
        push(&queue, 2).await;
        queue.close();
        assert_eq!(heard.recv(), Ok(Some(2)));
        assert_eq!(heard.recv(), Ok(None));
    }
}
