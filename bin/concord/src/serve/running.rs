//! What a server does besides answering.

use std::{net::SocketAddr, sync::Arc};

use concord_controllers::{ClusterAuthentication, Controllers};
use concord_peerproxy::Announcer;
use concord_server::{HealthChecks, Metrics};
use tokio::sync::watch;

use crate::{
    access::{Access, Tasks},
    aggregation,
    audit::AuditLog,
    cli::ServeOptions,
    compose::Parts,
    election,
    emulation::Emulation,
    engine::Engine,
    garbage::Garbage,
    memory, migration, peers,
    serve::metrics::follow_size,
    upkeep,
};

/// The controllers of a server that runs.
pub(super) struct Running {
    controllers: Arc<Controllers>,
    roles: Tasks,
    /// Who tells the other servers where this one is, if there are others.
    announcer: Option<Arc<Announcer>>,
}

/// What the controllers of a server work with.
pub(super) struct Work<'a> {
    pub(super) options: &'a ServeOptions,
    pub(super) emulation: &'a Emulation,
    pub(super) engine: &'a Engine,
    pub(super) parts: &'a Parts,
    pub(super) access: &'a Access,
    pub(super) garbage: Garbage,
    /// What extension API servers are told about who clients are.
    pub(super) trust: watch::Receiver<ClusterAuthentication>,
    /// What is written down about requests, if anything is.
    pub(super) audit_log: Option<&'a AuditLog>,
    pub(super) health: HealthChecks,
    pub(super) metrics: Arc<Metrics>,
    /// Where the server listens.
    pub(super) port: u16,
}

impl Running {
    /// Starts them.
    pub(super) async fn start(work: Work<'_>) -> anyhow::Result<Self> {
        let Work { options, emulation, engine, parts, access, metrics, .. } = work;
        let Work { garbage, trust, audit_log, health, port, .. } = work;
        let (shared_store, features) = (engine.is_shared(), &emulation.features);
        let at = SocketAddr::new(parts.advertise_address, port);
        peers::advertise(parts.fleet.as_ref(), &options.peers, features, at);
        let controllers = Arc::new(parts.controllers(port, shared_store, trust).await?);
        let leadership = election::stand(&options.election, parts, &controllers, shared_store).await?;
        aggregation::look_after(parts, &controllers, leadership.clone()).await;
        migration::start(parts.migrator.clone(), audit_log, &controllers, leadership.clone()).await?;
        upkeep::start(parts, &controllers, &leadership).await?;
        follow_size(engine, metrics, &controllers).await;
        controllers.run_also(memory::give_back).await;
        garbage.start(&parts.registry, parts.apis.clone(), &controllers, leadership).await;
        let fleet = parts.fleet.as_ref().filter(|_| shared_store);
        let announcer =
            peers::announce(fleet, engine.store(), options, features, at, health, &controllers).await?;
        let roles = access.start(&parts.registry, &parts.apis, &controllers);
        Ok(Self { controllers, roles, announcer })
    }

    /// Who tells the other servers.
    pub(super) fn announcer(&self) -> Option<Arc<Announcer>> {
        self.announcer.clone()
    }

    /// Ends them.
    pub(super) async fn shutdown(self) {
        self.roles.shutdown().await;
        self.controllers.shutdown().await;
        if let Some(announcer) = &self.announcer {
            announcer.leave().await;
        }
    }
}
