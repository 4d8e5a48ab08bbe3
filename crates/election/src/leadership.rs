use std::{future::Future, pin::pin};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A time during which this server leads.
#[derive(Debug, Clone)]
pub(crate) struct Term(CancellationToken);

impl Term {
    pub(crate) fn new() -> Self {
        Self(CancellationToken::new())
    }

    pub(crate) fn end(&self) {
        self.0.cancel();
    }

    /// Whether it is over.
    fn has_ended(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when it is over.
    async fn ended(&self) {
        self.0.cancelled().await;
    }
}

/// Whether this server leads; for everybody who has something to do then.
#[derive(Debug, Clone)]
pub struct Leadership(watch::Receiver<Option<Term>>);

impl Leadership {
    pub(crate) fn new(term: watch::Receiver<Option<Term>>) -> Self {
        Self(term)
    }

    /// Of a server that shares its store with nobody: it always leads, and has to say so to nobody.
    pub fn alone() -> Self {
        // What nobody can send to any more keeps the last value.
        Self(watch::channel(Some(Term::new())).1)
    }

    /// Whether this server leads now.
    pub fn is_leader(&self) -> bool {
        self.0.borrow().as_ref().is_some_and(|term| !term.has_ended())
    }

    /// Does `work` whenever this server leads, until it is cancelled. It is begun anew with each term, told to end with it,
    /// and waited for. Returns when it ended by itself, or when there is no candidate any more.
    pub async fn lead<F: Future<Output = ()>>(
        &self,
        cancel: &CancellationToken,
        mut work: impl FnMut(CancellationToken) -> F,
    ) {
        let mut terms = self.0.clone();
        while let Some(Some(term)) = cancel.run_until_cancelled(next(&mut terms)).await {
            let end = cancel.child_token();
            let mut work = pin!(work(end.clone()));
            tokio::select! {
                () = &mut work => return,
                () = term.ended() => {
                    end.cancel();
                    work.await;
                }
            }
        }
    }
}

/// The term that is, or the next one; `None` if there is none any more.
async fn next(terms: &mut watch::Receiver<Option<Term>>) -> Option<Term> {
    let elected = terms.wait_for(|term| term.as_ref().is_some_and(|term| !term.has_ended())).await;
    elected.ok()?.clone()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn work_is_begun_with_each_term_and_told_to_end_with_it() {
        let (terms, receiver) = watch::channel(None);
        let leadership = Leadership::new(receiver);
        assert!(!leadership.is_leader());
        let begun = Cell::new(0);
        let never = CancellationToken::new();
        let work = leadership.lead(&never, |end| {
            begun.set(begun.get() + 1);
            async move { end.cancelled().await }
        });
        tokio::pin!(work);
        for round in 1..=3 {
            let term = Term::new();
            terms.send_replace(Some(term.clone()));
            assert!(leadership.is_leader());
            assert!(futures_poll(&mut work).await, "still at work");
            assert_eq!(begun.get(), round);
            term.end();
            assert!(!leadership.is_leader());
            assert!(futures_poll(&mut work).await, "waiting");
            assert_eq!(begun.get(), round);
        }
        drop(terms);
        work.await;
    }

    /// Lets it go as far as it can; whether it is not through.
    async fn futures_poll(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        tokio::select! {
            biased;
            () = future => false,
            () = tokio::task::yield_now() => true,
        }
    }

    #[tokio::test]
    async fn who_is_alone_leads() {
        let leadership = Leadership::alone();
        assert!(leadership.is_leader());
        let done = Cell::new(false);
        let cancel = CancellationToken::new();
        let end_at_once = |_| {
            done.set(true);
            std::future::ready(())
        };
        leadership.lead(&cancel, end_at_once).await;
        assert!(done.get());
        cancel.cancel();
        leadership.lead(&cancel, |end| async move { end.cancelled().await }).await;
    }
}
