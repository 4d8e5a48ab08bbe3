//! Requests for what stores nothing under its own name.

use concord_meta::Status;

use crate::{Attributes, Context, Object, ObjectName, Operation, Registry, Resource};

impl Registry {
    /// Asks admission about the use of a subresource, or of a resource that is never stored: a review, an eviction, a
    /// connection. `object` is what was sent, and may be changed.
    ///
    /// # Errors
    ///
    /// Every refusal of admission.
    pub async fn admit_use(
        &self,
        context: &Context,
        (resource, subresource): (&Resource, &str),
        name: ObjectName<'_>,
        operation: Operation,
        object: &mut Object,
    ) -> Result<(), Status> {
        let attributes = Attributes {
            context,
            resource,
            subresource,
            namespace: name.namespace,
            name: name.name,
            named: true,
            operation,
            old: None,
        };
        self.admit(&attributes, object).await?;
        self.validate_admission(&attributes, Some(object)).await
    }
}
