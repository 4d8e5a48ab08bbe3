//! Other servers' APIs as part of this one's.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use async_trait::async_trait;
use clap::Args;
use concord_aggregator::{
    Aggregator, ApiServices, ApiServicesView, RegistrationSettings, RemoteContent, Settings,
};
use concord_apiextensions::CustomResources;
use concord_builtins::{Catalog, Release, VersionFacts};
use concord_controllers::{Controllers, Elsewhere, Left};
use concord_election::Leadership;
use concord_endpoints::{Apis, Priority};
use concord_meta::GroupVersion;
use concord_openapi::DocumentArchive;
use concord_pki::{ClientIdentity, load_identity};
use concord_registry::Registry;
use concord_replica::{Replica, View};
use concord_server::Metrics;
use tokio::sync::watch;

use crate::{
    authentication::AuthenticationOptions, cli::ServeOptions, compose::Parts, engine::key_prefix,
    reload::Reloader, webhooks,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Aggregation")]
pub(crate) struct AggregationOptions {
    /// The certificate that this server shows to the servers behind it (PEM), so that they believe who it says their
    /// clients are. Read again when it or its key changes. Default: front-proxy-client of the PKI, unless
    /// --requestheader-client-ca-file names another authority.
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    pub(crate) proxy_client_cert_file: Option<PathBuf>,
    /// The key of --proxy-client-cert-file (PEM).
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    pub(crate) proxy_client_key_file: Option<PathBuf>,
    /// Whether answers of servers behind this one that send clients elsewhere are refused.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) aggregator_reject_forwarding_redirect: bool,
}

impl AggregationOptions {
    /// What this server shows to those behind it: what the files hold, or else the PKI's own, if that is whom they are told
    /// to believe.
    pub(crate) fn identity(
        &self,
        authentication: &AuthenticationOptions,
        own: Arc<ClientIdentity>,
        reloader: &mut Reloader,
    ) -> anyhow::Result<Option<Arc<ClientIdentity>>> {
        let (Some(certificate), Some(key)) =
            (self.proxy_client_cert_file.clone(), self.proxy_client_key_file.clone())
        else {
            return Ok(authentication.requestheader_client_ca_file.is_none().then_some(own));
        };
        let flag = "--proxy-client-cert-file";
        let loaded = load_identity(&certificate, &key).context(flag)?;
        let identity = Arc::new(ClientIdentity::new(loaded));
        let (same, files) = (identity.clone(), vec![certificate.clone(), key.clone()]);
        reloader.watch(flag, files, move || {
            same.replace(load_identity(&certificate, &key)?);
            Ok(())
        });
        Ok(Some(identity))
    }
}

/// What the log says about who serves what.
pub(crate) fn view(prefix: &str, release: Release, views: &mut Vec<Box<dyn View>>) -> ApiServices {
    let view = ApiServicesView::new(prefix, built_in(release));
    let services = view.services();
    views.push(Box::new(view));
    services
}

/// The places of the versions that a release has.
fn built_in(release: Release) -> BTreeMap<GroupVersion, Priority> {
    let number = |priority: u32| i32::try_from(priority).unwrap_or(i32::MAX);
    let versions = Catalog::of(release).versions();
    let place = |facts: &VersionFacts| {
        let priority = facts.priority?;
        let priority = Priority { group: number(priority.group), version: number(priority.version) };
        Some((GroupVersion::new(facts.group, facts.version), priority))
    };
    versions.filter_map(place).collect()
}

/// The directory with the OpenAPI documents of other servers, in a data directory.
const DOCUMENTS: &str = "openapi";

/// What other servers serve.
pub(crate) fn aggregator(
    services: ApiServices,
    options: &ServeOptions,
    identity: Option<Arc<ClientIdentity>>,
    replica: &Arc<Replica>,
    metrics: Arc<Metrics>,
    data_dir: &Path,
) -> Arc<Aggregator> {
    let prefix = key_prefix(&options.etcd);
    let settings = Settings {
        resolver: webhooks::resolver(&options.webhooks, replica, &prefix),
        explicit: options.webhooks.service_address.iter().map(|(service, _)| service.clone()).collect(),
        identity,
        allows_redirects: !options.aggregation.aggregator_reject_forwarding_redirect,
        prefix,
        metrics,
        archive: DocumentArchive::new(data_dir.join(DOCUMENTS)),
    };
    Arc::new(Aggregator::new(services, settings))
}

/// Starts what keeps the APIServices of this server's own versions.
pub(crate) async fn start(
    aggregator: &Aggregator,
    (registry, apis, customs): (&Arc<Registry>, &Arc<Apis>, &Arc<CustomResources>),
    shared_store: bool,
    controllers: &Controllers,
) {
    let customs = customs.clone();
    let settings =
        RegistrationSettings { shared_store, customs_are_known: Box::new(move || customs.is_synced()) };
    let registration = aggregator.registration(registry.clone(), apis.clone(), settings);
    controllers.run_also(|cancel| registration.run(cancel)).await;
}

/// Starts what looks after the APIServices of other servers. Of those on a store, the one that leads says how it goes.
pub(crate) async fn look_after(parts: &Parts, controllers: &Controllers, leadership: Leadership) {
    let (tells, told) = watch::channel(leadership.is_leader());
    let controller = parts.aggregator.controller(parts.registry.clone(), parts.apis.clone(), told);
    controllers.run_also(|cancel| controller.run(cancel)).await;
    let says_so = |cancel| async move {
        leadership
            .lead(&cancel, |end| {
                let tells = tells.clone();
                async move {
                    tells.send_replace(true);
                    end.cancelled().await;
                    tells.send_replace(false);
                }
            })
            .await;
    };
    controllers.run_also(says_so).await;
}

/// What namespaces have on other servers.
pub(crate) struct RemoteNamespaces(pub(crate) Arc<Aggregator>);

impl fmt::Debug for RemoteNamespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteNamespaces")
    }
}

#[async_trait]
impl Elsewhere for RemoteNamespaces {
    async fn empty(&self, namespace: &str) -> Left {
        let RemoteContent { objects, finalizers, undiscovered, failures } = self.0.empty(namespace).await;
        Left { objects, finalizers, undiscovered, failures }
    }
}
