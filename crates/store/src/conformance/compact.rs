use futures_util::StreamExt;

use super::{Subject, take_until, within};
use crate::{Error, Scan};

pub(super) async fn history_before_the_compaction_is_gone(s: Subject) {
    let first = s.put("a", "1").await;
    s.put("b", "1").await;
    s.put("gone", "x").await;
    s.delete("gone").await;
    let middle = s.put("a", "2").await;
    let after = s.put("a", "3").await;
    let last = s.delete("b").await;

    s.store.compact(middle).await.expect("history can be compacted");

    let scan = |revision| s.store.scan(Scan::new(s.range(), 10).at(revision));
    for revision in first..middle {
        assert_eq!(scan(revision).await, Err(Error::Compacted { oldest: middle }), "scan at {revision}");
        let mut stream = s.store.follow(revision);
        let answer = within(stream.next()).await;
        assert_eq!(answer, Some(Err(Error::Compacted { oldest: middle })), "follow after {revision}");
    }
    let a = |value: &'static str| ("a".into(), value.into());
    assert_eq!(s.state_at(middle).await, [a("2"), ("b".into(), "1".into())]);
    assert_eq!(s.state_at(after).await, [a("3"), ("b".into(), "1".into())]);
    assert_eq!(s.state_at(last).await, [a("3")]);
    let commits = take_until(&mut s.store.follow(middle), middle, last).await;
    assert_eq!(commits.len(), 2);
    assert_eq!(s.get("a").await.expect("live values stay").create_revision, first);
}

pub(super) async fn compacting_again_does_nothing(s: Subject) {
    let first = s.put("a", "1").await;
    let second = s.put("a", "2").await;
    for revision in [second, second, first, 0] {
        s.store.compact(revision).await.expect("compacting what is compacted does nothing");
    }
    assert_eq!(s.state_at(second).await, [("a".into(), "2".into())]);
    let answer = s.store.compact(second + 1000).await;
    assert_eq!(answer, Err(Error::FutureRevision { requested: second + 1000, current: second }));
    s.put("a", "3").await;
    assert_eq!(s.state_at(second).await, [("a".into(), "2".into())], "the oldest revision stays readable");
}
