use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use concord_meta::GroupResource;

/// Hears what the store was asked to do, and how long it took. For metrics.
pub trait Observer: Send + Sync + 'static {
    /// A transaction about an object of this resource was answered, with whatever outcome. The operation is upstream's
    /// word: `create`, `update` or `delete`.
    fn answered(&self, operation: &'static str, resource: &GroupResource, took: Duration);

    /// Something happened to the queue of a controller. The name is upstream's, where it has such a queue.
    fn queue(&self, _queue: &'static str, _event: QueueEvent) {}
}

/// What can happen to the queue of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueEvent {
    /// So much was put into it.
    Added(usize),
    /// So much is in it now.
    Depth(usize),
    /// Something is taken out that was in it for so long.
    Begun(Duration),
    /// Something was done in so long; what was not done well is put into it again.
    Done {
        /// How long it took.
        took: Duration,
        /// Whether it has to be done again.
        again: bool,
    },
}

/// What is done with rules written in CEL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleWork {
    /// They are made ready.
    Compilation,
    /// They are asked about an object.
    Evaluation,
}

type RuleObserver = Box<dyn Fn(RuleWork, Duration) + Send + Sync>;

/// One for the process, as upstream's: the hooks that check definitions are plain functions, which know no server.
static RULES: OnceLock<RuleObserver> = OnceLock::new();

/// Has `observer` hear how long rules of custom resources take. Only the first is heard.
pub fn observe_rules(observer: impl Fn(RuleWork, Duration) + Send + Sync + 'static) {
    // A second server in the process, which only tests have.
    drop(RULES.set(Box::new(observer)));
}

/// Does some work with rules, and tells how long it took.
pub fn timed_rules<T>(work: RuleWork, f: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = f();
    if let Some(observer) = RULES.get() {
        observer(work, begun.elapsed());
    }
    done
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_with_rules_is_heard_of() {
        let (heard, work) = mpsc::channel();
        observe_rules(move |work, time| heard.send((work, time)).expect("somebody listens"));
        assert_eq!(timed_rules(RuleWork::Evaluation, || 7), 7);
        timed_rules(RuleWork::Compilation, || ());
        let heard: Vec<RuleWork> = work.try_iter().map(|(work, _)| work).collect();
        assert_eq!(heard, [RuleWork::Evaluation, RuleWork::Compilation]);
    }
}
