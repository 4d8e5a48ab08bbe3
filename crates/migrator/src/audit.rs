//! What the audit log says about rewrites: what it would say if the migrator were a client of the server.

use std::sync::Arc;

use concord_audit::{Attributes, Event, Level, ObjectReference, ResponseStatus, Stage};
use concord_codec::encode_object;
use concord_meta::{Status, UserInfo};
use concord_registry::{ObjectName, Resource, Written};
use concord_server::Auditing;
use jiff::Timestamp;

use crate::shared::MANAGER;

/// A patch that was sent.
pub(crate) struct Sent<'a> {
    pub(crate) user: &'a UserInfo,
    pub(crate) resource: &'a Resource,
    pub(crate) name: ObjectName<'a>,
    pub(crate) body: &'a str,
    pub(crate) received: Timestamp,
}

impl Sent<'_> {
    /// Writes down what became of it, if the policy wants to know.
    pub(crate) fn ended(&self, auditing: &Arc<Auditing>, answer: &Result<Written, Status>) {
        let path = self.path();
        let decision = auditing.policy.decide(&Attributes {
            user: Some(self.user),
            verb: "patch",
            is_resource: true,
            path: &path,
            namespace: self.name.namespace,
            group: &self.resource.version.group,
            resource: &self.resource.names.plural,
            subresource: "",
            name: self.name.name,
        });
        if decision.level == Level::None {
            return;
        }
        let mut event = self.event(decision.level, &path);
        if !decision.omit_stages.contains(Stage::RequestReceived) {
            (auditing.sink)(&event);
        }
        if decision.omit_stages.contains(Stage::ResponseComplete) {
            return;
        }
        (event.stage, event.stage_time) = (Stage::ResponseComplete, Timestamp::now());
        event.request_object = (decision.level >= Level::Request).then(|| self.body.as_bytes().to_vec());
        event.response_status = Some(match answer {
            Ok(_) => ResponseStatus::code(200),
            Err(status) => ResponseStatus::of(status, status.code),
        });
        if let Ok(written) = answer
            && decision.level >= Level::RequestResponse
        {
            event.response_object = self.shown(written);
        }
        (auditing.sink)(&event);
    }

    fn event(&self, level: Level, path: &str) -> Event {
        Event {
            level,
            audit_id: uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string(),
            stage: Stage::RequestReceived,
            request_uri: format!("{path}?fieldManager={MANAGER}"),
            verb: "patch".to_owned(),
            user: Some(self.user.clone()),
            impersonated: None,
            // The server itself.
            source_ips: vec!["127.0.0.1".to_owned()],
            user_agent: format!("concord/{MANAGER}"),
            object: Some(ObjectReference {
                resource: self.resource.names.plural.clone(),
                namespace: self.name.namespace.to_owned(),
                name: self.name.name.to_owned(),
                api_group: self.resource.version.group.clone(),
                api_version: self.resource.version.version.clone(),
                ..ObjectReference::default()
            }),
            response_status: None,
            request_object: None,
            response_object: None,
            received: self.received,
            stage_time: self.received,
            annotations: [].into(),
        }
    }

    fn shown(&self, written: &Written) -> Option<Vec<u8>> {
        let mut shown = Vec::new();
        encode_object(&self.resource.object(&written.item).ok()?, &mut shown);
        Some(shown)
    }

    fn path(&self) -> String {
        let version = &self.resource.version;
        let root = if version.group.is_empty() { "/api" } else { "/apis" };
        let place = match self.name.namespace {
            "" => String::new(),
            namespace => format!("/namespaces/{namespace}"),
        };
        format!("{root}/{version}{place}/{}/{}", self.resource.names.plural, self.name.name)
    }
}
