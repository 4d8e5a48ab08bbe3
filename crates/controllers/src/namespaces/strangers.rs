//! What is stored in a namespace though this server does not serve it.
//!
//! Another server of the fleet may: one of a newer release, or one with more APIs turned on. Its objects are not this
//! server's to delete, but a namespace that still has some is not empty.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use bytes::Bytes;
use concord_registry::{Resources, stored_version};
use concord_replica::{Entry, Snapshot};
use concord_store::KeyRange;
use serde::Deserialize;

/// The objects of a namespace that are not served here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Strangers {
    /// How many there are, by the version that they are stored in.
    pub(super) objects: BTreeMap<String, usize>,
    /// What their keys begin with.
    pub(super) places: Vec<Bytes>,
}

/// Where an object says that it is.
#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
}

impl Strangers {
    /// Those in a state. `root` is what all keys begin with, and below it objects are stored as `resource/namespace/name`
    /// or as `group/resource/namespace/name`. What is served is stepped over as a whole, so that this takes as long as
    /// there are resources, and not as long as there are objects.
    pub(super) fn find(
        resources: &dyn Resources,
        snapshot: &Snapshot,
        root: &Bytes,
        namespace: &str,
    ) -> Self {
        let served: HashSet<Bytes> =
            resources.all().iter().filter_map(|found| Some(found.storage()?.prefix.clone())).collect();
        let mut found = Self::default();
        let mut rest = KeyRange::prefix(root.clone());
        while let Some(entry) = snapshot.scan(&rest).next() {
            let mut within = directories(&entry.key, root.len());
            let known = directories(&entry.key, root.len()).find(|within| served.contains(*within));
            let done = match (known, within.nth(1)) {
                (Some(known), _) => known,
                (None, Some(unknown)) => {
                    found.look_into(snapshot, unknown, namespace);
                    unknown
                }
                // Whatever it is, it is in no namespace.
                (None, None) => &entry.key,
            };
            let range = match done.ends_with(b"/") {
                true => KeyRange::prefix(Bytes::copy_from_slice(done)),
                false => KeyRange::key(entry.key.clone()),
            };
            let Some(next) = range.end else { break };
            rest = rest.starting_at(next);
        }
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Counts what is of the namespace in `resource/namespace/` or in `group/resource/`.
    fn look_into(&mut self, snapshot: &Snapshot, directory: &[u8], namespace: &str) {
        let last = [b"/", namespace.as_bytes(), b"/"].concat();
        let place = match directory.ends_with(&last) {
            true => directory.to_vec(),
            false => [directory, &last[1..]].concat(),
        };
        let place = Bytes::from(place);
        let mut any = false;
        let range = KeyRange::prefix(place.clone());
        for entry in snapshot.scan(&range).filter(|entry| is_in(entry, namespace)) {
            let version = stored_version(&entry.value).unwrap_or("unknown");
            *self.objects.entry(version.to_owned()).or_default() += 1;
            any = true;
        }
        self.places.extend(any.then_some(place));
    }
}

/// The directories that a key is in, the outermost below the root first, with the slashes at their ends.
fn directories(key: &[u8], root: usize) -> impl Iterator<Item = &[u8]> {
    let slashes = key.iter().enumerate().skip(root).filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &key[..=at])
}

/// Whether an object is in the namespace, by its own word; one that cannot be read is where its key says.
fn is_in(entry: &Entry, namespace: &str) -> bool {
    let stored: Result<Stored<'_>, _> = serde_json::from_slice(&entry.value);
    stored.map_or(true, |stored| stored.metadata.namespace == namespace)
}
