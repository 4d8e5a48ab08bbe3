use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use concord_server::{
    Attributes, Authorizer, Decision, NonResourceRule, ResourceRule, SubjectRules, UserInfo,
};

use crate::{Policy, Refused, RulesView};

/// Decides by the newest [`Policy`].
#[derive(Clone)]
pub struct Rbac {
    policy: Arc<ArcSwap<Policy>>,
}

impl Rbac {
    /// Decides by what this view has.
    pub fn new(view: &RulesView) -> Self {
        Self { policy: view.policy() }
    }

    /// The newest policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }
}

#[async_trait]
impl Authorizer for Rbac {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let policy = self.policy.load();
        match policy.decide(attributes.user, attributes.request) {
            Ok(()) => Decision::Allow,
            Err(_) if is_health_of_a_start(&policy, attributes) => Decision::Allow,
            // Only what is missing is worth telling, which is rare.
            Err(Refused { dangling: true }) => explain(&policy, attributes).0,
            Err(Refused { dangling: false }) => Decision::NoOpinion(String::new()),
        }
    }

    async fn explain(&self, attributes: &Attributes<'_>) -> (Decision, String) {
        explain(&self.policy.load(), attributes)
    }

    async fn rules_for(&self, user: &UserInfo, namespace: &str) -> SubjectRules {
        let policy = self.policy.load();
        let mut found = SubjectRules::default();
        for granted in policy.granted(user, namespace) {
            let rules = match granted.rules {
                Ok(rules) => rules,
                Err(error) => {
                    found.errors.push(error.to_string());
                    continue;
                }
            };
            for rule in rules {
                if !rule.resources.is_empty() {
                    found.resources.push(ResourceRule {
                        verbs: rule.verbs.clone(),
                        api_groups: rule.api_groups.clone(),
                        resources: rule.resources.clone(),
                        resource_names: rule.resource_names.clone(),
                    });
                }
                if !rule.non_resource_urls.is_empty() {
                    found.non_resources.push(NonResourceRule {
                        verbs: rule.verbs.clone(),
                        non_resource_urls: rule.non_resource_urls.clone(),
                    });
                }
            }
        }
        found
    }
}

/// Until the rules have been read, which takes as long as the store is away, everybody may ask whether the server is well:
/// otherwise nobody could see why it is not. From then on the rules decide.
fn is_health_of_a_start(policy: &Policy, attributes: &Attributes<'_>) -> bool {
    let request = attributes.request;
    let asks = ["/healthz", "/livez", "/readyz"].contains(&&*request.path);
    policy.revision() == 0 && !request.is_resource_request && request.verb == "get" && asks
}

/// The decision with its reason: the first binding that allows it, or what is wrong with those that might.
fn explain(policy: &Policy, attributes: &Attributes<'_>) -> (Decision, String) {
    let Attributes { user, request } = *attributes;
    let mut errors = Vec::new();
    for granted in policy.granted(user, &request.namespace) {
        match granted.rules {
            Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                let binding = granted.binding.describe(granted.subject);
                return (Decision::Allow, format!("RBAC: allowed by {binding}"));
            }
            Ok(_) => {}
            Err(error) => errors.push(error.to_string()),
        }
    }
    let reason = match errors.is_empty() {
        true => String::new(),
        false => format!("RBAC: {}", aggregate(errors)),
    };
    (Decision::NoOpinion(reason.clone()), reason)
}

/// Several errors as upstream writes them in one line, each once.
pub(crate) fn aggregate(errors: Vec<String>) -> String {
    let mut once: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        if !once.contains(&error) {
            once.push(error);
        }
    }
    match once.as_slice() {
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}
