use std::sync::Arc;

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Invocation, Object, Virtual};
use concord_schema::Schema;
use concord_server::{Authorizer, NonResourceRule, ResourceRule, SubjectRules};
use serde_json::{Value, json};

/// What whoever asks may do in a namespace.
pub(super) struct SelfSubjectRulesReview {
    pub(super) schema: Arc<Schema>,
    pub(super) authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Virtual for SelfSubjectRulesReview {
    fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, mut body: Object) -> Result<Object, Status> {
        let namespace = body.get("spec").and_then(|spec| spec.get("namespace")).and_then(Value::as_str);
        let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) else {
            return Err(Status::bad_request("no namespace on request"));
        };
        let rules = self.authorizer.rules_for(&invocation.context.user, namespace).await;
        // Upstream answers with an object of its own: nothing of what was sent comes back.
        body.insert("metadata".to_owned(), json!({}));
        body.insert("spec".to_owned(), json!({}));
        body.insert("status".to_owned(), status(&rules));
        Ok(body)
    }
}

fn status(rules: &SubjectRules) -> Value {
    let mut status = json!({
        "resourceRules": rules.resources.iter().map(resource_rule).collect::<Vec<_>>(),
        "nonResourceRules": rules.non_resources.iter().map(non_resource_rule).collect::<Vec<_>>(),
        "incomplete": rules.incomplete,
    });
    let mut errors: Vec<&str> = Vec::new();
    for error in &rules.errors {
        if !errors.contains(&error.as_str()) {
            errors.push(error);
        }
    }
    match errors.as_slice() {
        [] => {}
        [only] => status["evaluationError"] = (*only).into(),
        all => status["evaluationError"] = format!("[{}]", all.join(", ")).into(),
    }
    status
}

fn resource_rule(rule: &ResourceRule) -> Value {
    let mut shown = json!({"verbs": rule.verbs});
    let lists = [
        ("apiGroups", &rule.api_groups),
        ("resources", &rule.resources),
        ("resourceNames", &rule.resource_names),
    ];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        shown[name] = json!(list);
    }
    shown
}

fn non_resource_rule(rule: &NonResourceRule) -> Value {
    json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls})
}
