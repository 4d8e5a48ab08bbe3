//! The other servers on the store: what only they serve is served through this one, too.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context as _, bail};
use clap::Args;
use concord_apis::FeatureGates;
use concord_controllers::Controllers;
use concord_endpoints::{Apis, PeerDiscovery};
use concord_fleet::Fleet;
use concord_peerproxy::{Announcer, FleetDiscovery, PeerProxy, PeerState, PeerTransport, PeerView, Peers};
use concord_pki::{ClientIdentity, Trust, client_tls};
use concord_replica::View;
use concord_server::{Handler, HealthChecks, Metrics};
use concord_store::Store;
use rustls::ClientConfig;

use crate::{
    aggregation::AggregationOptions,
    cli::ServeOptions,
    egress,
    reload::{Reloader, read_text},
};

/// The feature.
const GATE: &str = "UnknownVersionInteroperabilityProxy";

#[derive(Debug, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct PeerOptions {
    /// Who signed the serving certificates of the other servers on the same store (PEM); theirs have to name
    /// kubernetes.default.svc. With it, requests for what only another server serves are sent there, and discovery shows
    /// what all of them serve. Read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) peer_ca_file: Option<PathBuf>,
    /// The address at which the other servers reach this one. Default: --advertise-address.
    #[arg(long, value_name = "IP")]
    pub(crate) peer_advertise_ip: Option<IpAddr>,
    /// The port at which the other servers reach this one. Default: the port it listens on.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) peer_advertise_port: Option<u16>,
    /// A file that says through which proxies other servers are reached (EgressSelectorConfiguration, YAML). Of its selections
    /// only controlplane counts, which is the way to the other servers on the same store; with HTTPConnect, over TCP, TLS or a
    /// UNIX socket.
    #[arg(long, value_name = "FILE")]
    pub(crate) egress_selector_config_file: Option<PathBuf>,
}

impl PeerOptions {
    /// Whether peers are to find this server.
    pub(crate) fn is_enabled(&self, features: &FeatureGates) -> anyhow::Result<bool> {
        let enabled = features.enabled(GATE) && features.enabled("APIServerIdentity");
        let given = [
            ("--peer-ca-file", self.peer_ca_file.is_some()),
            ("--peer-advertise-ip", self.peer_advertise_ip.is_some()),
            ("--peer-advertise-port", self.peer_advertise_port.is_some()),
        ];
        match given.iter().find(|(_, given)| *given && !enabled) {
            Some((flag, _)) => bail!("{flag} requires {GATE} feature to be turned on"),
            None => Ok(enabled),
        }
    }

    /// Where the other servers reach one that listens there.
    fn address(&self, listening: SocketAddr) -> SocketAddr {
        let ip = self.peer_advertise_ip.unwrap_or(listening.ip());
        SocketAddr::new(ip, self.peer_advertise_port.unwrap_or(listening.port()))
    }
}

/// What it takes to know and reach the others.
pub(crate) struct Peering {
    state: PeerState,
    transport: Arc<PeerTransport>,
}

impl Peering {
    /// As the flags say; `None` if requests are not to be sent to others. A view is added for the replica.
    pub(crate) fn open(
        options: &ServeOptions,
        features: &FeatureGates,
        identity: Option<Arc<ClientIdentity>>,
        views: &mut Vec<Box<dyn View>>,
        reloader: &mut Reloader,
    ) -> anyhow::Result<Option<Self>> {
        let enabled = options.peers.is_enabled(features)?;
        let egress = options.peers.egress_selector_config_file.as_deref();
        let egress = egress.map(egress::controlplane).transpose()?.flatten();
        let Some(ca) = options.peers.peer_ca_file.clone().filter(|_| enabled) else { return Ok(None) };
        let identity = identity.context("--peer-ca-file requires --proxy-client-cert-file")?;
        let tls = move || -> anyhow::Result<ClientConfig> {
            Ok(client_tls(&Trust::Bundle(read_text(&ca)?.into()), Some(identity.clone()))?)
        };
        let transport = PeerTransport::new(tls().context("--peer-ca-file")?);
        let transport = Arc::new(match egress {
            Some(egress) => transport.with_egress(egress),
            None => transport,
        });
        // What was shown on a connection stays shown on it, so another certificate of this server takes other connections.
        let AggregationOptions { proxy_client_cert_file, proxy_client_key_file, .. } = &options.aggregation;
        let files = [&options.peers.peer_ca_file, proxy_client_cert_file, proxy_client_key_file];
        let same = transport.clone();
        reloader.watch("--peer-ca-file", files.into_iter().flatten().cloned().collect(), move || {
            same.replace(tls()?);
            Ok(())
        });
        let view = PeerView::new(&crate::engine::key_prefix(&options.etcd));
        let state = view.state();
        views.push(Box::new(view));
        Ok(Some(Self { state, transport }))
    }

    /// The peers of this server.
    pub(crate) fn peers(self, fleet: &Fleet, metrics: Arc<Metrics>) -> Arc<Peers> {
        Peers::new(fleet.id(), self.state, self.transport, metrics)
    }
}

/// Discovery of all servers, if there are any.
pub(crate) fn discovery(peers: Option<&Arc<Peers>>) -> Option<Arc<dyn PeerDiscovery>> {
    peers.map(|peers| -> Arc<dyn PeerDiscovery> { Arc::new(FleetDiscovery::new(peers.clone())) })
}

/// Sends to the others what only they serve.
pub(crate) fn before(
    inner: Arc<dyn Handler>,
    apis: &Arc<Apis>,
    peers: Option<&Arc<Peers>>,
) -> Arc<dyn Handler> {
    match peers {
        Some(peers) => Arc::new(PeerProxy::new(inner, apis.clone(), peers.clone())),
        None => inner,
    }
}

/// Has the identity lease say where this server is, as kube-apiserver's does. To be called before there is one.
pub(crate) fn advertise(
    fleet: Option<&Arc<Fleet>>,
    options: &PeerOptions,
    features: &FeatureGates,
    listening: SocketAddr,
) {
    if let Some(fleet) = fleet.filter(|_| features.enabled(GATE)) {
        fleet.advertise(options.address(listening));
    }
}

/// Says on the store where this server is, from the moment it is ready.
pub(crate) async fn announce(
    fleet: Option<&Arc<Fleet>>,
    store: Arc<dyn Store>,
    options: &ServeOptions,
    features: &FeatureGates,
    listening: SocketAddr,
    checks: HealthChecks,
    controllers: &Controllers,
) -> anyhow::Result<Option<Arc<Announcer>>> {
    let enabled = options.peers.is_enabled(features)?;
    let Some(fleet) = fleet.filter(|_| enabled).cloned() else { return Ok(None) };
    if options.peers.peer_ca_file.is_none() {
        tracing::info!(
            "What only other servers on this store serve is not served here: --peer-ca-file is not given."
        );
    }
    let prefix = crate::engine::key_prefix(&options.etcd);
    let announcer = Announcer::new(fleet, store, &prefix, options.peers.address(listening));
    let same = announcer.clone();
    controllers.run_also(|cancel| same.run(checks, cancel)).await;
    Ok(Some(announcer))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use concord_apis::Release;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn flags_need_the_feature() {
        for (flag, gates, complaint) in [
            ("--peer-ca-file=ca.crt", &[][..], None),
            ("--peer-ca-file=ca.crt", &[GATE], Some("--peer-ca-file requires")),
            ("--peer-advertise-ip=10.0.0.1", &[GATE], Some("--peer-advertise-ip requires")),
            ("--peer-advertise-port=443", &[GATE], Some("--peer-advertise-port requires")),
            ("--secure-port=443", &[GATE], None),
        ] {
            let gates: Vec<String> = gates.iter().map(|gate| format!("{gate}=false")).collect();
            let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
            let features = FeatureGates::parse(Release::LATEST, Release::LATEST, &gates).expect("gates");
            let parsed = Cli::try_parse_from(["concord", "serve", flag]).expect("flags");
            let Command::Serve(options) = parsed.command else { panic!("it serves") };
            match (options.peers.is_enabled(&features), complaint) {
                (Ok(enabled), None) => assert_eq!(enabled, gates.is_empty()),
                (Err(error), Some(complaint)) => assert!(error.to_string().starts_with(complaint), "{error}"),
                (other, _) => panic!("{flag}: {other:?}"),
            }
        }
    }
}
