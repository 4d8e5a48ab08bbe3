//! How long requests wait for others, which is not the server's doing.

use std::{cell::Cell, future::Future, time::Duration};

tokio::task_local! {
    /// How long the request of this task has waited so far.
    static WAITED: Cell<Duration>;
}

/// Does something, and says how long it waited for others meanwhile.
pub(crate) async fn during<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let work = async {
        let done = work.await;
        (done, WAITED.with(Cell::get))
    };
    WAITED.scope(Cell::default(), work).await
}

/// Says that the request of this task has waited for others: for its turn, or for webhooks. Service levels are measured
/// without that. Nothing happens outside of requests.
pub fn note_wait(time: Duration) {
    // What is not part of a request has nobody to tell.
    WAITED.try_with(|waited| waited.set(waited.get().saturating_add(time))).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waits_of_a_request_add_up() {
        let second = Duration::from_secs(1);
        note_wait(second);
        let waiting = async {
            note_wait(second);
            tokio::task::yield_now().await;
            note_wait(2 * second);
        };
        assert_eq!(during(waiting).await.1, 3 * second);
        assert_eq!(during(async {}).await.1, Duration::ZERO);
    }
}
