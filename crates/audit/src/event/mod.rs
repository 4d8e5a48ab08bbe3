//! One line of the log.

use std::collections::BTreeMap;

use concord_meta::{Reason, Status, StatusDetails, UserInfo, go};
use jiff::Timestamp;
use serde_json::Value;

use crate::{Level, Stage};

/// The annotation of an event that would have been too large with what was sent or answered.
pub const TRUNCATED: &str = "audit.k8s.io/truncated";

/// A longer name of a client is cut off.
const MAX_USER_AGENT: usize = 1024;

/// A request at one stage.
#[derive(Debug, Clone)]
pub struct Event {
    /// How much is written down.
    pub level: Level,
    /// What the request is called in all logs.
    pub audit_id: String,
    /// At which moment.
    pub stage: Stage,
    /// Path and query.
    pub request_uri: String,
    /// What was to be done.
    pub verb: String,
    /// Who asked; `None` if that could not be found out.
    pub user: Option<UserInfo>,
    /// Whom the user wanted to be and may be.
    pub impersonated: Option<Impersonated>,
    /// Where the request came from, the client first.
    pub source_ips: Vec<String>,
    /// What the client calls itself.
    pub user_agent: String,
    /// What the request is about, if it is a resource.
    pub object: Option<ObjectReference>,
    /// How it ended.
    pub response_status: Option<ResponseStatus>,
    /// What was sent: compact JSON.
    pub request_object: Option<Vec<u8>>,
    /// What was answered: compact JSON.
    pub response_object: Option<Vec<u8>>,
    /// When the request arrived.
    pub received: Timestamp,
    /// When it was at this stage.
    pub stage_time: Timestamp,
    /// What else there is to say, by key.
    pub annotations: BTreeMap<String, String>,
}

/// Whom a user acts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonated {
    /// That user.
    pub user: UserInfo,
    /// The verb that allowed it, if it allows only some things; or empty.
    pub constraint: String,
}

/// What a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectReference {
    /// The plural name of the resource.
    pub resource: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The name, or empty.
    pub name: String,
    /// The uid, if the client named one.
    pub uid: String,
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The version of the API.
    pub api_version: String,
    /// The resource version, if the client named one.
    pub resource_version: String,
    /// The subresource, or empty.
    pub subresource: String,
}

/// How a request ended: what of a `Status` is bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseStatus {
    /// `Success`, `Failure`, or empty if the answer is no `Status`.
    pub status: String,
    /// The text for a person.
    pub message: String,
    /// The word for a program.
    pub reason: String,
    /// What it is about.
    pub details: Option<Box<StatusDetails>>,
    /// The status code of HTTP.
    pub code: u16,
}

impl ResponseStatus {
    /// An answer that is no `Status`.
    #[must_use]
    pub fn code(code: u16) -> Self {
        Self { code, ..Self::default() }
    }

    /// An answer that is this `Status`, with this code.
    #[must_use]
    pub fn of(status: &Status, code: u16) -> Self {
        Self {
            status: format!("{:?}", status.outcome),
            message: status.message.clone(),
            reason: status.reason.as_str().to_owned(),
            details: status.details.clone(),
            code,
        }
    }

    /// What is said of a client that went away before it was answered.
    #[must_use]
    pub fn closed_early() -> Self {
        Self {
            status: "Success".to_owned(),
            message: "Connection closed early".to_owned(),
            ..Self::code(200)
        }
    }

    /// What is said of a handler that panicked.
    #[must_use]
    pub fn panicked(panic: &str) -> Self {
        Self {
            status: "Failure".to_owned(),
            message: format!("APIServer panic'd: {panic}"),
            reason: Reason::INTERNAL_ERROR.as_str().to_owned(),
            ..Self::code(500)
        }
    }
}

/// Writes members one after the other, in the order of upstream's types. What is empty is left out, as upstream does.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Members<'a> {
    fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A string, also if it is empty.
    fn text(&mut self, name: &str, text: &str) -> &mut Self {
        concord_codec::encode_into(&Value::from(text), self.key(name));
        self
    }

    fn some_text(&mut self, name: &str, text: &str) -> &mut Self {
        if !text.is_empty() {
            self.text(name, text);
        }
        self
    }

    fn some_texts(&mut self, name: &str, texts: &[String]) -> &mut Self {
        if !texts.is_empty() {
            concord_codec::encode_into(&Value::from(texts), self.key(name));
        }
        self
    }

    fn value(&mut self, name: &str, value: &Value) -> &mut Self {
        concord_codec::encode_into(value, self.key(name));
        self
    }

    fn raw(&mut self, name: &str, json: Option<&[u8]>) -> &mut Self {
        if let Some(json) = json {
            self.key(name).extend_from_slice(json);
        }
        self
    }

    fn time(&mut self, name: &str, time: Timestamp) -> &mut Self {
        self.text(name, &micros(time))
    }

    fn close(&mut self) {
        self.out.push(b'}');
    }
}

fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn write_user(user: &UserInfo, out: &mut Vec<u8>) {
    let mut members = Members::open(out);
    members.some_text("username", &user.name).some_text("uid", &user.uid).some_texts("groups", &user.groups);
    if !user.extra.is_empty() {
        let extra = user.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.as_slice())));
        members.value("extra", &extra.collect());
    }
    members.close();
}

impl ObjectReference {
    fn write(&self, out: &mut Vec<u8>) {
        Members::open(out)
            .some_text("resource", &self.resource)
            .some_text("namespace", &self.namespace)
            .some_text("name", &self.name)
            .some_text("uid", &self.uid)
            .some_text("apiGroup", &self.api_group)
            .some_text("apiVersion", &self.api_version)
            .some_text("resourceVersion", &self.resource_version)
            .some_text("subresource", &self.subresource)
            .close();
    }
}

impl ResponseStatus {
    fn write(&self, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        members.raw("metadata", Some(b"{}"));
        members.some_text("status", &self.status).some_text("message", &self.message);
        members.some_text("reason", &self.reason);
        if let Some(details) = &self.details {
            // Nothing in it can fail to become JSON.
            members.value("details", &serde_json::to_value(details).unwrap_or_default());
        }
        if self.code != 0 {
            members.value("code", &self.code.into());
        }
        members.close();
    }
}

impl Event {
    /// The event as one line of JSON, members in upstream's order.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        let mut members = Members::open(&mut out);
        members
            .text("kind", "Event")
            .text("apiVersion", "audit.k8s.io/v1")
            .text("level", self.level.as_str());
        members.text("auditID", &self.audit_id).text("stage", self.stage.as_str());
        members.text("requestURI", &self.request_uri).text("verb", &self.verb);
        write_user(self.user.as_ref().unwrap_or(&UserInfo::default()), members.key("user"));
        if let Some(Impersonated { user, constraint }) = &self.impersonated {
            write_user(user, members.key("impersonatedUser"));
            if !constraint.is_empty() {
                let metadata = serde_json::json!({ "impersonationConstraint": constraint });
                members.value("authenticationMetadata", &metadata);
            }
        }
        members.some_texts("sourceIPs", &self.source_ips).some_text("userAgent", &self.short_user_agent());
        if let Some(object) = &self.object {
            object.write(members.key("objectRef"));
        }
        if let Some(status) = &self.response_status {
            status.write(members.key("responseStatus"));
        }
        members.raw("requestObject", self.request_object.as_deref());
        members.raw("responseObject", self.response_object.as_deref());
        members.time("requestReceivedTimestamp", self.received).time("stageTimestamp", self.stage_time);
        if !self.annotations.is_empty() {
            let annotations =
                self.annotations.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
            members.value("annotations", &annotations.collect());
        }
        members.close();
        out.push(b'\n');
        out
    }

    fn short_user_agent(&self) -> String {
        match self.user_agent.len() > MAX_USER_AGENT {
            true => {
                let end = self.user_agent.floor_char_boundary(MAX_USER_AGENT);
                format!("{}...TRUNCATED", &self.user_agent[..end])
            }
            false => self.user_agent.clone(),
        }
    }

    /// The event as one line of upstream's older form, which has only some of it.
    #[must_use]
    pub fn to_legacy(&self) -> Vec<u8> {
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        let list = |items: &[String], none: &str| {
            or(&items.iter().map(|item| go::quote(item)).collect::<Vec<_>>().join(","), none)
        };
        let (name, groups) = match &self.user {
            Some(user) => (user.name.as_str(), list(&user.groups, "<none>")),
            None => ("", "<none>".to_owned()),
        };
        let (other, others) = match &self.impersonated {
            Some(other) => (other.user.name.clone(), list(&other.user.groups, "<lookup>")),
            None => ("<self>".to_owned(), "<lookup>".to_owned()),
        };
        let namespace = self.object.as_ref().map_or("", |object| &object.namespace);
        let response = self.response_status.as_ref();
        let response = response.map_or_else(|| "<deferred>".to_owned(), |status| status.code.to_string());
        let quoted = [
            ("id", self.audit_id.clone()),
            ("stage", self.stage.as_str().to_owned()),
            ("ip", or(self.source_ips.first().map_or("", String::as_str), "<unknown>")),
            ("method", self.verb.clone()),
            ("user", or(name, "<none>")),
            ("groups", groups),
            ("as", other),
            ("asgroups", others),
            ("user-agent", self.short_user_agent()),
            ("namespace", or(namespace, "<none>")),
            ("uri", self.request_uri.clone()),
        ];
        let quoted: Vec<String> =
            quoted.iter().map(|(key, value)| format!("{key}={}", go::quote(value))).collect();
        format!("{} AUDIT: {} response=\"{response}\"\n", self.received, quoted.join(" ")).into_bytes()
    }
}

/// JSON of an object, a list or a table without the managed fields of the objects in it.
#[must_use]
pub fn without_managed_fields(mut object: Value) -> Value {
    strip(&mut object);
    for item in list_mut(&mut object, "items") {
        strip(item);
    }
    for row in list_mut(&mut object, "rows") {
        if let Some(object) = row.get_mut("object") {
            strip(object);
        }
    }
    object
}

fn list_mut<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn strip(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests;
