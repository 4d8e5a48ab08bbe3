use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use concord_replica::{Event, Snapshot, View};
use concord_store::{KeyRange, Revision};

use crate::{FlowController, FlowSchema, PriorityLevel};

/// Gives a [`FlowController`] the FlowSchemas and PriorityLevelConfigurations that are stored, fed by the replica.
pub struct FlowView {
    schemas_prefix: Bytes,
    levels_prefix: Bytes,
    schemas: BTreeMap<Bytes, FlowSchema>,
    levels: BTreeMap<Bytes, PriorityLevel>,
    controller: Arc<FlowController>,
}

impl FlowView {
    /// A view of what is stored under keys that begin with `prefix`, such as `/registry/`.
    pub fn new(prefix: &str, controller: Arc<FlowController>) -> Self {
        Self {
            schemas_prefix: format!("{prefix}flowschemas/").into(),
            levels_prefix: format!("{prefix}prioritylevelconfigurations/").into(),
            schemas: BTreeMap::new(),
            levels: BTreeMap::new(),
            controller,
        }
    }

    /// Takes over what is stored at a key; `None` if nothing is.
    fn set(&mut self, key: &Bytes, value: Option<&[u8]>) {
        if key.starts_with(&self.schemas_prefix) {
            put(&mut self.schemas, key, value.and_then(FlowSchema::read));
        } else if key.starts_with(&self.levels_prefix) {
            put(&mut self.levels, key, value.and_then(PriorityLevel::read));
        }
    }

    fn publish(&self) {
        self.controller.configure(self.levels.values().cloned(), self.schemas.values().cloned());
    }
}

fn put<T>(map: &mut BTreeMap<Bytes, T>, key: &Bytes, value: Option<T>) {
    match value {
        Some(value) => drop(map.insert(key.clone(), value)),
        None => drop(map.remove(key)),
    }
}

impl View for FlowView {
    fn name(&self) -> &str {
        "flowcontrol"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        vec![self.schemas_prefix.clone(), self.levels_prefix.clone()]
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        self.schemas.clear();
        self.levels.clear();
        for prefix in self.prefixes() {
            for entry in snapshot.scan(&KeyRange::prefix(prefix)) {
                self.set(&entry.key, Some(&entry.value));
            }
        }
        self.publish();
    }

    fn apply(&mut self, _: Revision, events: &[Event]) {
        for event in events {
            self.set(event.key(), event.current().map(|entry| entry.value.as_ref()));
        }
        self.publish();
    }
}
