//! Whether a webhook or a policy is about a request.

use concord_meta::{Status, labels::Selector};
use concord_registry::{Metadata, Object, metadata};
use serde_json::Value;

use crate::{
    read::{objects, selector, text},
    request::{Matched, Request},
    rule::Rule,
};

/// What a webhook or a policy is about: rules of a webhook, `matchConstraints` of a policy, `matchResources` of a binding.
#[derive(Debug, Clone)]
pub(crate) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether no rules mean everything.
    all_without_rules: bool,
    equivalent: bool,
    namespaces: Result<Selector, String>,
    objects: Result<Selector, String>,
}

impl Criteria {
    /// Of a webhook.
    pub(crate) fn of_webhook(webhook: &Object) -> Self {
        Self::read(webhook, "rules", false)
    }

    /// Of a policy or a binding.
    pub(crate) fn of_policy(resources: &Object) -> Self {
        Self::read(resources, "resourceRules", true)
    }

    fn read(from: &Object, rules: &str, all_without_rules: bool) -> Self {
        Self {
            rules: objects(from, rules).map(Rule::read).collect(),
            excluded: objects(from, "excludeResourceRules").map(Rule::read).collect(),
            all_without_rules,
            equivalent: text(from, "matchPolicy") == "Equivalent",
            namespaces: selector(from, "namespaceSelector"),
            objects: selector(from, "objectSelector"),
        }
    }

    /// As what the request is to be seen; `None` if it is not concerned.
    ///
    /// # Errors
    ///
    /// Why it cannot be said, if everything else fits: upstream asks nobody about what no rule is for.
    pub(crate) async fn matches(
        &self,
        request: &Request<'_>,
        object: Option<&Object>,
    ) -> Result<Option<Matched>, Status> {
        // Cheapest first. The outcome is that of upstream's order.
        if self.find(request, &self.excluded).is_some() {
            return Ok(None);
        }
        let found = match self.rules.is_empty() && self.all_without_rules {
            true => Some(request.matched()),
            false => self.find(request, &self.rules),
        };
        let Some(matched) = found else { return Ok(None) };
        let objects = self.matches_object(request, object);
        if objects == Ok(false) {
            return Ok(None);
        }
        if !self.matches_namespace(request, object).await? {
            return Ok(None);
        }
        objects.map(|_| Some(matched))
    }

    fn find(&self, request: &Request<'_>, rules: &[Rule]) -> Option<Matched> {
        if rules.iter().any(|rule| rule.matches(&request.subject(&request.resource))) {
            return Some(request.matched());
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let equivalents: Vec<Matched> =
            request.equivalents().iter().map(|resource| request.as_equivalent(resource)).collect();
        // Earlier rules go first.
        rules.iter().find_map(|rule| {
            let mut fitting = equivalents.iter();
            fitting.find(|matched| rule.matches(&request.subject(&matched.resource))).cloned()
        })
    }

    async fn matches_namespace(
        &self,
        request: &Request<'_>,
        object: Option<&Object>,
    ) -> Result<bool, Status> {
        // What is in no namespace is never exempt.
        if request.namespace.is_empty() && request.resource.resource != "namespaces" {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(Status::internal_error)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let labels = request.namespace_labels(object).await?;
        Ok(selector.matches(&labels))
    }

    fn matches_object(&self, request: &Request<'_>, object: Option<&Object>) -> Result<bool, Status> {
        let selector = self.objects.as_ref().map_err(Status::internal_error)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let objects = [object, request.attributes.old];
        Ok(objects.into_iter().flatten().any(|object| {
            // What has no metadata, as the options of a connection, is never selected.
            object.contains_key("metadata") && selector.matches(&labels(metadata(object)))
        }))
    }
}

fn labels(metadata: Metadata<'_>) -> Option<&Object> {
    metadata.get("labels").and_then(Value::as_object)
}
