use concord_meta::{Status, options::DeleteOptions};

use super::create::stored;
use crate::{Context, ListRequest, Listing, Registry, Resource};

impl Registry {
    /// Deletes every object of a collection that is meant, one after the other. The answer is what they were.
    ///
    /// # Errors
    ///
    /// Of the first delete that is refused, other than for an object that somebody else deleted. What was deleted
    /// before stays deleted.
    pub async fn delete_collection(
        &self,
        context: &Context,
        resource: &Resource,
        request: ListRequest<'_>,
        options: &DeleteOptions,
    ) -> Result<Listing, Status> {
        let storage = stored(resource)?;
        let listing = self.list(storage, request).await?;
        for entry in &listing.entries {
            let Some(name) = storage.object_name(&entry.key) else { continue };
            match self.delete_one(context, resource, name, options).await {
                Ok(_) => {}
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        Ok(listing)
    }
}
