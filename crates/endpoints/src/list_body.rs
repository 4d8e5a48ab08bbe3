//! Lists, written while they are sent.

use std::{sync::Arc, vec};

use concord_codec::{List, ListOrder, TypeFields, encode_object};
use concord_meta::Status;
use concord_printers::MetaVersion;
use concord_registry::{Item, Listing, Resource};
use concord_replica::Entry;

use crate::{
    body::{CHUNK, Source},
    transform::metadata_alone,
};

/// What the items of a list are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Items {
    Objects,
    /// Their metadata alone.
    Metadata(MetaVersion),
}

/// Writes a list piece by piece. It holds the stored objects, which are shared, and nothing else.
pub(crate) struct ListWriter {
    resource: Arc<Resource>,
    items: Items,
    /// Gone when the end has been written.
    list: Option<List>,
    entries: vec::IntoIter<Entry>,
    begun: bool,
    size: usize,
}

impl ListWriter {
    pub(crate) fn new(resource: &Arc<Resource>, items: Items, listing: Listing) -> Self {
        let list = match items {
            Items::Objects => {
                let (kind, version) = (&resource.names.list_kind, resource.version.to_string());
                List::new(kind, &version, listing.revision, resource.order)
            }
            Items::Metadata(version) => List::new(
                "PartialObjectMetadataList",
                version.api_version(),
                listing.revision,
                ListOrder::Typed,
            ),
        };
        let list = list.with_next_page(&listing.continue_token, listing.remaining_item_count);
        // A resource version and a comma for each, and what is around them all.
        let size = listing.entries.iter().map(|entry| entry.value.len() + 40).sum::<usize>() + 256;
        let resource = Arc::clone(resource);
        Self { resource, items, list: Some(list), entries: listing.entries.into_iter(), begun: false, size }
    }

    /// About how many bytes there will be.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Everything at once.
    ///
    /// # Errors
    ///
    /// 500 when a stored object cannot be read.
    pub(crate) fn whole(mut self) -> Result<Vec<u8>, Status> {
        let mut out = Vec::with_capacity(self.size);
        while self.fill(usize::MAX, &mut out)? {}
        Ok(out)
    }

    fn begin(&mut self, list: &List, out: &mut Vec<u8>) {
        list.begin(out);
        self.begun = true;
        // Upstream makes a new list of metadata and does not care that nothing is in it.
        let nothing = self.entries.as_slice().is_empty() && matches!(self.items, Items::Metadata(_));
        if nothing && out.ends_with(b"[") {
            out.pop();
        }
    }

    fn end(&mut self, list: List, out: &mut Vec<u8>) {
        let start = out.len();
        list.end(out);
        if start > 0 && out[start - 1] == b':' {
            out.splice(start..=start, *b"null");
        }
    }

    fn item(&self, entry: &Entry, out: &mut Vec<u8>) -> Result<(), Status> {
        let item = Item { key: bytes::Bytes::new(), ..Item::from(entry) };
        match self.items {
            Items::Objects => {
                let fields = match self.resource.order {
                    ListOrder::Typed => TypeFields::Omit,
                    ListOrder::Sorted => TypeFields::Keep,
                };
                self.resource.write_object(&item, fields, out)
            }
            Items::Metadata(version) => {
                encode_object(&metadata_alone(self.resource.object(&item)?, version), out);
                Ok(())
            }
        }
    }
}

/// Reads a byte of every line of memory that the next `enough` bytes are made of.
///
/// Objects lie all over memory. Written one after the other, each waits for its own to arrive; asked for beforehand,
/// where nothing depends on the answer, they arrive many at a time.
fn touch(entries: &[Entry], enough: usize) {
    const LINE: usize = 64;
    let mut bytes = 0;
    let next = entries.iter().take_while(|entry| {
        let begins = bytes;
        bytes += entry.value.len();
        begins < enough
    });
    let lines = next.flat_map(|entry| entry.value.iter().step_by(LINE).chain(entry.value.last()));
    std::hint::black_box(lines.fold(0, |all, byte| all | byte));
}

impl Source for ListWriter {
    /// Writes until there are `enough` bytes.
    fn fill(&mut self, enough: usize, out: &mut Vec<u8>) -> Result<bool, Status> {
        let Some(list) = self.list.take() else { return Ok(false) };
        touch(self.entries.as_slice(), enough.min(CHUNK));
        let mut first = !self.begun;
        if first {
            self.begin(&list, out);
        }
        while out.len() < enough {
            let Some(entry) = self.entries.next() else {
                self.end(list, out);
                return Ok(false);
            };
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            self.item(&entry, out)?;
        }
        self.list = Some(list);
        Ok(true)
    }
}
