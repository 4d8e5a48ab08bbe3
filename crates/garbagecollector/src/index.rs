use std::borrow::Cow;

use bytes::Bytes;
use concord_registry::{ObjectName, Storage};
use concord_replica::{Entry, Snapshot};
use concord_store::{KeyRange, Revision};

use crate::Metadata;

/// All objects of a resource at one revision, in the order of their keys.
///
/// It takes no memory of its own: the replica has every key in order with its revision, and the uid stands in the stored
/// bytes. So it can never disagree with what is stored.
#[derive(Clone, Copy)]
pub struct Index<'a> {
    storage: &'a Storage,
    snapshot: &'a Snapshot,
}

/// An object in an [`Index`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed<'a> {
    /// The key. Going on after it is [`Index::after`].
    pub key: &'a Bytes,
    /// Namespace and name.
    pub name: ObjectName<'a>,
    /// The uid; `None` if the stored bytes cannot be read.
    pub uid: Option<Cow<'a, str>>,
    /// The revision of its last change, which is its resource version.
    pub revision: Revision,
    /// What is stored.
    pub value: &'a Bytes,
}

impl<'a> Index<'a> {
    /// The objects of a storage in a state.
    pub fn new(storage: &'a Storage, snapshot: &'a Snapshot) -> Self {
        Self { storage, snapshot }
    }

    /// How many there are. A walk over their keys, which reads no object.
    pub fn count(self) -> usize {
        self.entries(&KeyRange::prefix(self.storage.prefix.clone())).count()
    }

    /// All of them, in the order of their keys.
    pub fn iter(self) -> impl Iterator<Item = Indexed<'a>> + use<'a> {
        self.indexed(&KeyRange::prefix(self.storage.prefix.clone()))
    }

    /// Those that come after a key, in order: whoever was interrupted goes on there.
    pub fn after(self, key: &[u8]) -> impl Iterator<Item = Indexed<'a>> + use<'a> {
        let next = [key, b"\0"].concat();
        self.indexed(&KeyRange::prefix(self.storage.prefix.clone()).starting_at(next))
    }

    fn indexed(self, range: &KeyRange) -> impl Iterator<Item = Indexed<'a>> + use<'a> {
        self.entries(range).map(|(entry, name)| Indexed {
            key: &entry.key,
            name,
            uid: Metadata::read(&entry.value).map(|metadata| metadata.uid),
            revision: entry.mod_revision,
            value: &entry.value,
        })
    }

    fn entries(self, range: &KeyRange) -> impl Iterator<Item = (&'a Entry, ObjectName<'a>)> + use<'a> {
        let entries = self.snapshot.scan(range);
        entries.filter_map(move |entry| Some((entry, self.storage.object_name(&entry.key)?)))
    }
}
