use std::sync::Arc;

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object};

use crate::{
    policy::{self, MutatingPolicies},
    request::Request,
    shared::Shared,
    view::Configured,
    webhook::{self, MutatingWebhooks},
};

/// MutatingAdmissionPolicy and MutatingAdmissionWebhook: what changes objects as users configure it.
///
/// First policies are applied and then webhooks asked, each about what the one before made of the object. If anything
/// changed, all have one more look at it: the parts of the server that change objects themselves, the policies and webhooks
/// that want it, in the same order.
pub struct MutatingAdmission {
    shared: Arc<Shared>,
    asked_again: Vec<Arc<dyn Admission>>,
}

/// What is remembered from one round to the next.
#[derive(Default)]
struct Rounds {
    policies: policy::Rounds,
    webhooks: webhook::Rounds,
}

#[async_trait]
impl Admission for MutatingAdmission {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    async fn admit(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Object>,
    ) -> Result<(), Status> {
        let configured = self.shared.configured.load_full();
        if configured.mutating.is_empty() && configured.mutating_policies.is_empty() {
            return Ok(());
        }
        let mut rounds = Rounds::default();
        self.round(&configured, attributes, object.as_deref_mut(), &mut rounds, 0).await?;
        if !rounds.policies.changed && !rounds.webhooks.changed {
            return Ok(());
        }
        for plugin in &self.asked_again {
            plugin.admit(attributes, object.as_deref_mut()).await?;
        }
        self.round(&configured, attributes, object, &mut rounds, 1).await
    }
}

impl MutatingAdmission {
    /// `asked_again` are the parts of the server that change objects before.
    pub(crate) fn new(shared: Arc<Shared>, asked_again: Vec<Arc<dyn Admission>>) -> Self {
        Self { shared, asked_again }
    }

    async fn round(
        &self,
        configured: &Configured,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Object>,
        rounds: &mut Rounds,
        number: usize,
    ) -> Result<(), Status> {
        if self.shared.mutating_policies && !configured.mutating_policies.is_empty() {
            let request = Request::to_policies(&self.shared, attributes);
            // There is nothing to change about a deletion.
            if let (Some(request), Some(object)) = (request, object.as_deref_mut()) {
                let policies =
                    MutatingPolicies { request: &request, policies: &configured.mutating_policies };
                policies.round(object, &mut rounds.policies, number == 0).await?;
            }
        }
        if !self.shared.mutating_webhooks {
            return Ok(());
        }
        if let Some(request) = Request::to_webhooks(&self.shared, attributes) {
            let webhooks = MutatingWebhooks { request: &request, webhooks: &configured.mutating };
            webhooks.round(object, &mut rounds.webhooks, number).await?;
        }
        Ok(())
    }
}
