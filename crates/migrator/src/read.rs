//! Reading what is kept, a part at a time.

use bytes::Bytes;
use concord_registry::Registry;
use concord_store::{Error, KeyRange, Scan, ScanPage};

/// The first entries of a range, as they are kept, and where to go on.
///
/// etcd goes through all keys of a range, however few of them are asked for, and nobody writes meanwhile: of 100,000 objects
/// that takes 20 ms for every page. So a part is read that ends where as many keys end as are wanted and this server knows of.
/// Whatever else is in it is read with them.
pub(crate) async fn read_kept(registry: &Registry, scan: Scan) -> Result<ScanPage, Error> {
    let known = registry.replica().newest().ok();
    let next = known.and_then(|known| Some(known.scan(&scan.range).nth(scan.limit)?.key.clone()));
    let range = part(scan.range, next.as_ref());
    let mut page = registry.store().scan_kept(Scan { range, ..scan }).await?;
    page.resume = page.resume.or(next);
    Ok(page)
}

/// What is before `next`, if there is such a key.
fn part(range: KeyRange, next: Option<&Bytes>) -> KeyRange {
    let end = next.cloned().or(range.end);
    KeyRange { end, ..range }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_where_the_next_one_begins() {
        let all = KeyRange::prefix("/a/").starting_at("/a/3");
        let one = part(all.clone(), Some(&Bytes::from_static(b"/a/7")));
        assert_eq!((&one.start[..], one.end.as_deref()), (&b"/a/3"[..], Some(&b"/a/7"[..])));
        assert_eq!(part(all.clone(), None), all, "the last one");
    }
}
