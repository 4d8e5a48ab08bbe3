//! Events as the client wants them.

use std::sync::Arc;

use bytes::Bytes;
use concord_codec::{EventType, ListOrder, MediaType, encode_object, write_event};
use concord_meta::Status;
use concord_printers::{IncludeObject, MetaVersion};
use concord_protobuf::watch_event;
use concord_registry::{Audience, Item, Object, Resource, metadata_mut};
use concord_server::WatchEvents;
use serde_json::{Value, json};

use crate::{
    form::Transform,
    protobuf,
    set::{Columns, Endpoint},
    transform::{metadata_alone, tables},
};

/// Marks the bookmark after the initial state.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Writes the events of one watch.
pub(super) struct Encoder {
    resource: Arc<Resource>,
    style: Style,
    media_type: MediaType,
    count: WatchEvents,
}

enum Style {
    /// As they are: written once for all watches.
    Objects,
    Metadata(MetaVersion),
    Tables {
        columns: Columns,
        version: MetaVersion,
        include: IncludeObject,
        headers: bool,
    },
}

impl Encoder {
    pub(super) fn new(
        endpoint: &Endpoint,
        transform: Transform,
        include: IncludeObject,
        media_type: MediaType,
        count: WatchEvents,
    ) -> Self {
        let style = match transform {
            // Upstream sends the objects to a client that wants them to be lists.
            Transform::Nothing | Transform::MetadataList(_) => Style::Objects,
            Transform::Metadata(version) => Style::Metadata(version),
            Transform::Table(version) => {
                Style::Tables { columns: endpoint.columns.clone(), version, include, headers: true }
            }
        };
        Self { resource: Arc::clone(&endpoint.resource), style, media_type, count }
    }

    /// Those who are told the same.
    pub(super) fn audience(&self) -> &Audience {
        &self.resource.audience
    }

    /// The frame of a change.
    ///
    /// # Errors
    ///
    /// 500 when the object cannot be read.
    pub(super) fn event(&mut self, event: EventType, value: &Bytes, revision: u64) -> Result<Bytes, Status> {
        if matches!(self.style, Style::Objects) && self.media_type == MediaType::Json {
            let frame = self.resource.frame(event, value, revision)?;
            self.count.sent(frame.len());
            return Ok(frame);
        }
        let item = Item { key: Bytes::new(), value: value.clone(), revision: Some(revision) };
        let object = self.resource.object(&item)?;
        self.frame(event, object)
    }

    /// The frame of a bookmark.
    ///
    /// # Errors
    ///
    /// 500, which would be a mistake here.
    pub(super) fn bookmark(&mut self, revision: u64, ends_initial_events: bool) -> Result<Bytes, Status> {
        let mut object = self.empty();
        let metadata = metadata_mut(&mut object);
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        if ends_initial_events {
            metadata.insert("annotations".to_owned(), json!({INITIAL_EVENTS_END: "true"}));
        }
        self.frame(EventType::Bookmark, object)
    }

    /// The frame of an error, which is the last.
    pub(super) fn error(&self, status: &Status) -> Bytes {
        if self.media_type == MediaType::Protobuf
            && let Ok(status) = protobuf::encode_status(&self.resource, status)
        {
            return watch_event(EventType::Error.as_str(), &status).into();
        }
        let status = serde_json::to_vec(status).unwrap_or_else(|_| b"{}".to_vec());
        let mut frame = Vec::new();
        write_event(EventType::Error, &status, &mut frame);
        frame.into()
    }

    /// An object with nothing in it but what its kind always writes.
    fn empty(&self) -> Object {
        let (kind, version) = (&self.resource.names.kind, self.resource.version.to_string());
        let schema = self.resource.schema().filter(|_| self.resource.order == ListOrder::Typed);
        match schema.map(|schema| schema.empty(kind, &version)) {
            Some(Value::Object(empty)) => empty,
            _ => Object::from_iter([
                ("kind".to_owned(), kind.as_str().into()),
                ("apiVersion".to_owned(), version.into()),
            ]),
        }
    }

    fn frame(&mut self, event: EventType, object: Object) -> Result<Bytes, Status> {
        let object = match &mut self.style {
            Style::Objects => object,
            Style::Metadata(version) => metadata_alone(object, *version),
            Style::Tables { columns, version, include, headers } => {
                let mut tables = tables(columns, *version, *include);
                // The columns come with the first event only.
                tables.options.no_headers = !std::mem::take(headers);
                tables.object(object)
            }
        };
        let frame = if self.media_type == MediaType::Protobuf {
            watch_event(event.as_str(), &protobuf::encode(&self.resource, &object)?)
        } else {
            let mut encoded = Vec::new();
            encode_object(&object, &mut encoded);
            let mut frame = Vec::with_capacity(encoded.len() + 40);
            write_event(event, &encoded, &mut frame);
            frame
        };
        self.count.sent(frame.len());
        Ok(frame.into())
    }
}
