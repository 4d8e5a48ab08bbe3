use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use concord_registry::{Admission, Resources};
use concord_replica::Replica;
use concord_server::{Authorizer, Metrics};
use concord_webhook::Client;

use crate::{Configurations, MutatingAdmission, ValidatingPolicies, ValidatingWebhooks, shared::Shared};

/// What admission works with.
pub struct Config {
    /// The state.
    pub replica: Arc<Replica>,
    /// Who may do what, for expressions that ask.
    pub authorizer: Arc<dyn Authorizer>,
    /// What calls webhooks.
    pub client: Client,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
    /// What all keys begin with, such as `/registry/`.
    pub prefix: String,
    /// Whether MutatingAdmissionPolicies have an effect: the feature and the plugin of that name.
    pub mutating_policies: bool,
    /// Whether mutating webhooks are asked: the plugin MutatingAdmissionWebhook.
    pub mutating_webhooks: bool,
}

/// All admission that users configure.
pub struct DynamicAdmission {
    shared: Arc<Shared>,
    prefixes: Vec<Bytes>,
}

impl DynamicAdmission {
    /// Admission by what the replica's view knows to be configured.
    pub fn new(configurations: &Configurations, config: Config) -> Self {
        let Config { replica, authorizer, client, metrics, prefix, mutating_policies, mutating_webhooks } =
            config;
        let shared = Shared {
            replica,
            authorizer,
            client,
            metrics,
            configured: configurations.published.clone(),
            resources: OnceLock::new(),
            namespaces: format!("{prefix}namespaces/"),
            mutating_policies,
            mutating_webhooks,
        };
        Self { shared: Arc::new(shared), prefixes: configurations.prefixes.clone() }
    }

    /// Says which resources are served, which is known only after admission is.
    pub fn connect(&self, resources: Weak<dyn Resources>) {
        // The first is the only one there is.
        drop(self.shared.resources.set(resources));
    }

    /// Where the configurations are: a change of them is in force when it is acknowledged, if the store waits for these.
    pub fn prefixes(&self) -> Vec<Bytes> {
        self.prefixes.clone()
    }

    /// MutatingAdmissionPolicy and MutatingAdmissionWebhook. `asked_again` are the plugins before it that change objects:
    /// they have another look if a policy or a webhook changed something.
    pub fn mutating(&self, asked_again: Vec<Arc<dyn Admission>>) -> MutatingAdmission {
        MutatingAdmission::new(self.shared.clone(), asked_again)
    }

    /// ValidatingAdmissionPolicy.
    pub fn validating_policies(&self) -> ValidatingPolicies {
        ValidatingPolicies(self.shared.clone())
    }

    /// ValidatingAdmissionWebhook.
    pub fn validating_webhooks(&self) -> ValidatingWebhooks {
        ValidatingWebhooks(self.shared.clone())
    }
}
