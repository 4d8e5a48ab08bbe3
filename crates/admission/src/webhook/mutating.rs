use std::{collections::HashSet, time::Instant};

use concord_codec::{Limits, decode_value};
use concord_merge::{JsonPatch, JsonPatchError};
use concord_meta::{Status, go::quote};
use concord_registry::Object;
use concord_server::note_wait;
use serde_json::{Value, json};

use super::{Question, Webhook, answer::Answer, call::Failure};
use crate::request::Request;

/// Upstream's keys for what is noted about webhooks.
const MUTATION: &str = "mutation.webhook.admission.k8s.io";
const PATCH: &str = "patch.webhook.admission.k8s.io";

/// The webhooks of MutatingAdmissionWebhook, asked one after the other, each about what the one before made of the object.
pub(crate) struct MutatingWebhooks<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) webhooks: &'a [Webhook],
}

/// What is remembered from one round to the next.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Whether a webhook changed the object.
    pub(crate) changed: bool,
    /// Webhooks that were asked, and are to be asked again if the object changes after that.
    asked: HashSet<String>,
    /// Those whose time has come.
    again: HashSet<String>,
    /// The object as the webhooks left it.
    left: Option<Object>,
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

impl MutatingWebhooks<'_> {
    /// Asks the webhooks that are concerned; in another round than the first those that have a reason to look again.
    pub(crate) async fn round(
        &self,
        mut object: Option<&mut Object>,
        rounds: &mut Rounds,
        number: usize,
    ) -> Result<(), Status> {
        if number > 0 && rounds.left.as_ref() != object.as_deref() {
            rounds.object_changed();
        }
        for (at, webhook) in self.webhooks.iter().enumerate() {
            if number > 0 && !rounds.again.contains(&webhook.id) {
                continue;
            }
            let Some(question) = webhook.question(self.request, object.as_deref(), "admit").await? else {
                continue;
            };
            let turn = Turn { request: self.request, webhook, place: format!("round_{number}_index_{at}") };
            if turn.call(&question, object.as_deref_mut()).await? {
                rounds.object_changed();
                rounds.changed = true;
            }
            if webhook.reinvocable {
                rounds.asked.insert(webhook.id.clone());
            }
        }
        if !self.webhooks.is_empty() {
            rounds.left = object.as_deref().cloned();
        }
        Ok(())
    }
}

impl Turn<'_> {
    /// Asks one webhook, and does what it says. Answers whether the object changed.
    async fn call(&self, question: &Question, object: Option<&mut Object>) -> Result<bool, Status> {
        let Turn { request, webhook, place } = self;
        let context = request.attributes.context;
        let begun = Instant::now();
        let outcome = match webhook.ask(request.shared, context, question, true).await {
            Ok(answer) => self.apply(&answer, question, object),
            Err(failure) => Err(failure),
        };
        note_wait(begun.elapsed());
        let changed = *outcome.as_ref().unwrap_or(&false);
        let told = json!({
            "configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed,
        });
        context.annotate(format!("{MUTATION}/{place}"), told.to_string());
        let heard = webhook.observe(request, "admit", outcome, begun.elapsed())?;
        if heard.is_none() {
            context.annotate(format!("failed-open.{MUTATION}/{place}"), &webhook.name);
        }
        Ok(heard.unwrap_or_default())
    }

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
        let internal = |why: String| Failure::internal(why);
        let Some(object) = object else {
            return Err(internal(format!(
                "admission webhook {} attempted to modify the object, which is not supported for this operation",
                quote(&self.webhook.name)
            )));
        };
        if answer.patch_type != "JSONPatch" {
            let why = format!("unsupported patch type {}", quote(&answer.patch_type));
            return Err(Failure::calling(self.webhook, why, 500));
        }
        let patched =
            patch.apply(question.versioned.object.clone()).map_err(|why| internal(why.to_string()))?;
        let Value::Object(mut patched) = patched else {
            return Err(internal("the patched object is not an object".to_owned()));
        };
        self.reform(question, &mut patched)?;
        let changed = question.versioned.object.as_object() != Some(&patched);
        self.request.convert_in_place(&mut patched, &self.request.kind).map_err(Failure::Internal)?;
        *object = patched;
        let told = json!({
            "configuration": self.webhook.configuration, "webhook": self.webhook.name, "patch": operations,
            "patchType": "JSONPatch",
        });
        self.request
            .attributes
            .context
            .annotate_contents(format!("{PATCH}/{}", self.place), told.to_string());
        Ok(changed)
    }

    /// The patch of an answer, decoded and as it is.
    fn patch(&self, patch: &[u8]) -> Result<(JsonPatch, Value), Failure> {
        let undecodable = |why: String| {
            Failure::calling(
                self.webhook,
                format_args!("received undecodable patch in webhook response: {why}"),
                500,
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
        let reformed =
            self.request.with_resource(&question.matched, |resource| resource.reform(subresource, patched));
        // What the kind does not have is dropped, as upstream's decoder does.
        reformed.map(drop).map_err(Failure::internal)
    }
}
