use concord_store::Revision;

use crate::Entry;

/// Something that must hold in the transaction that carries out a decision. Names are those of objects: of leases in
/// the namespace of the identities, of StorageVersions, of CustomResourceDefinitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Holds {
    /// The identity lease exists since this revision: nobody deleted or replaced it. This is the fence.
    LeaseSince(String, Revision),
    /// There is no such lease.
    LeaseAbsent(String),
    /// The lease was last written at this revision.
    LeaseAt(String, Revision),
    /// The StorageVersion was last written at this revision.
    StorageVersionAt(String, Revision),
    /// There is no such StorageVersion.
    StorageVersionAbsent(String),
    /// The definition was last written at this revision.
    DefinitionAt(String, Revision),
}

/// By what right a server writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fence {
    /// It holds the identity lease of this name since this revision.
    Held {
        /// The server's ID, which is the name of the lease.
        id: String,
        /// When the lease came to be.
        since: Revision,
    },
    /// It takes the lease in the very same transaction.
    Acquiring {
        /// The server's ID.
        id: String,
    },
}

impl Fence {
    /// The server's ID.
    pub fn id(&self) -> &str {
        match self {
            Self::Held { id, .. } | Self::Acquiring { id } => id,
        }
    }

    /// What has to hold for it.
    pub fn holds(&self) -> Holds {
        match self {
            Self::Held { id, since } => Holds::LeaseSince(id.clone(), *since),
            Self::Acquiring { id } => Holds::LeaseAbsent(id.clone()),
        }
    }
}

/// A StorageVersion as it was found in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// When it was last written.
    pub revision: Revision,
    /// What it says.
    pub entries: &'a [Entry],
}

impl Found<'_> {
    /// What has to hold so that a decision made on what was found still fits.
    pub(crate) fn unchanged(found: Option<&Self>, name: &str) -> Holds {
        match found {
            Some(found) => Holds::StorageVersionAt(name.to_owned(), found.revision),
            None => Holds::StorageVersionAbsent(name.to_owned()),
        }
    }
}

/// A change to one StorageVersion.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    /// The name of the StorageVersion.
    pub name: String,
    /// What must hold.
    pub holds: Vec<Holds>,
    /// The entries it is to have; `None` if the object is to go.
    pub entries: Option<Vec<Entry>>,
}
