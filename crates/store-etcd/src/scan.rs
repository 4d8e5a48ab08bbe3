//! Range reads.

use std::sync::atomic::{AtomicUsize, Ordering};

use concord_store::{Error, KeyRange, KeyValue, Revision, Scan, ScanPage};

use crate::{
    call::{Client, Effect, with_leader},
    convert,
    pb::etcdserverpb::{RangeRequest, RangeResponse},
    status::Answer,
    watch,
};

/// What one Range response should have at most, in bytes. Enough that round trips do not matter.
const RESPONSE_BYTES: usize = 4 << 20;

/// A page with more bytes than this is cut short, whatever limit was asked for.
const PAGE_BYTES: usize = 32 << 20;

/// What one Range may ask for, in entries. The lower bound keeps scans of large values moving; the upper
/// one limits the surprise when small values are followed by large ones.
const RESPONSE_ENTRIES: std::ops::RangeInclusive<usize> = 16..=5_000;

/// How large entries turned out to be, so that a Range asks for as many as fit in a response.
#[derive(Debug)]
pub(crate) struct EntrySize(AtomicUsize);

impl Default for EntrySize {
    fn default() -> Self {
        // Before anything is known, as few entries as possible.
        Self(AtomicUsize::new(RESPONSE_BYTES / RESPONSE_ENTRIES.start()))
    }
}

impl EntrySize {
    /// How many entries to ask for.
    fn batch(&self, wanted: usize) -> usize {
        let fit = RESPONSE_BYTES / self.0.load(Ordering::Relaxed).max(1);
        fit.clamp(*RESPONSE_ENTRIES.start(), *RESPONSE_ENTRIES.end()).min(wanted)
    }

    /// Learns from a response: at once when entries are larger than thought, in steps when smaller. A few
    /// entries tell nothing of the others.
    fn learn(&self, entries: usize, bytes: usize) {
        if entries >= *RESPONSE_ENTRIES.start() {
            let known = self.0.load(Ordering::Relaxed);
            self.0.store((bytes / entries).max(known / 8), Ordering::Relaxed);
        }
    }
}

/// Carries out [`concord_store::Store::scan`].
pub(crate) async fn scan(client: &Client, sizes: &EntrySize, scan: Scan) -> Result<ScanPage, Error> {
    scan.validate()?;
    let mut page = Page { revision: scan.revision, entries: Vec::new(), bytes: 0 };
    let mut range = convert::intersection(scan.range, &client.visible);
    if range.is_empty() {
        // The revision must be checked all the same.
        range = KeyRange::key("\0");
    }
    loop {
        let wanted = sizes.batch(scan.limit - page.entries.len());
        let response = read(client, &range, page.revision, wanted).await?;
        let more = page.add(&response, sizes)?;
        let Some(resume) = more else { return Ok(page.end(None)) };
        if page.entries.len() >= scan.limit || page.bytes >= PAGE_BYTES {
            return Ok(page.end(Some(resume)));
        }
        range.start = resume;
    }
}

struct Page {
    /// Set by the first response, so that all others are read at the same.
    revision: Option<Revision>,
    entries: Vec<KeyValue>,
    bytes: usize,
}

impl Page {
    /// Takes over a response and tells where the next one starts, if there is more.
    fn add(&mut self, response: &RangeResponse, sizes: &EntrySize) -> Result<Option<bytes::Bytes>, Error> {
        if self.revision.is_none() {
            self.revision = Some(convert::revision(response.header.as_ref())?);
        }
        let bytes = response.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
        sizes.learn(response.kvs.len(), bytes);
        self.bytes += bytes;
        self.entries.extend(response.kvs.iter().map(convert::key_value));
        match (response.more, response.kvs.last()) {
            (true, Some(last)) => Ok(Some(convert::successor(&last.key))),
            (true, None) => Err(Error::unavailable("etcd has more entries but gives none")),
            (false, _) => Ok(None),
        }
    }

    fn end(self, resume: Option<bytes::Bytes>) -> ScanPage {
        ScanPage { revision: self.revision.unwrap_or_default(), entries: self.entries, resume }
    }
}

/// One linearizable Range.
async fn read(
    client: &Client,
    range: &KeyRange,
    revision: Option<Revision>,
    limit: usize,
) -> Result<RangeResponse, Error> {
    let (key, range_end) = convert::bounds(range);
    let request = RangeRequest {
        key,
        range_end,
        limit: i64::try_from(limit).unwrap_or(i64::MAX),
        revision: revision.map(convert::wire_revision).unwrap_or_default(),
        ..Default::default()
    };
    loop {
        let answer = client
            .call(Effect::Read, |member| {
                let (mut kv, request) = (member.kv.clone(), with_leader(request.clone()));
                async move { kv.range(request).await }
            })
            .await;
        match (answer, revision) {
            (Ok(response), _) => return Ok(response),
            (Err(Answer::Compacted), _) => return Err(compacted(client).await),
            (Err(Answer::FutureRevision), Some(requested)) => future_revision(client, requested).await?,
            (Err(answer), _) => return Err(answer.into_error()),
        }
    }
}

/// The error for a compacted revision. etcd does not tell what is left, except when it cancels a watch.
async fn compacted(client: &Client) -> Error {
    match watch::oldest_revision(client).await {
        Ok(oldest) => Error::Compacted { oldest },
        Err(error) => error,
    }
}

/// The error for a revision that did not exist yet, unless it does by now.
pub(crate) async fn future_revision(client: &Client, requested: Revision) -> Result<(), Error> {
    let current = client.current_revision().await?;
    if requested > current { Err(Error::FutureRevision { requested, current }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_asks_for_what_fits_in_a_response() {
        let sizes = EntrySize::default();
        assert_eq!(sizes.batch(usize::MAX), 16, "nothing is known");
        assert_eq!(sizes.batch(3), 3);
        sizes.learn(16, 16 << 10);
        assert_eq!(sizes.batch(usize::MAX), 128, "a step at a time");
        sizes.learn(128, 128 << 10);
        sizes.learn(1024, 1024 << 10);
        assert_eq!(sizes.batch(usize::MAX), 4096, "entries of 1 KiB");
        sizes.learn(4096, 4096);
        sizes.learn(4096, 4096);
        assert_eq!(sizes.batch(usize::MAX), 5000, "tiny ones");
        sizes.learn(1, 1 << 20);
        assert_eq!(sizes.batch(usize::MAX), 5000, "one entry tells nothing");
        sizes.learn(5000, 5000 << 20);
        assert_eq!(sizes.batch(usize::MAX), 16, "large ones");
    }
}
