//! What one watcher may expect: each writer's writes in sequence, and revisions that only grow.

/// What a writer puts into an object, to be found again in the event: `PHASE.WRITER.SEQUENCE.NANOSECONDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) phase: u8,
    pub(super) writer: usize,
    /// Counts this writer's writes from zero, over all phases.
    pub(super) sequence: u64,
    /// When it was sent, since the epoch of the fan-out.
    pub(super) nanos: u64,
}

impl Stamp {
    /// As text without anything that JSON would escape.
    pub(super) fn text(&self) -> String {
        format!("{}.{}.{}.{}", self.phase, self.writer, self.sequence, self.nanos)
    }

    /// `None` when it is not one of ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let stamp = Self {
            phase: parts.next()?.parse().ok()?,
            writer: parts.next()?.parse().ok()?,
            sequence: parts.next()?.parse().ok()?,
            nanos: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(stamp)
    }
}

/// What was wrong so far.
pub(super) struct Check {
    /// The sequence expected next, by writer.
    next: Box<[u64]>,
    newest: u64,
    /// Events seen, each counted once.
    pub(super) distinct: u64,
    pub(super) repeated: u64,
    pub(super) disordered: u64,
}

impl Check {
    pub(super) fn new(writers: usize) -> Self {
        let next = vec![0; writers].into_boxed_slice();
        Self { next, newest: 0, distinct: 0, repeated: 0, disordered: 0 }
    }

    /// Takes the next event. What is missing shows in `distinct` at the end.
    pub(super) fn event(&mut self, resource_version: u64, stamp: Stamp) {
        if resource_version <= self.newest {
            self.disordered += 1;
        }
        self.newest = self.newest.max(resource_version);
        let Some(next) = self.next.get_mut(stamp.writer) else { return };
        if stamp.sequence < *next {
            self.repeated += 1;
            return;
        }
        *next = stamp.sequence + 1;
        self.distinct += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(writer: usize, sequence: u64) -> Stamp {
        Stamp { phase: 1, writer, sequence, nanos: 5 }
    }

    #[test]
    fn stamps_survive_the_way() {
        let stamp = stamp(3, 4);
        assert_eq!(stamp.text(), "1.3.4.5");
        assert_eq!(Stamp::parse(&stamp.text()), Some(stamp));
        for foreign in ["", "created", "1.2.3", "1.2.3.4.5", "1.2.x.4", "-1.2.3.4"] {
            assert_eq!(Stamp::parse(foreign), None, "{foreign}");
        }
    }

    fn after(events: &[(u64, usize, u64)]) -> (u64, u64, u64) {
        let mut check = Check::new(2);
        events
            .iter()
            .for_each(|(version, writer, sequence)| check.event(*version, stamp(*writer, *sequence)));
        (check.distinct, check.repeated, check.disordered)
    }

    #[test]
    fn faults_are_found() {
        assert_eq!(after(&[(1, 0, 0), (2, 1, 0), (5, 0, 1)]), (3, 0, 0), "nothing is wrong");
        assert_eq!(after(&[(1, 0, 0), (3, 0, 2)]), (2, 0, 0), "one of three is missing");
        assert_eq!(after(&[(1, 0, 0), (1, 0, 0)]), (1, 1, 1), "the same twice");
        assert_eq!(after(&[(2, 0, 0), (1, 1, 0)]), (2, 0, 1), "an older revision after a newer one");
        assert_eq!(after(&[(1, 9, 0)]), (0, 0, 0), "a writer we do not know");
    }
}
