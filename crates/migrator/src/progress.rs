//! How far a migration is.

use serde::{Deserialize, Serialize};

use crate::{Census, Row, rewrite::Outcome};

/// How many objects that could not be written are named.
const NAMED: usize = 10;

/// How far a migration is, as it stands in the annotation [`crate::PROGRESS_ANNOTATION`]. Where it is to go on is a hint:
/// to lose it costs time and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// What it does: `Waiting`, `Paused`, `Migrating`, `Verifying` or `Done`.
    pub phase: String,
    /// The form that objects are to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Row>,
    /// Who agreed on it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agreement: String,
    /// The newest revision when this pass began.
    pub checkpoint: u64,
    /// The first key that has not been looked at, without what the keys of all objects of the resource begin with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cursor: String,
    /// How many objects there were when it began.
    pub total: u64,
    /// How many were written.
    pub migrated: u64,
    /// How many of those in earlier passes: this one finds them in the right form.
    #[serde(skip_serializing_if = "is_zero")]
    pub migrated_before: u64,
    /// How many had the right form already.
    pub current: u64,
    /// How many cannot be written.
    pub failed: u64,
    /// How many could not be written for now.
    pub deferred: u64,
    /// How many are looked at in a second, and written if they have to be, of late.
    pub rate_per_second: f64,
    /// How much longer it will take at that rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_seconds: Option<u64>,
    /// When it began.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// What was wrong last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    /// Some of the objects that could not be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// What is stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub census: Vec<Counted>,
    /// When that was so.
    #[serde(skip_serializing_if = "is_zero")]
    pub census_revision: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An object that could not be written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its name, after its namespace if it has one.
    pub object: String,
    /// Why.
    pub message: String,
}

/// A line of a census.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The form.
    #[serde(flatten)]
    pub row: Row,
    /// How many objects have it.
    pub objects: u64,
}

impl Progress {
    /// Starts to count anew: what was counted before is looked at again.
    pub(crate) fn restart(&mut self) {
        let Self { target, agreement, checkpoint, total, started_at, migrated, .. } = std::mem::take(self);
        let migrated_before = migrated;
        *self = Self {
            target,
            agreement,
            checkpoint,
            total,
            started_at,
            migrated,
            migrated_before,
            ..Self::default()
        };
    }

    /// How many objects have been looked at in this pass.
    pub(crate) fn seen(&self) -> u64 {
        (self.current + self.migrated + self.failed + self.deferred).saturating_sub(self.migrated_before)
    }

    pub(crate) fn fail(&mut self, object: String, message: String) {
        self.failed += 1;
        if self.failures.len() < NAMED {
            self.failures.push(Failure { object, message });
        }
    }

    /// An object will be looked at again: what was counted of it counts then.
    pub(crate) fn take_back(&mut self, object: &str, outcome: &Outcome) {
        match outcome {
            Outcome::Written(_) => self.migrated_before += 1,
            Outcome::Current => self.current = self.current.saturating_sub(1),
            Outcome::Gone | Outcome::Unwanted => {}
            Outcome::Failed(_) => {
                self.failed = self.failed.saturating_sub(1);
                self.failures.retain(|failure| failure.object != object);
            }
            Outcome::Deferred(_) => self.deferred = self.deferred.saturating_sub(1),
        }
    }

    pub(crate) fn count(&mut self, census: &Census) {
        let counted = |(row, objects): (&Row, &u64)| Counted { row: row.clone(), objects: *objects };
        self.census = census.rows.iter().map(counted).collect();
        self.census_revision = census.revision;
    }

    /// So many objects are looked at in a second.
    pub(crate) fn goes_at(&mut self, rate: f64) {
        self.rate_per_second = (rate * 10.0).round() / 10.0;
        let left = self.total.saturating_sub(self.seen());
        self.eta_seconds = (rate > 0.0).then(|| (left as f64 / rate).ceil() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_looked_at_again_counts_once() {
        let mut progress = Progress { migrated: 3, current: 2, deferred: 1, ..Progress::default() };
        progress.fail("a".to_owned(), "no".to_owned());
        progress.fail("b".to_owned(), "no".to_owned());
        assert_eq!(progress.seen(), 8);
        for (object, outcome) in [
            ("b", Outcome::Failed("no".to_owned())),
            ("c", Outcome::Written(Duration::ZERO)),
            ("d", Outcome::Current),
            ("e", Outcome::Deferred("later".to_owned())),
            ("f", Outcome::Gone),
            ("g", Outcome::Unwanted),
        ] {
            progress.take_back(object, &outcome);
        }
        assert_eq!((progress.seen(), progress.migrated, progress.failed), (4, 3, 1));
        assert_eq!(
            progress.failures.iter().map(|failure| failure.object.as_str()).collect::<Vec<_>>(),
            ["a"]
        );
    }

    #[test]
    fn progress_is_read_as_it_is_written() {
        let mut progress = Progress { total: 100, migrated: 20, current: 30, ..Progress::default() };
        progress.goes_at(5.0);
        progress.restart();
        assert_eq!((progress.seen(), progress.migrated), (0, 20), "it is looked at again");
        progress.current = 50;
        progress.goes_at(5.0);
        assert_eq!((progress.rate_per_second, progress.eta_seconds), (5.0, Some(10)));
        progress.goes_at(0.01);
        assert_eq!((progress.rate_per_second, progress.eta_seconds), (0.0, Some(5000)));
        (0..30).for_each(|n| progress.fail(format!("o{n}"), "no".to_owned()));
        assert_eq!((progress.failed, progress.failures.len()), (30, NAMED));
        let row = Row { version: "v1".to_owned(), encryption: String::new() };
        progress.count(&Census { rows: [(row, 3)].into(), revision: 1 });
        let wire = serde_json::to_value(&progress).expect("JSON");
        assert_eq!(wire["census"], json!([{"version": "v1", "objects": 3}]));
        assert_eq!(serde_json::from_value::<Progress>(wire).expect("the same"), progress);
    }
}
