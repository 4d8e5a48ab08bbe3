//! What is written down about requests.
//!
//! The filter `filters/audit.rs` begins an event for each request that the policy wants, and puts an [`AuditHandle`] among
//! the request's extensions. Whoever learns something about the request tells it; at each stage the event goes to the
//! [`Auditing`]'s sink.

mod notes;
mod source;

use std::{sync::Arc, time::SystemTime};

use concord_audit::{
    Attributes, Decision, Event, Impersonated, Level, ObjectReference, Policy, ResponseStatus, Stage,
    TRUNCATED, without_managed_fields,
};
use concord_codec::{Limits, decode_value, encode_object};
use concord_meta::{Status, UserInfo};
use http::{header::USER_AGENT, request::Parts};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::{Metrics, RequestContext as _, RequestInfo, answer::go_json};

pub(crate) use notes::AuditNotes;
pub use notes::note_for_audit;
pub(crate) use source::PeerAddress;

/// What of one request or answer is written down at most. A larger one is left out, and that is said.
pub(crate) const MAX_OBJECT: usize = 10 * 1024 * 1024;

/// Takes an event at one of its stages. It must not block.
pub type AuditSink = Arc<dyn Fn(&Event) + Send + Sync>;

/// Which requests are written down, and where.
pub struct Auditing {
    /// Which, and how much of them.
    pub policy: Policy,
    /// Where.
    pub sink: AuditSink,
}

/// The event of a request that is written down.
#[derive(Clone)]
pub struct AuditHandle(Arc<Audited>);

struct Audited {
    auditing: Arc<Auditing>,
    metrics: Arc<Metrics>,
    decision: Decision,
    event: Mutex<Event>,
}

fn attributes<'a>(info: &'a RequestInfo, user: Option<&'a UserInfo>) -> Attributes<'a> {
    Attributes {
        user,
        verb: &info.verb,
        is_resource: info.is_resource_request,
        path: &info.path,
        namespace: &info.namespace,
        group: &info.api_group,
        resource: &info.resource,
        subresource: &info.subresource,
        name: &info.name,
    }
}

fn object_reference(info: &RequestInfo) -> Option<ObjectReference> {
    info.is_resource_request.then(|| ObjectReference {
        resource: info.resource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        api_group: info.api_group.clone(),
        api_version: info.api_version.clone(),
        subresource: info.subresource.clone(),
        ..ObjectReference::default()
    })
}

impl AuditHandle {
    /// Begins the event of a request by `user`, if it is to be written down.
    pub(crate) fn begin(
        auditing: &Arc<Auditing>,
        metrics: &Arc<Metrics>,
        request: &Parts,
        user: Option<&UserInfo>,
    ) -> Option<Self> {
        let info = request.info();
        let decision = auditing.policy.decide(&attributes(&info, user));
        metrics.audit().level(decision.level);
        if decision.level == Level::None {
            return None;
        }
        let header = |name| {
            let value = request.headers.get(name).map(|value: &http::HeaderValue| value.as_bytes());
            String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
        };
        let received = SystemTime::now() - request.received().elapsed();
        let received = Timestamp::try_from(received).unwrap_or_default();
        let event = Event {
            level: decision.level,
            audit_id: header(http::HeaderName::from_static("audit-id")),
            stage: Stage::RequestReceived,
            request_uri: request.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: info.verb.to_string(),
            user: user.cloned(),
            impersonated: None,
            source_ips: source::source_ips(request),
            user_agent: header(USER_AGENT),
            object: object_reference(&info),
            response_status: None,
            request_object: None,
            response_object: None,
            received,
            stage_time: received,
            annotations: request.extensions.get().map(AuditNotes::annotations).unwrap_or_default(),
        };
        let (auditing, metrics) = (auditing.clone(), metrics.clone());
        Some(Self(Arc::new(Audited { auditing, metrics, decision, event: Mutex::new(event) })))
    }

    /// How much is written down.
    #[must_use]
    pub fn level(&self) -> Level {
        self.0.decision.level
    }

    /// Whether answers are written down.
    #[must_use]
    pub fn wants_response(&self) -> bool {
        self.level() >= Level::RequestResponse
    }

    /// Says something more about the request. What was said first under a key stays.
    pub fn annotate(&self, key: &str, value: &str) {
        let mut event = self.0.event.lock();
        if !event.annotations.contains_key(key) {
            event.annotations.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Says something that holds a part of what was sent: only events that have what was sent may have it.
    pub fn annotate_contents(&self, key: &str, value: &str) {
        if self.level() >= Level::Request {
            self.annotate(key, value);
        }
    }

    /// Says what object was sent.
    pub fn request_object(&self, object: &Map<String, Value>) {
        let sent = (self.level() >= Level::Request).then(|| self.encode(object));
        let metadata = |name: &str| {
            let value = object.get("metadata").and_then(|metadata| metadata.get(name));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let mut event = self.0.event.lock();
        let reference = event.object.get_or_insert_default();
        for (field, name) in [
            (&mut reference.namespace, "namespace"),
            (&mut reference.name, "name"),
            (&mut reference.uid, "uid"),
            (&mut reference.resource_version, "resourceVersion"),
        ] {
            if field.is_empty() {
                *field = metadata(name);
            }
        }
        if let Some(sent) = sent {
            event.request_object = Some(sent);
        }
    }

    /// Says what patch was sent: JSON, or an object in YAML.
    pub fn request_patch(&self, patch: &[u8]) {
        if self.level() < Level::Request {
            return;
        }
        let patch = match decode_value(patch, Limits::default()) {
            Ok(patch) => Some(patch),
            Err(_) => read(patch).map(Value::Object),
        };
        self.0.event.lock().request_object = patch.map(|patch| concord_codec::encode(&patch));
    }

    /// Says what object is answered, for an answer that is not JSON.
    pub fn response_object(&self, object: &Map<String, Value>) {
        if self.wants_response() {
            let answered = self.encode(object);
            self.0.event.lock().response_object = Some(answered);
        }
    }

    fn encode(&self, object: &Map<String, Value>) -> Vec<u8> {
        let mut out = Vec::new();
        match self.0.decision.omit_managed_fields {
            true => match without_managed_fields(Value::Object(object.clone())) {
                Value::Object(object) => encode_object(&object, &mut out),
                other => concord_codec::encode_into(&other, &mut out),
            },
            false => encode_object(object, &mut out),
        }
        out
    }

    /// Says which bytes were answered: an object in JSON or YAML.
    pub fn response_bytes(&self, bytes: &[u8]) {
        if self.0.event.lock().response_object.is_some() {
            return;
        }
        let bytes = bytes.trim_ascii_end();
        // One line is one event. What is on several lines, or has to lose some fields, is read and written anew.
        let compact = !bytes.contains(&b'\n') && !self.0.decision.omit_managed_fields;
        let answered = match compact && bytes.first() == Some(&b'{') {
            true => Some(bytes.to_vec()),
            false => read(bytes).map(|object| self.encode(&object)),
        };
        self.0.event.lock().response_object = answered;
    }

    /// Says that the answer was too large to be written down.
    pub(crate) fn response_truncated(&self) {
        self.annotate(TRUNCATED, "true");
    }

    /// Says whom the user acts as, and by which verb.
    pub(crate) fn impersonated(&self, user: &UserInfo, constraint: &str) {
        let impersonated = Impersonated { user: user.clone(), constraint: constraint.to_owned() };
        self.0.event.lock().impersonated = Some(impersonated);
    }

    /// Says how the request ended.
    pub(crate) fn ended(&self, status: ResponseStatus) {
        self.0.event.lock().response_status = Some(status);
    }

    /// Says that the answer is this `Status`.
    pub(crate) fn answered_status(&self, status: &Status, code: u16) {
        let answered = self.wants_response().then(|| go_json(status, false).unwrap_or_default());
        let mut event = self.0.event.lock();
        event.response_status = Some(ResponseStatus::of(status, code));
        if let Some(answered) = answered.filter(|_| event.response_object.is_none()) {
            event.response_object = Some(answered.trim_ascii_end().to_vec());
        }
    }

    /// Whether it is known how the request ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.event.lock().response_status.is_some()
    }

    /// Writes the event down, unless this stage is not wanted.
    pub(crate) fn process(&self, stage: Stage) {
        if self.0.decision.omit_stages.contains(stage) {
            return;
        }
        let mut event = self.0.event.lock();
        event.stage = stage;
        event.stage_time = match stage {
            Stage::RequestReceived => event.received,
            _ => Timestamp::now(),
        };
        self.0.metrics.audit().event();
        (self.0.auditing.sink)(&event);
    }
}

/// An object in JSON or YAML, on one line or several.
fn read(bytes: &[u8]) -> Option<Map<String, Value>> {
    let options = concord_codec::Options {
        limits: Limits { max_bytes: MAX_OBJECT, ..Limits::default() },
        ..concord_codec::Options::default()
    };
    let decoded = match bytes.first() {
        Some(b'{') => concord_codec::decode(bytes, &options),
        _ => concord_codec::decode_yaml(bytes, &options),
    };
    decoded.ok().map(|decoded| decoded.object)
}
