use std::collections::BTreeMap;

use super::*;
use crate::agreement::Agreed;

fn row(version: &str) -> Row {
    Row { version: version.to_owned(), encryption: String::new() }
}

fn agreed(version: &str, since: Revision, revision: Revision) -> Writers {
    Writers::Agree(Agreed { target: row(version), fingerprint: 1, since, revision, is_known: true })
}

fn run(checkpoint: Revision, stage: Stage) -> Run {
    Run { target: row("v2"), fingerprint: 1, checkpoint, stage }
}

fn counted(failed: u64, deferred: u64, old: u64) -> Stage {
    let rows = BTreeMap::from([(row("v2"), 5), (row("v1"), old)]);
    let rows = rows.into_iter().filter(|(_, count)| *count > 0).collect();
    Stage::Counted { failed, deferred, census: Census { rows, revision: 20 } }
}

const NONE: Orders = Orders { is_paused: false, is_cancelled: false, is_dry_run: false, rate: None };

#[test]
fn nothing_is_written_before_the_servers_agree() {
    let waiting = Writers::Disagree("s1=v1".to_owned());
    for stage in [None, Some(Stage::Walking), Some(counted(0, 0, 0))] {
        let run = stage.map(|stage| run(10, stage));
        assert_eq!(next(NONE, &waiting, run.as_ref()), Next::Await("s1=v1".to_owned()));
    }
    assert_eq!(next(NONE, &agreed("v2", 5, 30), None), Next::Begin);
}

#[test]
fn a_pass_goes_on_only_under_the_agreement_it_began_with() {
    let walking = run(10, Stage::Walking);
    assert_eq!(next(NONE, &agreed("v2", 5, 30), Some(&walking)), Next::Walk);
    assert_eq!(next(NONE, &agreed("v2", 10, 30), Some(&walking)), Next::Walk);
    assert_eq!(next(NONE, &agreed("v2", 11, 30), Some(&walking)), Next::Begin, "it was lost in between");
    assert_eq!(next(NONE, &agreed("v3", 5, 30), Some(&walking)), Next::Begin, "it is about another version");
}

#[test]
fn only_a_clean_census_under_the_same_agreement_is_success() {
    let stages = [
        (Stage::Walked { failed: 0, deferred: 0 }, "Count"),
        (counted(0, 0, 0), "Succeed"),
        (counted(2, 0, 0), "Succeed"),
        (counted(2, 0, 2), "Fail"),
        (counted(2, 0, 1), "Fail"),
        (counted(2, 0, 3), "Again"),
        (counted(2, 1, 3), "Again"),
        (counted(0, 0, 1), "Again"),
    ];
    for (stage, expected) in stages {
        let run = run(10, stage);
        let name = |next: &Next| format!("{next:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
        assert_eq!(name(&next(NONE, &agreed("v2", 5, 30), Some(&run))), expected, "{run:?}");
        // Whatever was counted, an agreement that is younger than the checkpoint proves nothing.
        assert_eq!(next(NONE, &agreed("v2", 15, 30), Some(&run)), Next::Begin, "{run:?}");
        if let Stage::Counted { .. } = run.stage {
            let old = next(NONE, &agreed("v2", 5, 19), Some(&run));
            assert!(matches!(old, Next::Await(_)), "what is known is older than the census: {old:?}");
        }
    }
}

#[test]
fn the_owner_has_the_first_word() {
    let (there, walking) = (agreed("v2", 5, 30), run(10, Stage::Walking));
    let paused = Orders { is_paused: true, ..NONE };
    assert_eq!(next(paused, &there, Some(&walking)), Next::Pause);
    let cancelled = Orders { is_cancelled: true, is_paused: true, ..NONE };
    assert_eq!(next(cancelled, &Writers::Disagree(String::new()), Some(&walking)), Next::Cancel);
    let dry = Orders { is_dry_run: true, ..NONE };
    assert_eq!(next(dry, &there, Some(&walking)), Next::Count);
    assert!(matches!(next(dry, &there, Some(&run(10, counted(0, 0, 3)))), Next::Report(_)));
}
