//! Webhooks, as users configure them.

mod answer;
mod call;
mod mutating;
mod review;
mod validating;

use std::{collections::HashMap, time::Duration};

use concord_meta::Status;
use concord_registry::Object;
use concord_webhook::{ClientConfig, InvalidConfig};
use serde_json::Value;

pub(crate) use mutating::{MutatingWebhooks, Rounds};
pub use validating::ValidatingWebhooks;

use crate::{
    criteria::Criteria,
    expressions::{Conditions, Verdict, counted},
    read::{member, objects, text, texts},
    request::{Matched, Request, Versioned},
};

/// How long a webhook may take that does not say; the API fills this in, too.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// One webhook of a configuration.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// Tells it from all others, also from one of the same name.
    id: String,
    configuration: String,
    name: String,
    client: Result<ClientConfig, InvalidConfig>,
    criteria: Criteria,
    conditions: Conditions,
    /// `failurePolicy: Ignore`
    fail_open: bool,
    timeout: Duration,
    /// Whether it may be asked about what is not to be.
    supports_dry_run: bool,
    review_versions: Vec<String>,
    /// `reinvocationPolicy: IfNeeded`
    reinvocable: bool,
}

/// All webhooks of a configuration.
pub(crate) fn read(configuration: &str, object: &Object) -> Vec<Webhook> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let webhooks = objects(object, "webhooks").map(|webhook| {
        let name = text(webhook, "name");
        let number = seen.entry(name).or_default();
        let id = format!("{configuration}/{name}/{number}");
        *number += 1;
        Webhook::read(configuration, id, webhook)
    });
    webhooks.collect()
}

impl Webhook {
    fn read(configuration: &str, id: String, webhook: &Object) -> Self {
        let fail_open = text(webhook, "failurePolicy") == "Ignore";
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_u64);
        Self {
            id,
            configuration: configuration.to_owned(),
            name: text(webhook, "name").to_owned(),
            client: ClientConfig::from_object(member(webhook, "clientConfig").unwrap_or(&Object::new())),
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::read(webhook, fail_open),
            fail_open,
            timeout: seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            supports_dry_run: ["None", "NoneOnDryRun"].contains(&text(webhook, "sideEffects")),
            review_versions: texts(webhook, "admissionReviewVersions"),
            reinvocable: text(webhook, "reinvocationPolicy") == "IfNeeded",
        }
    }

    /// What it is to be asked; `None` if it is not concerned.
    ///
    /// # Errors
    ///
    /// Why the request is refused without asking.
    async fn question(
        &self,
        request: &Request<'_>,
        object: Option<&Object>,
        step: &'static str,
    ) -> Result<Option<Question>, Status> {
        let Some(matched) = self.criteria.matches(request, object).await? else { return Ok(None) };
        let versioned = request.versioned(object, &matched.kind)?;
        let described = Value::Object(request.describe(&matched));
        if !self.conditions.is_empty() {
            let of = (request.step(&self.name, step), "webhook");
            match counted(request, of, || self.conditions.decide(request, &described, &versioned)) {
                Verdict::Matches => {}
                Verdict::Excluded => return Ok(None),
                Verdict::Failed(why) => {
                    return Err(Status::forbidden(&request.group_resource(), request.attributes.name, why));
                }
            }
        }
        Ok(Some(Question { matched, versioned, described }))
    }
}

/// What a webhook is asked about.
#[derive(Debug)]
struct Question {
    matched: Matched,
    versioned: Versioned,
    /// The request without its objects.
    described: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_read_once_for_all_requests() {
        let configuration = json!({"webhooks": [
            {"name": "a", "clientConfig": {"url": "https://example.org"}, "sideEffects": "None",
             "failurePolicy": "Ignore", "timeoutSeconds": 3, "admissionReviewVersions": ["v1"],
             "reinvocationPolicy": "IfNeeded", "matchConditions": [{"name": "c", "expression": "true"}]},
            {"name": "a", "sideEffects": "Some"},
        ]});
        let webhooks = read("conf", configuration.as_object().expect("an object"));
        let [first, second] = webhooks.as_slice() else { panic!("{webhooks:?}") };
        assert_eq!((first.id.as_str(), second.id.as_str()), ("conf/a/0", "conf/a/1"));
        assert!(
            first.fail_open && first.supports_dry_run && first.reinvocable && !first.conditions.is_empty()
        );
        assert!(!second.fail_open && !second.supports_dry_run && !second.reinvocable);
        assert_eq!((first.timeout, second.timeout), (Duration::from_secs(3), DEFAULT_TIMEOUT));
        assert_eq!(second.client, Err(InvalidConfig::NoTarget));
    }
}
