use bytes::Bytes;

use super::Subject;
use crate::{KeyRange, Scan, Txn};

pub(super) async fn pages_cover_a_range_once_while_others_write(s: Subject) {
    let names: Vec<String> = (0..57).map(|n| format!("{n:03}")).collect();
    for name in &names {
        s.put(name, name.clone()).await;
    }
    let revision = s.revision().await;
    let (mut seen, mut range, mut pages) = (Vec::new(), s.range(), 0);
    loop {
        let page =
            s.store.scan(Scan::new(range.clone(), 10).at(revision)).await.expect("the revision is kept");
        assert!(page.entries.len() <= 10);
        seen.extend(page.entries.into_iter().map(|kv| kv.value));
        // Disturb both sides of the place the next page starts at.
        s.delete(&format!("{pages:03}")).await;
        s.put(&format!("{:03}", 56 - pages), "changed").await;
        s.put(&format!("{:03}-new", pages * 10 + 5), "new").await;
        pages += 1;
        match page.resume {
            Some(resume) => range = range.starting_at(resume),
            None => break,
        }
    }
    assert_eq!(seen, names);
}

pub(super) async fn every_revision_can_be_read_again(s: Subject) {
    let mut expected: Vec<(u64, Vec<(Bytes, Bytes)>)> = Vec::new();
    let steps = [
        Txn::new().put(s.key("a"), "1"),
        Txn::new().put(s.key("b"), "1"),
        Txn::new().put(s.key("a"), "2").put(s.key("c"), "1"),
        Txn::new().delete(s.key("b")),
        Txn::new().put(s.key("b"), "2").delete(s.key("a")),
        Txn::new().put(s.key("a"), "3"),
    ];
    for step in steps {
        let revision = s.commit(step).await;
        let page = s.store.scan(Scan::new(s.range(), 100)).await.expect("a scan");
        assert_eq!(page.revision, revision, "the latest revision is the one just made");
        let skip = s.key("").len();
        let state = page.entries.into_iter().map(|kv| (kv.key.slice(skip..), kv.value)).collect();
        expected.push((revision, state));
    }
    for (revision, state) in expected {
        assert_eq!(s.state_at(revision).await, state, "at revision {revision}");
    }
}

pub(super) async fn ranges_mean_what_they_say(s: Subject) {
    let names: [&[u8]; 7] = [b"a", b"a\0", b"a/b", b"a\xff", b"a\xff\xff", b"b", b"\xff"];
    for name in names {
        s.commit(Txn::new().put(s.key(name), Bytes::from(name.to_vec()))).await;
    }
    let table: [(KeyRange, &[&[u8]]); 6] = [
        (KeyRange::key(s.key("a")), &[b"a"]),
        (KeyRange::prefix(s.key("a")), &[b"a", b"a\0", b"a/b", b"a\xff", b"a\xff\xff"]),
        (KeyRange::prefix(s.key(b"a\xff")), &[b"a\xff", b"a\xff\xff"]),
        (KeyRange::prefix(s.key(b"\xff")), &[b"\xff"]),
        (KeyRange::prefix(s.key("a")).starting_at(s.key("b")), &[]),
        (s.range().starting_at(s.key(b"a\xff\0")), &[b"a\xff\xff", b"b", b"\xff"]),
    ];
    for (range, expected) in table {
        let page = s.store.scan(Scan::new(range.clone(), 100)).await.expect("any range can be scanned");
        let values: Vec<&[u8]> = page.entries.iter().map(|kv| kv.value.as_ref()).collect();
        assert_eq!(values, expected, "{range:?}");
        assert_eq!(page.resume, None);
    }
    let everything =
        s.store.scan(Scan::new(KeyRange::all(), usize::MAX)).await.expect("no limit is too high");
    assert!(everything.entries.len() >= names.len());
}

pub(super) async fn a_full_last_page_has_no_next(s: Subject) {
    for name in ["a", "b", "c"] {
        s.put(name, "x").await;
    }
    let page = s.store.scan(Scan::new(s.range(), 3)).await.expect("a scan");
    assert_eq!((page.entries.len(), page.resume), (3, None));
    let page = s.store.scan(Scan::new(s.range(), 2)).await.expect("a scan");
    let resume = page.resume.expect("one entry is left");
    assert!(resume > s.key("b") && resume <= s.key("c"));
}
