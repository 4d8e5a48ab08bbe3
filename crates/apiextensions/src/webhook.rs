//! Conversion by webhook.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_meta::GroupVersion;
use concord_registry::{ConversionError, Converter, Object, Remote, Translator};
use concord_webhook::{Client, ClientConfig, InvalidConfig};
use serde_json::Value;

use crate::review::{Review, version};

/// How long a webhook may take. Upstream waits for as long as the request that needs it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a definition says about its conversion webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Webhook {
    config: Result<ClientConfig, InvalidConfig>,
    /// The versions of ConversionReview that it understands, best first.
    understood: Vec<String>,
}

impl Webhook {
    /// Reads `spec.conversion.webhook`.
    pub(crate) fn read(webhook: &Value) -> Self {
        let config = webhook["clientConfig"].as_object();
        let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        Self {
            config: config.map_or(Err(InvalidConfig::NoTarget), ClientConfig::from_object),
            understood: versions.filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        }
    }
}

/// Converts the objects of a definition by asking its webhook.
pub(crate) struct Asking(Remote);

impl Asking {
    pub(crate) fn new(client: Arc<Client>, webhook: Webhook) -> Self {
        Self(Remote::new(Arc::new(Caller { client, webhook })))
    }
}

impl Converter for Asking {
    fn convert(&self, _: &mut Object, to: &GroupVersion) -> Result<(), ConversionError> {
        Err(ConversionError(format!("objects are converted to {to} by a webhook, which was not asked")))
    }

    fn remote(&self) -> Option<&Remote> {
        Some(&self.0)
    }
}

struct Caller {
    client: Arc<Client>,
    webhook: Webhook,
}

#[async_trait]
impl Translator for Caller {
    async fn translate(&self, objects: &[Object], to: &GroupVersion) -> Result<Vec<Object>, ConversionError> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let version = version(&self.webhook.understood).map_err(ConversionError)?;
        let uid = uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string();
        let review = Review { version, uid: &uid, objects, to };
        let text = |name: &str| first.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let refuse = |why: String| {
            let (from, kind) = (text("apiVersion"), text("kind"));
            ConversionError(format!("conversion webhook for {from}, Kind={kind} {why}"))
        };
        let config = self.webhook.config.as_ref().map_err(|error| ConversionError(error.to_string()))?;
        let body = Bytes::from(concord_codec::encode(&review.body()));
        let answer = self.client.call(config, body, TIMEOUT).await;
        let answer = answer.map_err(|error| refuse(format!("failed: {error}")))?;
        review.read(&answer).map_err(refuse)
    }
}
