//! Which migration of a resource runs.

use crate::migration::Migration;

/// The one to run among all of one resource: the one that runs already, or else the oldest that has not ended.
pub(crate) fn choose<'a>(migrations: impl IntoIterator<Item = &'a Migration>) -> Option<&'a Migration> {
    let open = migrations.into_iter().filter(|migration| !migration.is_terminal());
    open.min_by_key(|migration| (!migration.holds("Running"), &migration.created, &migration.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::tests::migration;

    #[test]
    fn the_oldest_runs_unless_one_does_already() {
        let chosen = |all: &[Migration]| choose(all).map(|migration| migration.name.clone());
        let (old, new) =
            (migration("b", "2026-01-01T00:00:00Z", &[]), migration("a", "2026-01-02T00:00:00Z", &[]));
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[new.clone(), old.clone()]).as_deref(), Some("b"));
        let twin = migration("a", "2026-01-01T00:00:00Z", &[]);
        assert_eq!(chosen(&[old.clone(), twin]).as_deref(), Some("a"), "names decide then");
        let running = migration("c", "2026-01-03T00:00:00Z", &[("Running", true)]);
        assert_eq!(chosen(&[old.clone(), running]).as_deref(), Some("c"));
        let done = migration("d", "2025-01-01T00:00:00Z", &[("Running", true), ("Succeeded", true)]);
        assert_eq!(chosen(&[done, new, old]).as_deref(), Some("b"));
    }
}
