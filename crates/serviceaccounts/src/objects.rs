use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use concord_meta::{GroupVersion, Status};
use concord_registry::{Item, Object, ObjectName, Registry, Resource, Resources, Storage};
use concord_replica::{Entry, Replica, Snapshot};

use crate::Error;

/// The kinds that tokens are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Namespace,
    Node,
    Pod,
    Secret,
    ServiceAccount,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Namespace, Self::Node, Self::Pod, Self::Secret, Self::ServiceAccount];

    fn plural(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
            Self::Pod => "pods",
            Self::Secret => "secrets",
            Self::ServiceAccount => "serviceaccounts",
        }
    }
}

/// The objects that tokens are about, as the replica has them.
///
/// It is made before the resources are, because some of them need it, and learns of them by [`Objects::connect`].
pub struct Objects {
    replica: Arc<Replica>,
    connected: OnceLock<Connected>,
}

struct Connected {
    resources: Vec<(Kind, Arc<Resource>)>,
    /// The registry owns the admission that owns this.
    registry: Weak<Registry>,
}

impl Objects {
    /// Knows no kinds yet.
    pub fn new(replica: Arc<Replica>) -> Self {
        Self { replica, connected: OnceLock::new() }
    }

    /// From here on objects can be found. The second time it does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`].
    pub fn connect(&self, resources: &dyn Resources, registry: &Arc<Registry>) -> Result<(), Error> {
        let find = |kind: Kind| {
            let found = resources.find(&GroupVersion::new("", "v1"), kind.plural());
            let found = found.filter(|found| found.storage().is_some());
            found.map(|found| (kind, found)).ok_or(Error::NotServed(kind.plural()))
        };
        let resources = Kind::ALL.into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let registry = Arc::downgrade(registry);
        // Who came first has connected it to the same.
        self.connected.set(Connected { resources, registry }).ok();
        Ok(())
    }

    pub(crate) fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Who writes, for as long as there is somebody.
    pub(crate) fn registry(&self) -> Option<Arc<Registry>> {
        self.connected.get()?.registry.upgrade()
    }

    /// # Errors
    ///
    /// 500 before it is connected, which is before the server listens.
    pub(crate) fn resource(&self, kind: Kind) -> Result<&Arc<Resource>, Status> {
        let connected = self.connected.get();
        let found = connected.and_then(|all| all.resources.iter().find(|(this, _)| *this == kind));
        found.map(|(_, resource)| resource).ok_or_else(|| Status::internal_error("the server is starting"))
    }

    pub(crate) fn storage(&self, kind: Kind) -> Result<&Storage, Status> {
        let storage = self.resource(kind)?.storage().map(AsRef::as_ref);
        storage.ok_or_else(Status::method_not_allowed)
    }

    pub(crate) fn key(&self, kind: Kind, name: ObjectName<'_>) -> Result<Bytes, Status> {
        Ok(self.storage(kind)?.key(name))
    }

    /// The object of an entry.
    pub(crate) fn read(&self, kind: Kind, entry: &Entry) -> Result<Object, Status> {
        self.storage(kind)?.object(&Item::from(entry))
    }

    /// An object in a state.
    ///
    /// # Errors
    ///
    /// 404.
    pub(crate) fn get(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        name: ObjectName<'_>,
    ) -> Result<Object, Status> {
        let storage = self.storage(kind)?;
        let entry = snapshot.get(&storage.key(name));
        let entry = entry.ok_or_else(|| Status::not_found(&storage.resource, name.name))?;
        storage.object(&Item::from(entry))
    }
}
