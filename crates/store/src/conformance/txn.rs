use super::Subject;
use crate::{Change, Compare, Condition, Error, Txn};

pub(super) async fn puts_and_deletes_move_the_key_revisions(s: Subject) {
    let created = s.put("k", "1").await;
    let kv = s.get("k").await.expect("the key exists");
    assert_eq!((kv.create_revision, kv.mod_revision, kv.value.as_ref()), (created, created, b"1".as_ref()));

    let updated = s.put("k", "2").await;
    let kv = s.get("k").await.expect("the key exists");
    assert_eq!((kv.create_revision, kv.mod_revision, kv.value.as_ref()), (created, updated, b"2".as_ref()));

    let same_again = s.put("k", "2").await;
    assert_eq!(same_again, updated + 1, "a put of the same value is a commit like any other");

    s.delete("k").await;
    assert_eq!(s.get("k").await, None);
    let recreated = s.put("k", "3").await;
    let kv = s.get("k").await.expect("the key exists again");
    assert_eq!((kv.create_revision, kv.mod_revision), (recreated, recreated));
}

pub(super) async fn a_commit_takes_exactly_one_revision(s: Subject) {
    let before = s.put("gone", "x").await;
    let txn = Txn::new().put(s.key("a"), "1").put(s.key("b"), "2").delete(s.key("gone"));
    assert_eq!(s.commit(txn).await, before + 1);
    for name in ["a", "b"] {
        assert_eq!(s.get(name).await.expect("written").mod_revision, before + 1);
    }
    assert_eq!(s.get("gone").await, None);
    assert_eq!(s.revision().await, before + 1);
}

pub(super) async fn each_condition_holds_exactly_when_it_should(s: Subject) {
    let created = s.put("k", "1").await;
    let updated = s.put("k", "2").await;
    let table = [
        ("k", Condition::ModRevision(updated), true),
        ("k", Condition::ModRevision(created), false),
        ("k", Condition::ModRevision(updated + 1000), false),
        ("k", Condition::CreateRevision(created), true),
        ("k", Condition::CreateRevision(updated), false),
        ("k", Condition::Absent, false),
        ("none", Condition::Absent, true),
        ("none", Condition::ModRevision(updated), false),
        ("none", Condition::CreateRevision(created), false),
    ];
    for (name, condition, holds) in table {
        let compare = Compare { key: s.key(name), condition };
        let result = s.store.transact(Txn::new().compare(compare)).await;
        match result {
            Ok(_) => assert!(holds, "{condition:?} on {name} should not hold"),
            Err(Error::CompareFailed(_)) => assert!(!holds, "{condition:?} on {name} should hold"),
            Err(other) => panic!("{other}"),
        }
    }
}

pub(super) async fn a_failed_compare_changes_nothing_and_tells_the_current_values(s: Subject) {
    s.put("a", "1").await;
    let before = s.put("b", "2").await;
    let txn = Txn::new()
        .compare(Compare::mod_revision(s.key("b"), before))
        .compare(Compare::absent(s.key("a")))
        .put(s.key("b"), "changed")
        .put(s.key("new"), "x")
        .delete(s.key("a"))
        .read_on_failure(s.key("b"))
        .read_on_failure(s.key("none"))
        .read_on_failure(s.key("a"));
    let Err(Error::CompareFailed(failed)) = s.store.transact(txn).await else { panic!("a exists") };
    assert_eq!(failed.revision, before);
    assert_eq!(failed.current, vec![s.get("b").await, None, s.get("a").await]);
    assert_eq!(failed.current[0].as_ref().map(|kv| kv.value.as_ref()), Some(b"2".as_ref()));
    assert_eq!(s.revision().await, before, "a failed transaction takes no revision");
    assert_eq!(s.state_at(before).await, [("a".into(), "1".into()), ("b".into(), "2".into())]);
}

pub(super) async fn a_hundred_compares_on_keys_that_are_not_written(s: Subject) {
    let fence = s.put("fence", "1").await;
    let mut txn = Txn::new().compare(Compare::create_revision(s.key("fence"), fence)).put(s.key("k"), "v");
    for n in 0..99 {
        txn = txn.compare(Compare::absent(s.key(format!("absent-{n}"))));
    }
    assert_eq!(s.commit(txn.clone()).await, fence + 1);
    s.put("absent-98", "x").await;
    assert!(matches!(s.store.transact(txn).await, Err(Error::CompareFailed(_))));
}

pub(super) async fn what_changes_nothing_takes_no_revision(s: Subject) {
    let before = s.put("k", "1").await;
    assert_eq!(s.commit(Txn::new()).await, before);
    assert_eq!(s.delete("none").await, before);
    assert_eq!(s.revision().await, before);

    let mut stream = s.store.follow(before);
    let mixed = s.commit(Txn::new().delete(s.key("none")).put(s.key("k"), "2")).await;
    assert_eq!(mixed, before + 1);
    let commit = super::take(&mut stream, 1).await.remove(0);
    assert_eq!(commit.revision, mixed);
    let [Change::Put(kv)] = commit.changes.as_slice() else { panic!("only the put is a change") };
    assert_eq!(kv.key, s.key("k"));
}
