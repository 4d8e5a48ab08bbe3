//! Events about migrations, for `kubectl describe`.

use concord_meta::GroupVersion;
use serde_json::{Value, json};

use crate::{
    shared::{MANAGER, Shared, now},
    status::Which,
};

/// Where events about what is in no namespace are.
const NAMESPACE: &str = "default";

impl Shared {
    /// Tells what happened to a migration. One that cannot be written is not missed.
    pub(crate) async fn event(&self, which: &Which, reason: &str, message: &str) {
        let Some(events) = self.config.resources.find(&GroupVersion::new("", "v1"), "events") else { return };
        let kind = if ["Failed", "Cancelled"].contains(&reason) { "Warning" } else { "Normal" };
        let now = now().to_string();
        // Upstream takes no more.
        let message: String = message.chars().take(1024).collect();
        let object = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"generateName": format!("{}.", which.name), "namespace": NAMESPACE},
            "involvedObject": {
                "apiVersion": self.migrations.version.to_string(), "kind": self.migrations.names.kind,
                "name": which.name, "uid": which.uid,
            },
            "reason": reason, "message": message, "type": kind, "count": 1,
            "firstTimestamp": now, "lastTimestamp": now, "source": {"component": MANAGER},
        });
        let Value::Object(object) = object else { return };
        let written = self.registry().create(&self.context(), &events, NAMESPACE, object).await;
        if let Err(error) = written {
            tracing::debug!(error = error.message, reason, "An event could not be written.");
        }
    }
}
