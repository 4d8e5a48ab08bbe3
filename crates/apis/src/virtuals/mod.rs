//! Resources and subresources that store nothing under their own name.

mod access_reviews;
mod binding;
mod eviction;
mod reviews;
mod rules_review;
mod selectors;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use concord_builtins::FeatureGates;
use concord_meta::Status;
use concord_registry::{Invocation, Object, Resource, Virtual};
use concord_schema::Schema;
use concord_server::Authorizer;
use serde_json::json;

use self::{
    access_reviews::{AccessReview, Whom},
    binding::Binding,
    eviction::Eviction,
    reviews::SelfSubjectReview,
    rules_review::SelfSubjectRulesReview,
};

/// A resource that another one needs, known once all are made.
pub(crate) type Later = Arc<OnceLock<Arc<Resource>>>;

/// Makes what answers creates of a kind, whose fields are these.
type Make = dyn Fn(Arc<Schema>) -> Arc<dyn Virtual> + Send + Sync;

/// What other parts answer of the kinds that are not stored.
#[derive(Clone, Default)]
pub struct Virtuals(BTreeMap<&'static str, Arc<Make>>);

impl Virtuals {
    /// Creates of this kind are answered by what `make` makes.
    #[must_use]
    pub fn with(
        mut self,
        kind: &'static str,
        make: impl Fn(Arc<Schema>) -> Arc<dyn Virtual> + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(kind, Arc::new(make));
        self
    }
}

impl fmt::Debug for Virtuals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// What those that answer need to know about the rest of the server.
pub(crate) struct Needs {
    /// The pods.
    pub(crate) pods: Later,
    /// The pod disruption budgets.
    pub(crate) budgets: Later,
    /// Which features there are.
    pub(crate) features: Arc<FeatureGates>,
    /// Who may do what.
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// What other parts answer.
    pub(crate) others: Virtuals,
}

/// What answers a create of this kind, which is not stored.
pub(crate) fn of(kind: &str, schema: Arc<Schema>, needs: &Needs) -> Arc<dyn Virtual> {
    if let Some(make) = needs.others.0.get(kind) {
        return make(schema);
    }
    let authorizer = || needs.authorizer.clone();
    let review = |schema, whom| -> Arc<dyn Virtual> {
        Arc::new(AccessReview { schema, authorizer: authorizer(), whom })
    };
    match kind {
        "Binding" => Arc::new(Binding { schema, pods: needs.pods.clone(), features: needs.features.clone() }),
        "Eviction" => Arc::new(Eviction { schema, budgets: needs.budgets.clone() }),
        "LocalSubjectAccessReview" => review(schema, Whom::AnybodyHere),
        "SelfSubjectAccessReview" => review(schema, Whom::Oneself),
        "SelfSubjectRulesReview" => Arc::new(SelfSubjectRulesReview { schema, authorizer: authorizer() }),
        "SubjectAccessReview" => review(schema, Whom::Anybody),
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
