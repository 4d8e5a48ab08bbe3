use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{
    Admission, Attributes, Guard, Item, Object, ObjectName, Operation, Resources, Storage, metadata,
};
use concord_replica::{Entry, Snapshot};
use concord_store::Compare;
use memchr::memmem::Finder;

use crate::{Error, own::required};

/// Lets nothing come into being in a namespace that does not exist or is being deleted.
///
/// That the namespace is still what it was when the create was decided on is a condition of the create's own
/// transaction. Upstream looks at a cache and then commits: an object can slip in after the namespace was marked, even
/// after its content was counted, and stay behind in a namespace that no longer exists. Here no such object can be
/// committed, by whichever server of a fleet, which is what makes it exact to look once whether a namespace is empty.
///
/// The price is a comparison in the transaction, and another attempt for creates that race with a change of the
/// namespace itself, which is rare.
pub struct NamespaceLifecycle {
    namespaces: Arc<Storage>,
}

impl NamespaceLifecycle {
    /// For the namespaces that are among the resources.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(resources: &dyn Resources) -> Result<Self, Error> {
        Ok(Self { namespaces: namespace_storage(resources)? })
    }
}

#[async_trait]
impl Admission for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn guard(
        &self,
        attributes: &Attributes<'_>,
        _object: Option<&Object>,
        snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        let Attributes { resource, namespace, name, operation, .. } = *attributes;
        if operation != Operation::Create || !resource.namespaced || namespace.is_empty() {
            return Ok(Guard::default());
        }
        let key = self.namespaces.key(ObjectName { namespace: "", name: namespace });
        let Some(entry) = snapshot.get(&key) else {
            return Err(Status::not_found(&self.namespaces.resource, namespace));
        };
        if terminating(&self.namespaces, entry).is_some() {
            return Err(Status::namespace_terminating(&resource.group_resource(), name, namespace));
        }
        let unchanged = Compare::mod_revision(key, entry.mod_revision);
        Ok(Guard { compares: vec![unchanged], writes: Vec::new() })
    }
}

pub(crate) fn namespace_storage(resources: &dyn Resources) -> Result<Arc<Storage>, Error> {
    let namespaces = required(resources, "", "v1", "namespaces")?;
    Ok(namespaces.storage().cloned().expect("a required resource is stored"))
}

/// The stored object, if it is being deleted. Almost none is, and that is seen without parsing it.
pub(crate) fn terminating(storage: &Storage, entry: &Entry) -> Option<Object> {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"deletionTimestamp\""));
    MARK.find(&entry.value)?;
    let object = storage.object(&Item::from(entry)).ok()?;
    metadata(&object).is_terminating().then_some(object)
}
