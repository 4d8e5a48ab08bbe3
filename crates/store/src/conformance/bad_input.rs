use std::time::Duration;

use futures_util::StreamExt;

use super::{Subject, within};
use crate::{Compare, Error, KeyRange, MAX_KEY_BYTES, Scan, Txn};

pub(super) async fn senseless_requests_are_refused_and_change_nothing(s: Subject) {
    let before = s.put("k", "v").await;
    let invalid = [
        Txn::new().put("", "v"),
        Txn::new().delete(""),
        Txn::new().compare(Compare::absent("")),
        Txn::new().read_on_failure(""),
        Txn::new().put(s.key("k"), "1").put(s.key("k"), "2"),
        Txn::new().put(s.key("k"), "1").delete(s.key("k")),
        Txn::new().compare(Compare::mod_revision(s.key("k"), 0)).put(s.key("k"), "1"),
        Txn::new().compare(Compare::create_revision(s.key("k"), 0)).put(s.key("k"), "1"),
        Txn::new().put_with_ttl(s.key("k"), "1", Duration::ZERO),
    ];
    for txn in invalid {
        let answer = s.store.transact(txn.clone()).await;
        assert!(matches!(answer, Err(Error::Invalid(_))), "{txn:?}: {answer:?}");
    }
    let long = s.key(vec![b'k'; 8192]);
    let too_large = [
        Txn::new().put(long.clone(), "v"),
        Txn::new().compare(Compare::absent(long.clone())),
        Txn::new().put(s.key("k"), vec![0; 2 << 20]),
        Txn::new().put(s.key("a"), vec![0; 1 << 20]).put(s.key("b"), vec![0; 1 << 20]),
    ];
    for txn in too_large {
        let answer = s.store.transact(txn).await;
        assert!(matches!(answer, Err(Error::TooLarge { .. })), "{answer:?}");
    }
    let scans = [Scan::new(s.range(), 0), Scan::new(s.range(), 1).at(0)];
    for scan in scans {
        assert!(matches!(s.store.scan(scan).await, Err(Error::Invalid(_))));
    }
    let far = KeyRange { start: long, end: None };
    assert!(matches!(s.store.scan(Scan::new(far, 1)).await, Err(Error::TooLarge { .. })));
    let nowhere = within(s.store.follow(0).next()).await;
    assert!(matches!(nowhere, Some(Err(Error::Invalid(_)))), "{nowhere:?}");
    assert_eq!(s.revision().await, before, "nothing happened");
    assert_eq!(s.get("k").await.expect("untouched").value, "v");
}

pub(super) async fn the_future_is_not_readable(s: Subject) {
    let current = s.put("k", "v").await;
    let requested = current + 1_000_000;
    let future = Err(Error::FutureRevision { requested, current });
    assert_eq!(s.store.scan(Scan::new(s.range(), 1).at(requested)).await, future);
    assert_eq!(within(s.store.follow(requested).next()).await, Some(future.map(|_| Vec::new())));
    let absurd = s.store.scan(Scan::new(s.range(), 1).at(u64::MAX)).await;
    assert!(matches!(absurd, Err(Error::FutureRevision { .. })), "{absurd:?}");
    let absurd = within(s.store.follow(u64::MAX).next()).await;
    assert!(matches!(absurd, Some(Err(Error::FutureRevision { .. }))), "{absurd:?}");
    let absurd = s.store.compact(u64::MAX).await;
    assert!(matches!(absurd, Err(Error::FutureRevision { .. })), "{absurd:?}");
    let never = Txn::new().compare(Compare::mod_revision(s.key("k"), u64::MAX)).put(s.key("k"), "x");
    assert!(matches!(s.store.transact(never).await, Err(Error::CompareFailed(_))));
}

pub(super) async fn values_up_to_the_limit_are_kept_whole(s: Subject) {
    let before = s.revision().await;
    let mut stream = s.store.follow(before);
    let sizes = [0, 1, 4095, 4096, 65536, 1 << 20, 1_500_000];
    for size in sizes {
        let value: Vec<u8> = (0..size).map(|n: u32| (n % 251) as u8).collect();
        s.put("k", value.clone()).await;
        assert_eq!(s.get("k").await.expect("just put").value, value);
    }
    let commits = super::take(&mut stream, sizes.len()).await;
    assert_eq!(commits.len(), sizes.len());
    let longest = s.key(vec![b'k'; MAX_KEY_BYTES - s.key("").len()]);
    s.commit(Txn::new().put(longest.clone(), "v")).await;
    let page = s.store.scan(Scan::key(longest.clone())).await.expect("the longest key can be read");
    assert_eq!(page.entries[0].key, longest);
    s.commit(Txn::new().delete(longest)).await;
}
