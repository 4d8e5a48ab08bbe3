//! The objects that plugins look up.

use std::{sync::Arc, time::Duration};

use concord_meta::{GroupResource, GroupVersion, Status};
use concord_registry::{Item, Object, ObjectName, Resources, Storage};
use concord_replica::{Entry, Replica};
use concord_store::KeyRange;
use memchr::memmem;

/// How long to wait for the store to say what its newest state is.
const WAIT_FOR_STORE: Duration = Duration::from_secs(10);

/// The objects of one kind, as the replica has them.
#[derive(Clone)]
pub struct Objects {
    storage: Arc<Storage>,
    replica: Arc<Replica>,
}

/// A kind that a plugin cannot do without is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} are not served")]
pub struct NotServed(&'static str);

impl Objects {
    /// The objects of a resource; the group of core is empty.
    ///
    /// # Errors
    ///
    /// [`NotServed`].
    pub fn new(
        replica: &Arc<Replica>,
        resources: &dyn Resources,
        group: &str,
        plural: &'static str,
    ) -> Result<Self, NotServed> {
        Self::of_version(replica, resources, &GroupVersion::new(group, "v1"), plural)
    }

    /// The same for a resource that has no `v1`.
    ///
    /// # Errors
    ///
    /// [`NotServed`].
    pub fn of_version(
        replica: &Arc<Replica>,
        resources: &dyn Resources,
        version: &GroupVersion,
        plural: &'static str,
    ) -> Result<Self, NotServed> {
        let resource = resources.find(version, plural).ok_or(NotServed(plural))?;
        let storage = resource.storage().cloned().ok_or(NotServed(plural))?;
        Ok(Self { storage, replica: replica.clone() })
    }

    /// An object by its name. One that is not there is looked for in the newest state, for it may just have been made.
    ///
    /// # Errors
    ///
    /// 500 if the store does not answer.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Object>, Status> {
        self.find_in("", name).await
    }

    /// What they are called.
    pub(crate) fn resource(&self) -> GroupResource {
        self.storage.resource.clone()
    }

    /// Like [`Objects::find`], in a namespace.
    pub(crate) async fn find_in(&self, namespace: &str, name: &str) -> Result<Option<Object>, Status> {
        let entry = self.entry(ObjectName { namespace, name }).await?;
        entry.map(|entry| self.storage.object(&Item::from(&entry))).transpose()
    }

    /// Like [`Objects::find`], but only if the object has a text somewhere: otherwise it is not decoded.
    pub(crate) async fn mentioning(&self, name: &str, text: &[u8]) -> Result<Option<Object>, Status> {
        let entry = self.entry(ObjectName { namespace: "", name }).await?;
        let entry = entry.filter(|entry| memmem::find(&entry.value, text).is_some());
        entry.map(|entry| self.storage.object(&Item::from(&entry))).transpose()
    }

    async fn entry(&self, at: ObjectName<'_>) -> Result<Option<Entry>, Status> {
        let key = self.storage.key(at);
        let entry = self.replica.newest().ok().and_then(|snapshot| snapshot.get(&key).cloned());
        if entry.is_some() {
            return Ok(entry);
        }
        let snapshot = self.replica.consistent(WAIT_FOR_STORE).await.map_err(Status::internal_error)?;
        Ok(snapshot.get(&key).cloned())
    }

    /// All objects of a namespace as of now, decoded one by one.
    ///
    /// # Errors
    ///
    /// 500 if the store cannot say what there is.
    pub(crate) async fn each(
        &self,
        namespace: &str,
    ) -> Result<impl Iterator<Item = Result<Object, Status>> + '_, Status> {
        let snapshot = self.replica.consistent(WAIT_FOR_STORE).await.map_err(Status::internal_error)?;
        let range = KeyRange::prefix(self.storage.key_prefix(Some(namespace)));
        let entries: Vec<Entry> = snapshot.scan(&range).cloned().collect();
        Ok(entries.into_iter().map(|entry| self.storage.object(&Item::from(&entry))))
    }

    /// The objects, of a namespace if there is one, that have a text somewhere. Most of those without it are never
    /// decoded.
    ///
    /// # Errors
    ///
    /// 500 if the replica is not there yet, or an object cannot be read.
    pub(crate) fn with(&self, namespace: Option<&str>, text: &[u8]) -> Result<Vec<Object>, Status> {
        let snapshot = self.replica.newest().map_err(Status::internal_error)?;
        let range = KeyRange::prefix(self.storage.key_prefix(namespace));
        let entries = snapshot.scan(&range).filter(|entry| memmem::find(&entry.value, text).is_some());
        entries.map(|entry| self.storage.object(&Item::from(entry))).collect()
    }
}
