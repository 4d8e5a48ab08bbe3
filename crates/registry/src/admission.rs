use async_trait::async_trait;
use concord_meta::Status;
use concord_replica::Snapshot;
use concord_store::Compare;

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

    /// What must still hold when the write is committed, given the state it is decided on. The comparisons become
    /// part of the transaction, so a decision made here cannot be overtaken.
    fn guard(&self, _attributes: &Attributes<'_>, _snapshot: &Snapshot) -> Result<Vec<Compare>, Status> {
        Ok(Vec::new())
    }
}
