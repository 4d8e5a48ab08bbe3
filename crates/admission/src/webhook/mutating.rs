use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use concord_codec::{Limits, decode_value};
use concord_merge::{JsonPatch, JsonPatchError};
use concord_meta::{Status, go::quote};
use concord_registry::{Admission, Attributes, Object};
use serde_json::{Value, json};
use tracing::warn;

use super::{Question, Webhook, answer::Answer, call::Failure};
use crate::{request::Request, shared::Shared};

/// Upstream's keys for what is noted about webhooks.
const MUTATION: &str = "mutation.webhook.admission.k8s.io";
const PATCH: &str = "patch.webhook.admission.k8s.io";

/// MutatingAdmissionWebhook: asks the webhooks that are concerned one after the other, each about what the one before made
/// of the object.
///
/// If one changed something, those before it may be asked once more: first the parts of the server that change objects
/// themselves, and then the webhooks that want it.
pub struct MutatingWebhooks {
    shared: Arc<Shared>,
    asked_again: Vec<Arc<dyn Admission>>,
}

/// What is remembered from one round to the next.
#[derive(Default)]
struct Rounds {
    /// Whether a webhook changed the object.
    changed: bool,
    /// Webhooks that were asked, and are to be asked again if the object changes after that.
    asked: HashSet<String>,
    /// Those whose time has come.
    again: HashSet<String>,
}

impl Rounds {
    fn object_changed(&mut self) {
        self.again.extend(self.asked.drain());
    }
}

/// What was decided about a request without an object, and the place of the webhook that is being asked.
struct Turn<'a> {
    request: &'a Request<'a>,
    webhook: &'a Webhook,
    /// `round_0_index_3`
    place: String,
}

#[async_trait]
impl Admission for MutatingWebhooks {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    async fn admit(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Object>,
    ) -> Result<(), Status> {
        let configured = self.shared.configured.load_full();
        if configured.mutating.is_empty() {
            return Ok(());
        }
        let Some(request) = Request::new(&self.shared, attributes) else { return Ok(()) };
        let mut rounds = Rounds::default();
        self.round(&request, &configured.mutating, object.as_deref_mut(), &mut rounds, 0).await?;
        if !rounds.changed {
            return Ok(());
        }
        let before = object.as_deref().cloned();
        for plugin in &self.asked_again {
            plugin.admit(attributes, object.as_deref_mut()).await?;
        }
        if object.as_deref() != before.as_ref() {
            rounds.object_changed();
        }
        self.round(&request, &configured.mutating, object, &mut rounds, 1).await
    }
}

impl MutatingWebhooks {
    /// `asked_again` are the parts of the server that change objects before webhooks do.
    pub(crate) fn new(shared: Arc<Shared>, asked_again: Vec<Arc<dyn Admission>>) -> Self {
        Self { shared, asked_again }
    }

    async fn round(
        &self,
        request: &Request<'_>,
        webhooks: &[Webhook],
        mut object: Option<&mut Object>,
        rounds: &mut Rounds,
        number: usize,
    ) -> Result<(), Status> {
        for (at, webhook) in webhooks.iter().enumerate() {
            if number > 0 && !rounds.again.contains(&webhook.id) {
                continue;
            }
            let Some(question) = webhook.question(request, object.as_deref()).await? else { continue };
            let turn = Turn { request, webhook, place: format!("round_{number}_index_{at}") };
            if self.call(&turn, &question, object.as_deref_mut()).await? {
                rounds.object_changed();
                rounds.changed = true;
            }
            if webhook.reinvocable {
                rounds.asked.insert(webhook.id.clone());
            }
        }
        Ok(())
    }

    /// Asks one webhook, and does what it says. Answers whether the object changed.
    async fn call(
        &self,
        turn: &Turn<'_>,
        question: &Question,
        object: Option<&mut Object>,
    ) -> Result<bool, Status> {
        let Turn { request, webhook, place } = turn;
        let context = request.attributes.context;
        let outcome = match webhook.ask(&self.shared, context, question, true).await {
            Ok(answer) => turn.apply(&answer, question, object),
            Err(failure) => Err(failure),
        };
        let changed = *outcome.as_ref().unwrap_or(&false);
        let told = json!({
            "configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed,
        });
        context.annotate(format!("{MUTATION}/{place}"), told.to_string());
        match outcome {
            Ok(changed) => Ok(changed),
            Err(Failure::Refused(status)) => Err(status),
            Err(Failure::Calling(why)) if webhook.fail_open => {
                warn!(webhook = webhook.name, "passed over: {why}");
                context.annotate(format!("failed-open.{MUTATION}/{place}"), &webhook.name);
                Ok(false)
            }
            Err(Failure::Calling(why)) => Err(Status::internal_error(why)),
        }
    }
}

impl Turn<'_> {
    fn apply(
        &self,
        answer: &Answer,
        question: &Question,
        object: Option<&mut Object>,
    ) -> Result<bool, Failure> {
        if answer.patch.is_empty() {
            return Ok(false);
        }
        let (patch, operations) = self.patch(&answer.patch)?;
        if operations.as_array().is_none_or(Vec::is_empty) {
            return Ok(false);
        }
        let internal = |why: String| Failure::Refused(Status::internal_error(why));
        let Some(object) = object else {
            return Err(internal(format!(
                "admission webhook {} attempted to modify the object, which is not supported for this operation",
                quote(&self.webhook.name)
            )));
        };
        if answer.patch_type != "JSONPatch" {
            let why = format!("unsupported patch type {}", quote(&answer.patch_type));
            return Err(Failure::calling(self.webhook, why));
        }
        let patched =
            patch.apply(question.versioned.object.clone()).map_err(|why| internal(why.to_string()))?;
        let Value::Object(mut patched) = patched else {
            return Err(internal("the patched object is not an object".to_owned()));
        };
        self.reform(question, &mut patched)?;
        let changed = question.versioned.object.as_object() != Some(&patched);
        self.request.convert_in_place(&mut patched, &self.request.kind).map_err(Failure::Refused)?;
        *object = patched;
        let told = json!({
            "configuration": self.webhook.configuration, "webhook": self.webhook.name, "patch": operations,
            "patchType": "JSONPatch",
        });
        self.request.attributes.context.annotate(format!("{PATCH}/{}", self.place), told.to_string());
        Ok(changed)
    }

    /// The patch of an answer, decoded and as it is.
    fn patch(&self, patch: &[u8]) -> Result<(JsonPatch, Value), Failure> {
        let undecodable = |why: String| {
            Failure::calling(
                self.webhook,
                format_args!("received undecodable patch in webhook response: {why}"),
            )
        };
        let limits = Limits { max_bytes: patch.len(), ..Limits::default() };
        let value = decode_value(patch, limits).map_err(|why| undecodable(why.to_string()))?;
        let decoded = JsonPatch::decode(&value).map_err(|why| match why {
            JsonPatchError::Malformed(why) => undecodable(why),
            why => undecodable(why.to_string()),
        })?;
        Ok((decoded, value))
    }

    /// What a webhook made is decoded as what a client sends is, in the version that the webhook was shown.
    fn reform(&self, question: &Question, patched: &mut Object) -> Result<(), Failure> {
        let subresource = self.request.attributes.subresource;
        let equivalent = self.request.resource_of(&question.matched);
        let reformed = match &equivalent {
            Some(resource) => resource.reform(subresource, patched),
            None => self.request.attributes.resource.reform(subresource, patched),
        };
        reformed.map_err(|why| Failure::Refused(Status::internal_error(why)))
    }
}
