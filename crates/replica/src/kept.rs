//! Values as the history keeps them.
//!
//! A large value that has been superseded is there for those who ask for the past, which are few, and
//! takes as much memory as the one that is current. So it is packed. Both events that know it, the one
//! that brought it and the one that superseded it, refer to the same [`Large`], whose form changes for
//! both at once, also in snapshots and in replays that were begun before.
//!
//! Most of a large value is the same after a change, such as the schema of a definition that is told to be
//! established. So it is packed with the value that came after it, whatever that one's form is by then, and what is
//! left is about what differs. Of a value that is changed all the time only the newest is there as it is, so that the
//! way to an old one would be long: after [`LONGEST_WAY`] of them one is packed by itself.
//!
//! A packed value is unpacked for whoever asks, and forgotten when nobody holds it any more: reading
//! the past never makes it larger again for good.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use concord_store::{KeyValue, Revision};
use parking_lot::Mutex;

use crate::{
    Entry,
    packed::{Packed, Packer},
};

/// Values of so many bytes are packed when they are superseded. Packing one takes as long as applying ten
/// changes or more, so it has to be worth it: definitions and large ConfigMaps are such values, and hardly
/// any object that is changed all the time is, such as leases, events and pods.
pub(crate) const LARGE_BYTES: usize = 8 << 10;

/// How many values are unpacked at most for one that was packed with another one.
pub(crate) const LONGEST_WAY: usize = 4;

/// A value that some event of the history is about.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    Small(Entry),
    Large(Arc<Large>),
}

/// A value that is packed once it is superseded.
#[derive(Debug)]
pub(crate) struct Large {
    /// Its own copy: the entry's may be part of a buffer that has the value as well.
    key: Bytes,
    /// How many values before it are unpacked one by the other and the last of them by this one.
    way: AtomicUsize,
    form: Mutex<Form>,
}

#[derive(Debug)]
enum Form {
    /// It is current, or it cannot be packed.
    Whole(Entry),
    Packed {
        packed: Packed,
        /// What it was packed with.
        with: Option<Arc<Large>>,
        create_revision: Revision,
        mod_revision: Revision,
        /// While somebody has it there is no need to unpack it again.
        whole: Weak<KeyValue>,
    },
}

/// Whether a value is worth packing when it is superseded.
pub(crate) fn is_large(entry: &Entry) -> bool {
    entry.value.len() >= LARGE_BYTES
}

impl Kept {
    /// A value that is current.
    pub(crate) fn new(entry: &Entry) -> Self {
        if is_large(entry) { Self::Large(Large::new(entry)) } else { Self::Small(Arc::clone(entry)) }
    }

    pub(crate) fn key(&self) -> &Bytes {
        match self {
            Self::Small(entry) => &entry.key,
            Self::Large(large) => &large.key,
        }
    }

    pub(crate) fn large(&self) -> Option<&Arc<Large>> {
        match self {
            Self::Small(_) => None,
            Self::Large(large) => Some(large),
        }
    }

    /// The whole entry.
    pub(crate) fn entry(&self) -> Entry {
        match self {
            Self::Small(entry) => Arc::clone(entry),
            Self::Large(large) => large.entry(),
        }
    }

    /// What it takes: key and value, as they are kept.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Small(entry) => entry.key.len() + entry.value.len(),
            Self::Large(large) => large.bytes(),
        }
    }
}

impl Large {
    pub(crate) fn new(entry: &Entry) -> Arc<Self> {
        let key = Bytes::copy_from_slice(&entry.key);
        let form = Mutex::new(Form::Whole(Arc::clone(entry)));
        Arc::new(Self { key, way: AtomicUsize::new(0), form })
    }

    /// Packs the value if that pays. The caller has superseded it, by `next` if that is large as well.
    pub(crate) fn pack(&self, next: Option<&Arc<Self>>, packer: &mut Packer) {
        let entry = match &*self.form.lock() {
            Form::Whole(entry) => Arc::clone(entry),
            Form::Packed { .. } => return,
        };
        let way = self.way.load(Ordering::Relaxed) + 1;
        let with = next.filter(|_| way <= LONGEST_WAY).map(|next| (next, next.entry()));
        // Not under the lock, which readers may wait for.
        let packed = packer.pack(&entry.value, with.as_ref().map_or(&[], |(_, other)| &other.value));
        let Some(packed) = packed else { return };
        let with = with.map(|(next, _)| {
            next.way.store(way, Ordering::Relaxed);
            Arc::clone(next)
        });
        *self.form.lock() = Form::Packed {
            packed,
            with,
            create_revision: entry.create_revision,
            mod_revision: entry.mod_revision,
            whole: Arc::downgrade(&entry),
        };
    }

    fn entry(&self) -> Entry {
        match &mut *self.form.lock() {
            Form::Whole(entry) => Arc::clone(entry),
            // Under the lock, so that of many who come at once one unpacks it for all. The one task that
            // applies changes is none of them. Whoever has several locks took them in the order of revisions.
            Form::Packed { packed, with, create_revision, mod_revision, whole } => {
                whole.upgrade().unwrap_or_else(|| {
                    let with = with.as_ref().map(|other| other.entry());
                    let value = packed.unpack(with.as_ref().map_or(&[], |other| &other.value));
                    let entry = Arc::new(KeyValue {
                        key: self.key.clone(),
                        value: value.into(),
                        create_revision: *create_revision,
                        mod_revision: *mod_revision,
                    });
                    *whole = Arc::downgrade(&entry);
                    entry
                })
            }
        }
    }

    fn bytes(&self) -> usize {
        let value = match &*self.form.lock() {
            Form::Whole(entry) => entry.value.len(),
            Form::Packed { packed, .. } => packed.len(),
        };
        self.key.len() + value
    }
}

#[cfg(test)]
impl Kept {
    /// Whether somebody can have it without unpacking it.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Small(_) => true,
            Self::Large(large) => match &*large.form.lock() {
                Form::Whole(_) => true,
                Form::Packed { whole, .. } => whole.strong_count() > 0,
            },
        }
    }
}
