//! Resources and subresources that store nothing under their own name.

mod binding;
mod eviction;
mod reviews;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Invocation, Object, Resource, Virtual};
use concord_schema::Schema;
use serde_json::json;

use self::{binding::Binding, eviction::Eviction, reviews::SelfSubjectReview};

/// A resource that another one needs, known once all are made.
pub(crate) type Later = Arc<OnceLock<Arc<Resource>>>;

/// What answers a create of this kind, which is not stored. `budgets` are the pod disruption budgets.
pub(crate) fn of(kind: &str, schema: Arc<Schema>, budgets: &Later) -> Arc<dyn Virtual> {
    match kind {
        "Binding" => Arc::new(Binding(schema)),
        "Eviction" => Arc::new(Eviction { schema, budgets: budgets.clone() }),
        "SelfSubjectReview" => Arc::new(SelfSubjectReview(schema)),
        _ => Arc::new(Unsupported(schema)),
    }
}

/// A kind that this server lists, because its release has it, and cannot answer.
struct Unsupported(Arc<Schema>);

#[async_trait]
impl Virtual for Unsupported {
    fn schema(&self) -> Arc<Schema> {
        self.0.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, _: Object) -> Result<Object, Status> {
        Err(Status::method_not_supported(&invocation.resource.group_resource(), "create"))
    }
}

/// What a create answers that leaves nothing to show.
fn success() -> Object {
    let members = [
        ("kind", json!("Status")),
        ("apiVersion", json!("v1")),
        ("metadata", json!({})),
        ("status", json!("Success")),
        ("code", json!(201)),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
