//! How long requests wait for others, which is not the server's doing.

use std::{cell::Cell, future::Future, pin::Pin, time::Duration};

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    /// How long the request of this task has waited so far.
    static WAITED: Cell<Duration>;
}

/// Work that [`note_wait`] is told about.
type Waiting<F> = TaskLocalFuture<Cell<Duration>, F>;

/// Has what `work` does told how long it waits for others. Ask [`waited`] afterwards.
pub(crate) fn noting<F: Future>(work: F) -> Waiting<F> {
    WAITED.scope(Cell::default(), work)
}

/// How long work that has ended waited for others.
pub(crate) fn waited<F: Future>(work: Pin<&mut Waiting<F>>) -> Duration {
    work.take_value().map(Cell::into_inner).unwrap_or_default()
}

/// Says that the request of this task has waited for others: for its turn, or for webhooks. Service levels are measured
/// without that. Nothing happens outside of requests.
pub fn note_wait(time: Duration) {
    // What is not part of a request has nobody to tell.
    WAITED.try_with(|waited| waited.set(waited.get().saturating_add(time))).ok();
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    async fn during(work: impl Future<Output = ()>) -> Duration {
        let mut work = pin!(noting(work));
        work.as_mut().await;
        waited(work)
    }

    #[tokio::test]
    async fn waits_of_a_request_add_up() {
        let second = Duration::from_secs(1);
        note_wait(second);
        let waiting = async {
            note_wait(second);
            tokio::task::yield_now().await;
            note_wait(2 * second);
        };
        assert_eq!(during(waiting).await, 3 * second);
        assert_eq!(during(async {}).await, Duration::ZERO);
    }
}
