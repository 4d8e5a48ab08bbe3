//! One call of a webhook.

use std::{collections::HashMap, time::Duration};

use concord_meta::{Status, go::quote};
use concord_registry::{Context, Object};
use concord_server::AdmissionStep;
use concord_webhook::CallError;
use parking_lot::Mutex;
use tracing::warn;

use super::{
    Question, Webhook,
    answer::{self, Answer, BadAnswer},
    review::{self, ReviewVersion},
};
use crate::{request::Request, shared::Shared};

/// Why a webhook did not say yes.
#[derive(Debug)]
pub(super) enum Failure {
    /// It gave no answer that could be used; `failurePolicy` says what that means. With the code of its answer, or what
    /// upstream counts instead.
    Calling(String, u16),
    /// It said no, or cannot be asked about this request at all.
    Refused(Status),
    /// What it said could not be done.
    Internal(Status),
}

impl Failure {
    pub(super) fn calling(webhook: &Webhook, reason: impl std::fmt::Display, code: u16) -> Self {
        Self::Calling(format!("failed calling webhook {}: {reason}", quote(&webhook.name)), code)
    }

    pub(super) fn internal(why: impl std::fmt::Display) -> Self {
        Self::Internal(Status::internal_error(why))
    }
}

/// What webhooks that cannot be reached or understood are counted with.
const UNAVAILABLE: u16 = 503;

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

    /// Counts what came of asking, and says what follows from a failure: `None` if it is passed over.
    pub(super) fn observe<T>(
        &self,
        request: &Request<'_>,
        step: &'static str,
        outcome: Result<T, Failure>,
        time: Duration,
    ) -> Result<Option<T>, Status> {
        let metrics = request.metrics();
        let of: AdmissionStep<'_> = request.step(&self.name, step);
        let failure = match outcome {
            Ok(value) => {
                metrics.webhook(of, false, 200, time);
                return Ok(Some(value));
            }
            Err(failure) => failure,
        };
        let (error, code, status) = match failure {
            Failure::Calling(why, code) if self.fail_open => {
                warn!(webhook = self.name, "passed over: {why}");
                metrics.webhook(of, false, code, time);
                metrics.webhook_passed_over(of);
                return Ok(None);
            }
            Failure::Calling(why, code) => ("calling_webhook_error", code, Status::internal_error(why)),
            Failure::Refused(status) => ("no_error", status.code, status),
            Failure::Internal(status) => ("apiserver_internal_error", 0, status),
        };
        metrics.webhook(of, true, code, time);
        metrics.webhook_rejection(of, error, code);
        Err(status)
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
            return Err(Failure::calling(self, why, 400));
        };
        let client = self
            .client
            .as_ref()
            .map_err(|why| Failure::calling(self, format_args!("could not get REST client: {why}"), 500))?;
        let uid = uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string();
        let body = review::body(version, &uid, request);
        let answer = shared.client.call_telling_timeout(client, body, self.timeout).await;
        let answer = answer.map_err(|why| {
            let code = if let CallError::Status(status) = &why { status.code } else { UNAVAILABLE };
            Failure::calling(self, format_args!("failed to call webhook: {why}"), code)
        })?;
        answer::read(&answer, version, &uid, mutating).map_err(|bad| match bad {
            BadAnswer::Unreadable(why) => {
                Failure::calling(self, format_args!("failed to call webhook: {why}"), UNAVAILABLE)
            }
            BadAnswer::Invalid(why) => {
                Failure::calling(self, format_args!("received invalid webhook response: {why}"), UNAVAILABLE)
            }
        })
    }
}
