use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object};
use concord_server::note_wait;
use futures_util::future::join_all;

use super::{Question, Webhook};
use crate::{request::Request, shared::Shared};

/// Upstream's key for a webhook that failed and was passed over.
const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io";

/// ValidatingAdmissionWebhook: asks all webhooks that are concerned at once, and refuses what one of them refuses.
pub struct ValidatingWebhooks(pub(crate) Arc<Shared>);

#[async_trait]
impl Admission for ValidatingWebhooks {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let configured = self.0.configured.load_full();
        if configured.validating.is_empty() {
            return Ok(());
        }
        let Some(request) = Request::to_webhooks(&self.0, attributes) else { return Ok(()) };
        let mut concerned: Vec<(&Webhook, Question)> = Vec::new();
        for webhook in &configured.validating {
            if let Some(question) = webhook.question(&request, object, "validate").await? {
                concerned.push((webhook, question));
            }
        }
        let calls = concerned
            .iter()
            .enumerate()
            .map(|(at, (webhook, question))| self.call(&request, webhook, question, at));
        // All of them are heard, also after one refused: each has its say in warnings and annotations. Of several
        // refusals the first is told.
        let begun = Instant::now();
        let said = join_all(calls).await;
        note_wait(begun.elapsed());
        said.into_iter().collect()
    }
}

impl ValidatingWebhooks {
    async fn call(
        &self,
        request: &Request<'_>,
        webhook: &Webhook,
        question: &Question,
        at: usize,
    ) -> Result<(), Status> {
        let context = request.attributes.context;
        let begun = Instant::now();
        let outcome = webhook.ask(&self.0, context, question, false).await;
        let heard = webhook.observe(request, "validating", outcome, begun.elapsed())?;
        if heard.is_none() {
            context.annotate(format!("{FAILED_OPEN}/round_0_index_{at}"), &webhook.name);
        }
        Ok(())
    }
}
