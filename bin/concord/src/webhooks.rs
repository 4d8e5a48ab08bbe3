//! Whom this server asks about requests.

use std::{collections::HashMap, sync::Arc};

use clap::Args;
use concord_admission::{Config, Configurations, DynamicAdmission};
use concord_builtins::FeatureGates;
use concord_replica::Replica;
use concord_server::{Authorizer, Metrics};
use concord_webhook::{Address, Called, Client, Overrides, Resolver, Routing, Services};

use crate::plugins::{MUTATING_WEBHOOK, PluginOptions};

#[derive(Debug, Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct WebhookOptions {
    /// Call webhooks behind Services at the addresses of their endpoints, not at the one of the Service.
    #[arg(long)]
    pub(crate) enable_aggregator_routing: bool,
    /// Where a Service is reached from here, as NAMESPACE/NAME=HOST:PORT; may be given more than once. For a server outside
    /// of the cluster whose webhooks it calls.
    #[arg(long, value_name = "SERVICE=ADDRESS", value_delimiter = ',', value_parser = service_address)]
    pub(crate) service_address: Vec<((String, String), Address)>,
}

fn service_address(text: &str) -> Result<((String, String), Address), String> {
    let (service, address) = text.split_once('=').ok_or("not NAMESPACE/NAME=HOST:PORT")?;
    let (namespace, name) = service.split_once('/').ok_or("the Service is not NAMESPACE/NAME")?;
    let address = address.parse().map_err(|error: concord_webhook::InvalidAddress| error.to_string())?;
    Ok(((namespace.to_owned(), name.to_owned()), address))
}

/// Finds the Services that webhooks are behind.
pub(crate) fn resolver(options: &WebhookOptions, replica: &Arc<Replica>, prefix: &str) -> Arc<dyn Resolver> {
    let routing = if options.enable_aggregator_routing { Routing::Endpoints } else { Routing::ClusterIp };
    let services = Arc::new(Services::new(replica.clone(), prefix, routing));
    match options.service_address.is_empty() {
        true => services,
        false => {
            let addresses: HashMap<_, _> = options.service_address.iter().cloned().collect();
            Arc::new(Overrides::new(addresses, services))
        }
    }
}

/// Calls webhooks, and counts the calls.
pub(crate) fn client(resolver: Arc<dyn Resolver>, metrics: &Arc<Metrics>) -> Client {
    let metrics = metrics.clone();
    Client::new(resolver).with_observer(move |called: &Called<'_>| {
        let clients = metrics.clients();
        clients.asked("POST", called.host, called.code, called.took);
        clients.sizes("POST", called.host, called.sent, called.received);
    })
}

/// Admission by what users configure.
pub(crate) fn admission(
    resolver: Arc<dyn Resolver>,
    configurations: &Configurations,
    replica: &Arc<Replica>,
    authorizer: Arc<dyn Authorizer>,
    prefix: &str,
    (features, plugins, metrics): (&FeatureGates, &PluginOptions, &Arc<Metrics>),
) -> DynamicAdmission {
    let config = Config {
        replica: replica.clone(),
        authorizer,
        client: client(resolver, metrics),
        metrics: metrics.clone(),
        prefix: prefix.to_owned(),
        mutating_policies: features.enabled("MutatingAdmissionPolicy")
            && plugins.is_on("MutatingAdmissionPolicy"),
        mutating_webhooks: plugins.is_on(MUTATING_WEBHOOK),
    };
    DynamicAdmission::new(configurations, config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_services_are_read() {
        let (service, address) = service_address("ns/hook=127.0.0.1:8443").expect("an address");
        assert_eq!(service, ("ns".to_owned(), "hook".to_owned()));
        assert_eq!(address.to_string(), "127.0.0.1:8443");
        for text in ["", "ns/hook", "hook=a:1", "ns/hook=a"] {
            assert!(service_address(text).is_err(), "{text}");
        }
    }
}
