//! How long what was found about a resource is true.

use std::time::{Duration, Instant};

/// How long after a migration that was asked for it is looked whether everything has become right without it.
const AGAIN: Duration = Duration::from_secs(10 * 60);

/// Why nothing more is done about a resource for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// Everything has the right form.
    Right,
    /// A migration was asked for. One for each definition is enough; but what is proved is proved for one definition, and
    /// the next one may also let in what the last one refused.
    Asked {
        /// Of the definition then, if there is one.
        generation: Option<i64>,
        /// When that was, or when it was last looked at.
        at: Instant,
    },
    /// Its owner wants none.
    Unwanted,
}

impl Settled {
    /// Whether it is to be looked at again.
    pub(super) fn is_over(
        self,
        now: Instant,
        generation: impl Fn() -> Option<i64>,
        is_wanted: impl Fn() -> bool,
    ) -> bool {
        match self {
            Self::Right => false,
            Self::Asked { generation: before, at } => {
                now.saturating_duration_since(at) >= AGAIN || generation() != before
            }
            Self::Unwanted => is_wanted(),
        }
    }

    /// Whether both were asked for under one definition: what could not be written then cannot be written now.
    pub(super) fn is_same_question(self, other: Self) -> bool {
        match (self, other) {
            (Self::Asked { generation: one, .. }, Self::Asked { generation: other, .. }) => one == other,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_looked_at_again_when_its_definition_changes_or_after_a_while() {
        let at = Instant::now();
        let asked = |generation| Settled::Asked { generation, at };
        for (settled, later, generation, is_wanted, expected) in [
            (Settled::Right, AGAIN, Some(2), true, false),
            (asked(Some(1)), Duration::ZERO, Some(1), true, false),
            (asked(Some(1)), Duration::ZERO, Some(2), true, true),
            (asked(Some(1)), Duration::ZERO, None, true, true),
            (asked(Some(1)), AGAIN, Some(1), true, true),
            (asked(None), AGAIN / 2, None, true, false),
            (Settled::Unwanted, AGAIN, Some(2), false, false),
            (Settled::Unwanted, Duration::ZERO, Some(1), true, true),
        ] {
            let is_over = settled.is_over(at + later, || generation, || is_wanted);
            assert_eq!(is_over, expected, "{settled:?} {later:?} {generation:?}");
        }
    }

    #[test]
    fn one_migration_for_each_definition_is_enough() {
        let asked = |generation, at| Settled::Asked { generation, at };
        let (then, now) = (Instant::now(), Instant::now() + AGAIN);
        for (before, after, expected) in [
            (asked(Some(1), then), asked(Some(1), now), true),
            (asked(None, then), asked(None, now), true),
            (asked(Some(1), then), asked(Some(2), now), false),
            (Settled::Right, asked(None, now), false),
            (Settled::Unwanted, asked(Some(1), now), false),
        ] {
            assert_eq!(before.is_same_question(after), expected, "{before:?} {after:?}");
        }
    }
}
