//! The parts of a server, from its options to what answers requests.

use std::{path::PathBuf, sync::Arc};

use concord_controllers::ClusterAuthentication;
use concord_pki::AdminPki;
use concord_replica::Replica;
use concord_server::{Authentication, Config, FlowControl, HealthChecks, Metrics, Shutdown};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use crate::{
    access::Access,
    aggregation,
    audit::AuditLog,
    authentication::Clients,
    cli::ServeOptions,
    compose::{Ground, Parts},
    emulation::Emulation,
    encryption::AtRest,
    engine::{Engine, key_prefix},
    garbage::Garbage,
    host, overload,
    reload::Reloader,
    serve::{
        following::Following,
        pki::{Pki, reload_identity},
    },
    service_accounts::ServiceAccounts,
    version,
};

/// What a server has on its machine.
pub(super) struct Base {
    pub(super) data_dir: PathBuf,
    pub(super) engine: Engine,
    pki_dir: PathBuf,
}

impl Base {
    /// Makes what is missing.
    pub(super) async fn open(options: &ServeOptions) -> anyhow::Result<Self> {
        let data_dir = host::data_dir(&options.data)?;
        host::make_private(&data_dir)?;
        let engine = Engine::open(&options.etcd, &host::store_file(&options.data)?).await?;
        let pki_dir = options.serving.pki_dir.clone().unwrap_or_else(|| data_dir.join("pki"));
        Ok(Self { data_dir, engine, pki_dir })
    }
}

/// A server that is put together and does not listen yet.
pub(super) struct Assembly {
    pub(super) admin: AdminPki,
    pub(super) at_rest: AtRest,
    pub(super) replica: Arc<Replica>,
    pub(super) access: Access,
    pub(super) garbage: Garbage,
    pub(super) parts: Parts,
    /// What extension API servers are told about who clients are.
    pub(super) trust: watch::Receiver<ClusterAuthentication>,
    identity: Arc<CertifiedKey>,
    authentication: Authentication,
    flow_control: Option<Arc<dyn FlowControl>>,
    pub(super) metrics: Arc<Metrics>,
}

impl Assembly {
    /// As the options say. What is in files is read again when they change.
    pub(super) async fn new(
        options: &ServeOptions,
        emulation: &Emulation,
        base: &Base,
        reloader: &mut Reloader,
    ) -> anyhow::Result<Self> {
        let Base { engine, pki_dir, data_dir } = base;
        // Not before the store, whose lock keeps a second server away from the certificates, too.
        let Pki { identity, admin, front_proxy, authorities } = Pki::open(&options.serving, pki_dir)?;
        let metrics = Arc::new(Metrics::default());
        let at_rest = AtRest::open(&options.encryption, &key_prefix(&options.etcd)).await?;
        let store = engine.legible(at_rest.store(engine.store()));
        let shown = options.aggregation.identity(&options.authentication, front_proxy, reloader)?;
        let following =
            Following::start(options, emulation, store.clone(), shown.clone(), &metrics, reloader)?;
        let Following { replica, access, garbage, flow_control, .. } = following;
        let Clients { mut authentication, trust } =
            Clients::new(&options.authentication, authorities, reloader)?;
        let tokens = authentication.tokens.clone();
        let accounts = ServiceAccounts::new(&options.service_accounts, pki_dir, &admin.ca, &replica, tokens)?;
        // After the tokens of a file, as upstream.
        authentication.tokens.push(accounts.authenticator());
        let services = following.api_services;
        let aggregator =
            aggregation::aggregator(services, options, shown, &replica, metrics.clone(), data_dir);
        let ground = Ground {
            store,
            keyring: at_rest.keyring(),
            replica: replica.clone(),
            definitions: following.definitions,
            configurations: following.configurations,
            fleet: following.fleet,
            aggregator,
            peering: following.peering,
        };
        let parts = Parts::new(options, emulation, &access, ground, metrics.clone(), accounts)?;
        let flow_control = overload::connected(flow_control, parts.apis.clone(), replica.clone());
        let resources = parts.apis.clone();
        super::metrics::tell_of_rules(&metrics);
        super::metrics::tell(&metrics, emulation, engine, resources, replica.clone());
        parts.reload_keys(&options.service_accounts, pki_dir, reloader);
        Ok(Self {
            admin,
            at_rest,
            replica,
            access,
            garbage,
            parts,
            trust,
            identity,
            authentication,
            flow_control,
            metrics,
        })
    }

    /// What is written down about requests, if anything is.
    pub(super) fn audit_log(&self, options: &ServeOptions) -> anyhow::Result<Option<AuditLog>> {
        options.audit.open(&self.metrics)
    }

    /// How it is served.
    pub(super) fn config(
        &self,
        options: &ServeOptions,
        emulation: &Emulation,
        health: HealthChecks,
        audit_log: Option<&AuditLog>,
        reloader: &mut Reloader,
    ) -> anyhow::Result<Config> {
        let config = Config {
            authentication: self.authentication.clone(),
            auditing: audit_log.map(AuditLog::auditing),
            authorizer: self.access.authorizer.clone(),
            requests: options.requests.limits(),
            flow_control: self.flow_control.clone(),
            goaway_chance: options.requests.goaway_chance,
            metrics: self.metrics.clone(),
            apis: self.parts.handler(),
            paths: self.parts.paths(),
            bind_address: options.serving.bind_address,
            secure_port: options.serving.secure_port,
            tls: options.transport.tls(reloader)?,
            browsers: options.transport.browsers(),
            shutdown: Shutdown {
                delay: options.shutdown.shutdown_delay_duration,
                grace: options.shutdown.shutdown_grace_period,
            },
            health,
            storage_versions: self.parts.fleet.as_ref().and_then(|fleet| fleet.storage_versions()),
            ..Config::new(self.identity.clone(), version::info(emulation.release))
        };
        reload_identity(&options.serving, &config.identity, reloader);
        Ok(config)
    }
}
