use std::time::Duration;

use bytes::Bytes;
use concord_codec::encode_object;
use concord_meta::{
    Status,
    options::{ContinueToken, ListOptions, ReadAt},
};
use concord_replica::{Entry, Error, Snapshot};
use concord_store::{KeyRange, KeyValue, Revision};

use crate::{Object, Registry, Selection, Storage, failure, remote::BATCH_OBJECTS};

/// How long a read waits for a revision that is not here yet, as upstream does.
pub(crate) const WAIT_FOR_REVISION: Duration = Duration::from_secs(3);
/// How long a read of the newest state waits for the store to say what that is.
pub(crate) const WAIT_FOR_STORE: Duration = Duration::from_secs(10);

/// A list that is asked for.
#[derive(Clone, Copy)]
pub struct ListRequest<'a> {
    /// The namespace; `None` for all of them and for cluster-scoped resources.
    pub namespace: Option<&'a str>,
    /// Everything else.
    pub options: &'a ListOptions,
}

/// The objects of a list, as they are stored.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The objects, in the order of their keys.
    pub entries: Vec<Entry>,
    /// The revision of the whole list; 0, as that of its entries, if it is not of what is stored.
    pub revision: Revision,
    /// How to get the next page; empty if there is none.
    pub continue_token: String,
    /// How many objects follow this page, if that is known.
    pub remaining_item_count: Option<u64>,
}

impl Listing {
    /// A list of what is stored nowhere.
    pub fn of_objects(objects: impl IntoIterator<Item = Object>) -> Self {
        let entry = |object: Object| {
            let mut value = Vec::new();
            encode_object(&object, &mut value);
            Entry::new(KeyValue {
                key: Bytes::new(),
                value: value.into(),
                create_revision: 0,
                mod_revision: 0,
            })
        };
        let entries = objects.into_iter().map(entry).collect();
        Self { entries, revision: 0, continue_token: String::new(), remaining_item_count: None }
    }

    /// The resource version of the whole list; empty if it has none.
    #[must_use]
    pub fn resource_version(&self) -> String {
        if self.revision == 0 { String::new() } else { self.revision.to_string() }
    }
}

/// A list that has its place in the log, and has not been read yet.
pub struct PlacedList<'a> {
    storage: &'a Storage,
    selection: Selection,
    position: Position,
}

/// Where a list is read, and from which key on.
struct Position {
    snapshot: Snapshot,
    start: Option<Bytes>,
    limit: usize,
}

impl PlacedList<'_> {
    /// The revision that it is read at, where everybody who asks for the same gets the same. `None` where somebody else
    /// has to be asked what objects say, and may say something else the next time.
    pub fn settled_at(&self) -> Option<Revision> {
        (!self.storage.is_translated()).then(|| self.position.snapshot.revision())
    }

    /// The objects.
    ///
    /// # Errors
    ///
    /// 500 when somebody else has to be asked what an object says, and does not answer.
    pub async fn read(self) -> Result<Listing, Status> {
        let Self { storage, selection, position } = self;
        let mut range = selection.scope(storage).range();
        if let Some(start) = position.start {
            range = range.starting_at(start);
        }
        let (snapshot, limit) = (&position.snapshot, position.limit);
        if storage.is_translated() && selection.reads_objects() {
            return translated_page(storage, &selection, snapshot, &range, limit).await;
        }
        Ok(page(storage, &selection, snapshot, &range, limit))
    }
}

impl Registry {
    /// The objects of a collection.
    ///
    /// # Errors
    ///
    /// 400 for a bad token or selector, 410 for a state that is gone, 504 for one that is not here yet.
    pub async fn list(&self, storage: &Storage, request: ListRequest<'_>) -> Result<Listing, Status> {
        self.place(storage, request).await?.read().await
    }

    /// Finds the state that a list is to be read from.
    ///
    /// # Errors
    ///
    /// As [`Registry::list`].
    pub async fn place<'a>(
        &self,
        storage: &'a Storage,
        request: ListRequest<'_>,
    ) -> Result<PlacedList<'a>, Status> {
        let options = request.options;
        let selection =
            Selection::new(storage, request.namespace, &options.label_selector, &options.field_selector)?;
        let position = self.position(storage, &selection, options).await?;
        Ok(PlacedList { storage, selection, position })
    }

    async fn position(
        &self,
        storage: &Storage,
        selection: &Selection,
        options: &ListOptions,
    ) -> Result<Position, Status> {
        // Everything comes at once when any state will do, also when it goes on: upstream's cache answers so.
        let is_limited = options.resource_version != "0";
        let limit = usize::try_from(options.limit).ok().filter(|_| is_limited).unwrap_or_default();
        let read_at = options.read_at()?;
        if read_at == ReadAt::Continue {
            let token = ContinueToken::decode(&options.continue_token)?;
            return self.resume(storage, selection, token, limit).await;
        }
        let snapshot = self.snapshot(read_at).await?;
        Ok(Position { snapshot, start: None, limit })
    }

    /// The state that a read asks for.
    pub(crate) async fn snapshot(&self, read_at: ReadAt) -> Result<Snapshot, Status> {
        let snapshot = match read_at {
            ReadAt::MostRecent | ReadAt::Continue => self.replica.consistent(WAIT_FOR_STORE).await,
            ReadAt::Any => self.replica.newest(),
            ReadAt::NotOlderThan(revision) => self.replica.not_older_than(revision, WAIT_FOR_REVISION).await,
            ReadAt::Exact(revision) => {
                let newer = self.replica.not_older_than(revision, WAIT_FOR_REVISION).await;
                newer.and_then(|snapshot| snapshot.at(revision))
            }
        };
        snapshot.map_err(|error| failure::read_failed(&error))
    }

    async fn resume(
        &self,
        storage: &Storage,
        selection: &Selection,
        token: ContinueToken,
        limit: usize,
    ) -> Result<Position, Status> {
        let relative = token.start.strip_prefix('/').unwrap_or(&token.start);
        let mut start = storage.key_prefix(selection.namespace()).to_vec();
        start.extend_from_slice(relative.as_bytes());
        let start = Some(Bytes::from(start));
        let Some(revision) = token.revision else {
            let snapshot = self.snapshot(ReadAt::MostRecent).await?;
            return Ok(Position { snapshot, start, limit });
        };
        let newer = self.replica.not_older_than(revision, WAIT_FOR_REVISION).await;
        match newer.and_then(|snapshot| snapshot.at(revision)) {
            Ok(snapshot) => Ok(Position { snapshot, start, limit }),
            Err(Error::Expired { .. }) => {
                let token = ContinueToken { revision: None, start: token.start }.encode();
                Err(Status::continue_expired(Some(&token)))
            }
            Err(error) => Err(failure::read_failed(&error)),
        }
    }
}

/// The entries of the range that are meant, up to the limit; 0 is none.
fn page(
    storage: &Storage,
    selection: &Selection,
    snapshot: &Snapshot,
    range: &KeyRange,
    limit: usize,
) -> Listing {
    let mut entries = snapshot.scan(range);
    let mut meant = Vec::new();
    let mut more = false;
    for entry in entries.by_ref() {
        if !selection.matches(storage, entry) {
            continue;
        }
        if limit > 0 && meant.len() == limit {
            more = true;
            break;
        }
        meant.push(entry.clone());
    }
    // The one that was taken to see that there are more is one of them.
    let rest = more.then(|| 1 + entries.count() as u64);
    listing(storage, selection, snapshot, meant, rest)
}

/// As [`page`], where somebody else has to be asked what an object says that decides whether it is meant.
async fn translated_page(
    storage: &Storage,
    selection: &Selection,
    snapshot: &Snapshot,
    range: &KeyRange,
    limit: usize,
) -> Result<Listing, Status> {
    let mut entries: Vec<Entry> = snapshot.scan(range).cloned().collect();
    let mut meant = Vec::new();
    for batch in entries.chunks_mut(BATCH_OBJECTS) {
        storage.translate_entries(&mut batch.iter_mut().collect::<Vec<_>>()).await?;
        meant.extend(batch.iter().filter(|entry| selection.matches(storage, entry)).cloned());
        if limit > 0 && meant.len() > limit {
            let rest = meant.split_off(limit).len() as u64;
            return Ok(listing(storage, selection, snapshot, meant, Some(rest)));
        }
    }
    Ok(listing(storage, selection, snapshot, meant, None))
}

/// A page with these entries; `rest` is how many objects follow, if any do, which is told only if all are meant.
fn listing(
    storage: &Storage,
    selection: &Selection,
    snapshot: &Snapshot,
    entries: Vec<Entry>,
    rest: Option<u64>,
) -> Listing {
    let remaining_item_count = rest.filter(|_| selection.is_everything());
    let revision = snapshot.revision();
    let mut listing = Listing { entries, revision, continue_token: String::new(), remaining_item_count };
    if rest.is_some() {
        listing.continue_token = next_token(storage, selection, &listing);
    }
    listing
}

fn next_token(storage: &Storage, selection: &Selection, listing: &Listing) -> String {
    let Some(last) = listing.entries.last() else { return String::new() };
    let prefix = storage.key_prefix(selection.namespace());
    let relative = last.key.strip_prefix(prefix.as_ref()).unwrap_or_default();
    // The first key that can follow the last one given out.
    let start = format!("{}\0", String::from_utf8_lossy(relative));
    ContinueToken { revision: Some(listing.revision), start }.encode()
}
