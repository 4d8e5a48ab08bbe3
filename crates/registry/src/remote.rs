//! Objects of which only somebody else knows what they are in another version.
//!
//! Reading, listing, watching and changing such objects is done as for all others, on bytes and without waiting, once they
//! are in the version that is asked for. To bring them there is a step of its own at the edges: [`Resource::translate`]
//! before an object is read, `Resource::encode_stored` before one is written. Resources that need no such step pass through
//! it without a copy.

use std::{
    collections::{HashMap, VecDeque},
    slice,
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_meta::{GroupVersion, Status};
use concord_replica::Entry;
use concord_store::KeyValue;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::MutexGuard;

use crate::{
    ConversionError, Item, Listing, Object, Resource, Storage,
    encode::{stored_bytes, stored_object, stored_prefix},
    metadata_mut,
};

/// How much is kept of what was converted, in bytes of what it was made of and what was made of it.
const KEPT_BYTES: usize = 8 << 20;
/// How much is sent at once, in bytes of stored objects and in objects.
const BATCH_BYTES: usize = 1 << 20;
pub(crate) const BATCH_OBJECTS: usize = 500;

/// Somebody who converts objects when asked.
#[async_trait]
pub trait Translator: Send + Sync + 'static {
    /// The same objects in that version, in the same order. None of them is in it already.
    ///
    /// # Errors
    ///
    /// With the reason, which the client sees.
    async fn translate(&self, objects: &[Object], to: &GroupVersion) -> Result<Vec<Object>, ConversionError>;
}

/// A translator, and what it said lately.
pub struct Remote {
    translator: Arc<dyn Translator>,
    said: Mutex<Said>,
    /// Held by the watcher that asks.
    turn: tokio::sync::Mutex<()>,
}

/// Stored bytes, by the version asked for, and what they are in it. What is stored never changes what it means while a
/// definition stays the same, so that nothing in here is ever wrong; it only gets old.
#[derive(Default)]
struct Said {
    answers: HashMap<(GroupVersion, Bytes), Bytes>,
    order: VecDeque<(GroupVersion, Bytes)>,
    bytes: usize,
}

impl Said {
    fn keep(&mut self, version: &GroupVersion, source: &Bytes, made: &Bytes) {
        let key = (version.clone(), source.clone());
        if self.answers.insert(key.clone(), made.clone()).is_none() {
            self.bytes += source.len() + made.len();
            self.order.push_back(key);
        }
        while self.bytes > KEPT_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            let made = self.answers.remove(&oldest).map_or(0, |made| made.len());
            self.bytes = self.bytes.saturating_sub(oldest.1.len() + made);
        }
    }
}

impl Remote {
    /// Asks this translator.
    pub fn new(translator: Arc<dyn Translator>) -> Self {
        Self { translator, said: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    pub(crate) async fn ask(
        &self,
        objects: &[Object],
        to: &GroupVersion,
    ) -> Result<Vec<Object>, ConversionError> {
        let made = self.translator.translate(objects, to).await?;
        if made.len() != objects.len() {
            let (made, asked) = (made.len(), objects.len());
            return Err(ConversionError(format!("{made} objects were converted, not {asked}")));
        }
        Ok(made)
    }

    fn find(&self, version: &GroupVersion, source: &Bytes) -> Option<Bytes> {
        self.said.lock().answers.get(&(version.clone(), source.clone())).cloned()
    }
}

/// The end of the batch that begins here.
fn batch_end(values: &[Bytes], missing: &[usize]) -> usize {
    let mut bytes = 0;
    let fits = |index: &&usize| {
        bytes += values[**index].len();
        bytes <= BATCH_BYTES
    };
    missing.iter().take(BATCH_OBJECTS).take_while(fits).count().max(1)
}

impl Storage {
    fn remote(&self) -> Option<&Remote> {
        self.converter.remote()
    }

    /// The object as it is stored, in the version it is stored in, with its resource version: its metadata is the same in
    /// all versions. What is deleted needs not be converted.
    pub(crate) fn object_to_delete(&self, item: &Item) -> Result<Object, Status> {
        if self.remote().is_none() {
            return self.object(item);
        }
        let mut object = stored_object(&item.value)?;
        if let Some(revision) = item.revision {
            metadata_mut(&mut object).insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        Ok(object)
    }

    /// The bytes of an object that is being deleted, in the version it was stored in.
    pub(crate) fn encode_deleted(&self, object: &mut Object) -> Result<Bytes, Status> {
        if self.remote().is_none() {
            return self.encode(object);
        }
        metadata_mut(object).remove("resourceVersion");
        Ok(stored_bytes(object))
    }
}

impl Storage {
    /// Whether objects may have to be translated before they are what clients of this version get.
    pub(crate) fn is_translated(&self) -> bool {
        self.remote().is_some()
    }

    /// Waits until nobody else who waits like this is asking. Watchers want the same objects at the same time: whoever
    /// comes second finds what the first one was told.
    pub(crate) async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        Some(self.remote()?.turn.lock().await)
    }

    /// Brings stored objects into the version that this storage works in, at once as far as possible.
    ///
    /// # Errors
    ///
    /// As [`Resource::translate`].
    pub(crate) async fn translate_entries(&self, entries: &mut [&mut Entry]) -> Result<(), Status> {
        let mut values: Vec<Bytes> = entries.iter().map(|entry| entry.value.clone()).collect();
        self.translate_all(&mut values).await?;
        for (entry, value) in entries.iter_mut().zip(values) {
            if entry.value != value {
                **entry = Arc::new(KeyValue { value, ..KeyValue::clone(entry) });
            }
        }
        Ok(())
    }

    async fn translate_all(&self, values: &mut [Bytes]) -> Result<(), Status> {
        let Some(remote) = self.remote() else { return Ok(()) };
        let translated = stored_prefix(&self.kind, &self.version.to_string());
        let mut missing = Vec::new();
        for (index, value) in values.iter_mut().enumerate() {
            if value.starts_with(&translated) {
                continue;
            }
            match remote.find(&self.version, value) {
                Some(made) => *value = made,
                None => missing.push(index),
            }
        }
        let mut missing = missing.as_slice();
        while !missing.is_empty() {
            let (batch, rest) = missing.split_at(batch_end(values, missing));
            self.translate_batch(remote, values, batch).await?;
            missing = rest;
        }
        Ok(())
    }

    async fn translate_batch(
        &self,
        remote: &Remote,
        values: &mut [Bytes],
        batch: &[usize],
    ) -> Result<(), Status> {
        let mut objects = Vec::with_capacity(batch.len());
        for index in batch {
            let mut object = stored_object(&values[*index])?;
            let stored = object.get("apiVersion").and_then(Value::as_str);
            if let Some(form) = stored.and_then(|stored| self.form(stored)) {
                form.renew(&mut object);
            }
            objects.push(object);
        }
        let made = remote.ask(&objects, &self.version).await.map_err(refused)?;
        let form = self.form(&self.version.to_string());
        for (index, mut object) in batch.iter().zip(made) {
            if let Some(form) = form {
                form.fit(&mut object);
            }
            // It is kept, unlike what stores are given, and so without room left over.
            let made = Bytes::copy_from_slice(&stored_bytes(&object));
            remote.said.lock().keep(&self.version, &values[*index], &made);
            values[*index] = made;
        }
        Ok(())
    }
}

/// A kind that needs somebody else to convert it has a storage for each version, which works in that version.
impl Resource {
    /// Brings a stored object into the version of this resource, if that takes somebody who has to be asked. Every other
    /// object stays as it is.
    ///
    /// # Errors
    ///
    /// 500 with what the one who was asked said.
    pub async fn translate(&self, mut item: Item) -> Result<Item, Status> {
        if let Some(storage) = self.storage() {
            storage.translate_all(slice::from_mut(&mut item.value)).await?;
        }
        Ok(item)
    }

    /// [`Resource::translate`] for all objects of a list, at once as far as possible.
    ///
    /// # Errors
    ///
    /// As [`Resource::translate`].
    pub async fn translate_list(&self, mut listing: Listing) -> Result<Listing, Status> {
        if let Some(storage) = self.storage().filter(|storage| storage.is_translated()) {
            let mut entries: Vec<&mut Entry> = listing.entries.iter_mut().collect();
            storage.translate_entries(&mut entries).await?;
        }
        Ok(listing)
    }

    /// The bytes that an object of this resource is stored as. What cannot be read again afterwards is not stored: it is
    /// brought back into the version of this resource before, and whoever answers with it finds it so.
    ///
    /// # Errors
    ///
    /// 500 when it cannot be converted.
    pub(crate) async fn encode_stored(
        &self,
        storage: &Storage,
        object: &mut Object,
    ) -> Result<Bytes, Status> {
        let Some(remote) = storage.remote().filter(|_| storage.encoding != storage.version) else {
            return storage.encode(object);
        };
        metadata_mut(object).remove("resourceVersion");
        storage.strategy.before_encoding(object);
        let mut made = remote.ask(slice::from_ref(object), &storage.encoding).await.map_err(refused)?;
        let Some(mut stored) = made.pop() else { return storage.encode(object) };
        if let Some(form) = storage.form(&storage.encoding.to_string()) {
            form.renew(&mut stored);
        }
        let value = stored_bytes(&stored);
        storage.translate_all(&mut [value.clone()]).await?;
        Ok(value)
    }
}

/// As upstream answers it: 500, and nothing but what was said.
fn refused(error: ConversionError) -> Status {
    Status::untyped(error.0)
}

/// Conversions that a pure function asked for and could not wait for. It is called again when they have been made.
#[derive(Default)]
pub(crate) struct Conversions(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    made: Vec<(Value, GroupVersion, Result<Value, String>)>,
    open: Vec<(Value, GroupVersion)>,
}

impl Conversions {
    /// What was made of an object, if it was asked for before. Else it is asked for.
    pub(crate) fn find(&self, object: &Value, to: &GroupVersion) -> Option<Result<Value, String>> {
        let mut asked = self.0.lock();
        let found = asked.made.iter().find(|(from, version, _)| version == to && from == object);
        if let Some((_, _, made)) = found {
            return Some(made.clone());
        }
        asked.open.push((object.clone(), to.clone()));
        None
    }

    /// Has the conversions made that were asked for. False if there are none, so that what was computed counts.
    pub(crate) async fn make(&self, storage: &Storage) -> bool {
        let open = std::mem::take(&mut self.0.lock().open);
        let Some(remote) = storage.remote().filter(|_| !open.is_empty()) else { return false };
        for (object, version) in open {
            let made = match object.as_object() {
                Some(object) => remote.ask(slice::from_ref(object), &version).await,
                None => Err(ConversionError("not an object".to_owned())),
            };
            let made =
                made.map(|mut made| made.pop().map_or(Value::Null, Value::Object)).map_err(|error| error.0);
            self.0.lock().made.push((object, version, made));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut said, version) = (Said::default(), GroupVersion::new("g.io", "v1"));
        let value = |number: u8| Bytes::from(vec![number; 100_000]);
        for number in 0..200 {
            said.keep(&version, &value(number), &Bytes::from_static(b"made"));
        }
        assert!(said.bytes <= KEPT_BYTES && said.bytes > KEPT_BYTES / 2, "{}", said.bytes);
        assert_eq!((said.answers.len(), said.order.len()), (83, 83));
        assert!(said.answers.contains_key(&(version.clone(), value(199))), "the latest is there");
        assert!(!said.answers.contains_key(&(version.clone(), value(0))), "the first is not");
        let before = said.bytes;
        said.keep(&version, &value(199), &Bytes::from_static(b"made"));
        assert_eq!(said.bytes, before, "the same again takes no more room");
    }

    #[test]
    fn batches_are_bounded_by_bytes_and_by_number() {
        let end = |size: usize, count: usize| {
            let values = vec![Bytes::from(vec![0; size]); count];
            batch_end(&values, &(0..count).collect::<Vec<_>>())
        };
        assert_eq!((end(1000, 3), end(1, 900), end(400_000, 9), end(3 << 20, 2)), (3, BATCH_OBJECTS, 2, 1));
    }
}
