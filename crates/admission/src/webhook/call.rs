//! One call of a webhook.

use std::collections::HashMap;

use concord_meta::{Status, go::quote};
use concord_registry::{Context, Object};
use parking_lot::Mutex;

use super::{
    Question, Webhook,
    answer::{self, Answer, BadAnswer},
    review::{self, ReviewVersion},
};
use crate::shared::Shared;

/// Why a webhook did not say yes.
#[derive(Debug)]
pub(super) enum Failure {
    /// It gave no answer that could be used; `failurePolicy` says what that means.
    Calling(String),
    /// It said no, or cannot be asked about this request at all.
    Refused(Status),
}

impl Failure {
    pub(super) fn calling(webhook: &Webhook, reason: impl std::fmt::Display) -> Self {
        Self::Calling(format!("failed calling webhook {}: {reason}", quote(&webhook.name)))
    }
}

/// What the webhooks of one request were asked last, and answered.
///
/// A write that is refused is decided again on a state that is certainly the newest. Mostly that is the same state, and
/// then nobody is to be asked the same twice.
#[derive(Default)]
pub(super) struct Asked(Mutex<HashMap<String, (Object, Answer)>>);

impl Asked {
    fn known(&self, id: &str, request: &Object) -> Option<Answer> {
        let asked = self.0.lock();
        asked.get(id).filter(|(before, _)| before == request).map(|(_, answer)| answer.clone())
    }
}

impl Webhook {
    /// Asks. Warnings and annotations of the answer are passed on.
    pub(super) async fn ask(
        &self,
        shared: &Shared,
        context: &Context,
        question: &Question,
        mutating: bool,
    ) -> Result<Answer, Failure> {
        if context.dry_run && !self.supports_dry_run {
            let why = format!("admission webhook {} does not support dry run", quote(&self.name));
            return Err(Failure::Refused(Status::bad_request(why)));
        }
        let request = review::request(question);
        let asked = context.memory::<Asked>();
        if let Some(answer) = asked.known(&self.id, &request) {
            return self.accepted(answer);
        }
        let answer = self.call(shared, request.clone(), mutating).await?;
        for (key, value) in &answer.audit_annotations {
            context.annotate(format!("{}/{key}", self.name), value.as_str());
        }
        answer.warnings.iter().for_each(|warning| context.warn(warning));
        asked.0.lock().insert(self.id.clone(), (request, answer.clone()));
        self.accepted(answer)
    }

    fn accepted(&self, answer: Answer) -> Result<Answer, Failure> {
        match answer.allowed {
            true => Ok(answer),
            false => Err(Failure::Refused(answer::denial(&self.name, answer.status.as_ref()))),
        }
    }

    async fn call(&self, shared: &Shared, request: Object, mutating: bool) -> Result<Answer, Failure> {
        let Some(version) = ReviewVersion::choose(&self.review_versions) else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, \
                       v1beta1)";
            return Err(Failure::calling(self, why));
        };
        let client = self.client.as_ref();
        let client =
            client.map_err(|why| Failure::calling(self, format_args!("could not get REST client: {why}")))?;
        let uid = uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string();
        let body = review::body(version, &uid, request);
        let answer = shared.client.call_telling_timeout(client, body, self.timeout).await;
        let answer =
            answer.map_err(|why| Failure::calling(self, format_args!("failed to call webhook: {why}")))?;
        answer::read(&answer, version, &uid, mutating).map_err(|bad| match bad {
            BadAnswer::Unreadable(why) => {
                Failure::calling(self, format_args!("failed to call webhook: {why}"))
            }
            BadAnswer::Invalid(why) => {
                Failure::calling(self, format_args!("received invalid webhook response: {why}"))
            }
        })
    }
}
