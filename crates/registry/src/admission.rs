use std::fmt;

use async_trait::async_trait;
use concord_meta::Status;
use concord_replica::Snapshot;
use concord_store::{Compare, Write};

use crate::{Context, Object, Resource};

/// What a request is about to do to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Create it.
    Create,
    /// Change it, by an update or a patch.
    Update,
    /// Delete it.
    Delete,
    /// Use a subresource that stores nothing.
    Connect,
}

/// What admission is asked about.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// The request.
    pub context: &'a Context,
    /// What is written, in the version of the request.
    pub resource: &'a Resource,
    /// The subresource; empty for the resource itself.
    pub subresource: &'a str,
    /// The namespace of the request; empty for a cluster-scoped resource.
    pub namespace: &'a str,
    /// The name; empty for a create whose name is yet to be generated.
    pub name: &'a str,
    /// Whether the path of the request has the name, as that of every request but a create has.
    pub named: bool,
    /// What is about to happen.
    pub operation: Operation,
    /// The object as it is stored, in the version of the request.
    pub old: Option<&'a Object>,
}

/// A part of the server that may change or refuse what is written.
///
/// Both methods are called inside the loop that retries on conflicts, so they may see an object more than once.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// What it is called in errors and metrics.
    fn name(&self) -> &'static str;

    /// May change the object, which is `None` for deletes, or refuse the request.
    async fn admit(&self, _attributes: &Attributes<'_>, _object: Option<&mut Object>) -> Result<(), Status> {
        Ok(())
    }

    /// May refuse the request once the object is complete and valid.
    async fn validate(&self, _attributes: &Attributes<'_>, _object: Option<&Object>) -> Result<(), Status> {
        Ok(())
    }

    /// What must still hold when the write is committed, given the state it is decided on, and what is to be written along
    /// with it. Both become part of the transaction, so a decision made here cannot be overtaken and happens with
    /// the write or not at all. `object` is what is to be stored; `None` for deletes, and while it is not yet complete.
    ///
    /// Called with a state that may be a little old first; a refusal counts only on one that is not.
    ///
    /// # Errors
    ///
    /// Why the write cannot be. [`Status::server_timeout`] says that what was chosen in [`Admission::admit`] is no longer
    /// free: a create is admitted again then, some times, before the client is told.
    fn guard(
        &self,
        _attributes: &Attributes<'_>,
        _object: Option<&Object>,
        _snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        Ok(Guard::default())
    }

    /// Like [`Admission::guard`], for the write that makes the object go away: a delete that does not have to wait for
    /// finalizers, or the update that removes the last of them. A delete that only marks the object is not one. What
    /// goes away is `attributes.old`.
    ///
    /// # Errors
    ///
    /// Why the object cannot go.
    fn removal(&self, _attributes: &Attributes<'_>, _snapshot: &Snapshot) -> Result<Guard, Status> {
        Ok(Guard::default())
    }
}

/// What whoever makes a request demands of the state in which it is committed, see [`Context::condition`].
pub trait Condition: fmt::Debug + Send + Sync {
    /// What must still hold when the write is committed, given the state it is decided on. As with [`Admission::guard`], a
    /// refusal counts only on a state that is as new as the request.
    ///
    /// # Errors
    ///
    /// Why what is demanded does not hold.
    fn holds(&self, snapshot: &Snapshot) -> Result<Guard, Status>;
}

/// What admission adds to the transaction of a write.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// What must hold.
    pub compares: Vec<Compare>,
    /// What happens along with it.
    pub writes: Vec<Write>,
}

impl Guard {
    /// Adds what another one adds.
    pub fn extend(&mut self, other: Self) {
        self.compares.extend(other.compares);
        self.writes.extend(other.writes);
    }
}
