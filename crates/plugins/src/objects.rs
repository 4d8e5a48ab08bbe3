//! The objects that plugins look up.

use std::{sync::Arc, time::Duration};

use concord_meta::{GroupVersion, Status};
use concord_registry::{Item, Object, ObjectName, Resources, Storage};
use concord_replica::Replica;
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
        let resource = resources.find(&GroupVersion::new(group, "v1"), plural).ok_or(NotServed(plural))?;
        let storage = resource.storage().cloned().ok_or(NotServed(plural))?;
        Ok(Self { storage, replica: replica.clone() })
    }

    /// An object by its name. One that is not there is looked for in the newest state, for it may just have been made.
    ///
    /// # Errors
    ///
    /// 500 if the store does not answer.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Object>, Status> {
        let key = self.storage.key(ObjectName { namespace: "", name });
        let mut entry = self.replica.newest().ok().and_then(|snapshot| snapshot.get(&key).cloned());
        if entry.is_none() {
            let snapshot = self.replica.consistent(WAIT_FOR_STORE).await.map_err(Status::internal_error)?;
            entry = snapshot.get(&key).cloned();
        }
        entry.map(|entry| self.storage.object(&Item::from(&entry))).transpose()
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
