//! `concord serve`: puts a server together, runs it, and takes it apart in order.

mod assembly;
mod following;
mod greeting;
mod health;
mod pki;
mod running;
mod signals;

use anyhow::Context as _;
use concord_pki::Kubeconfig;
use concord_server::HealthCheck;

use crate::{
    cli::ServeOptions,
    emulation::Emulation,
    kubeconfig, logging,
    encryption::AtRest,
    engine::{Engine, key_prefix},
    garbage::Garbage,
    host, kubeconfig, logging, migration, overload,
    peers::{self, Peering},
    reload::Reloader,
    serve::{
        assembly::{Assembly, Base},
        greeting::{dialable, greet},
        health::health_checks,
        running::{Running, Work},
        signals::{Signals, run_until_signalled},
    },
};

/// Runs the server until it is told to stop.
pub(crate) fn run(options: ServeOptions) -> anyhow::Result<()> {
    let log_check = logging::init(&options.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(serve(options, log_check))
}

async fn serve(options: ServeOptions, log_check: impl HealthCheck) -> anyhow::Result<()> {
    let emulation = Emulation::new(&options.apis)?;
    let mut reloader = Reloader::default();
    let base = Base::open(&options).await?;
    let engine = &base.engine;
    let assembly = Assembly::new(&options, &emulation, &base, &mut reloader).await?;
    let audit_log = assembly.audit_log(&options)?;
    let health = health_checks(log_check, engine.store(), &assembly);
    let health = health.with_livez_grace_period(options.serving.livez_grace_period);
    let config = assembly.config(&options, &emulation, health.clone(), audit_log.as_ref(), &mut reloader);
    let Assembly { admin, at_rest, replica, access, garbage, parts, trust, metrics, .. } = assembly;
    let identity = options.aggregation.identity(&options.authentication, front_proxy, &mut reloader)?;
    let features = &emulation.features;
    let peering = Peering::open(&options, features, identity.clone(), &mut views, &mut reloader)?;
    let replica = Arc::new(Replica::start(store.clone(), concord_replica::Config::default(), views));
    let Clients { mut authentication, trust } =
        Clients::new(&options.authentication, authorities, &mut reloader)?;
    let tokens = authentication.tokens.clone();
    let accounts = ServiceAccounts::new(&options.service_accounts, &pki_dir, &admin.ca, &replica, tokens)?;
    // After the tokens of a file, as upstream.
    authentication.tokens.push(accounts.authenticator());
    let aggregator = aggregation::aggregator(api_services, &options, identity, &replica, metrics.clone());
    let ground = Ground {
        store,
        keyring: at_rest.keyring(),
        replica: replica.clone(),
        definitions: served,
        configurations,
        fleet: fleet_state,
        aggregator,
        peering,
    };
    let parts = Parts::new(&options, &emulation, &access, ground, metrics.clone(), accounts)?;
    let audit_log = options.audit.open(&metrics)?;
    let health = health_checks(log_check, engine.store(), replica.clone(), parts.customs.clone());
    let health = parts.health(health.with(access.check()));
    let config = Config {
        authentication,
        auditing: audit_log.as_ref().map(AuditLog::auditing),
        authorizer: access.authorizer.clone(),
        requests: options.requests.limits(),
        flow_control: overload::connected(flow_control, parts.apis.clone(), replica.clone()),
        goaway_chance: options.requests.goaway_chance,
        metrics: metrics.clone(),
        apis: parts.handler(),
        paths: parts.paths(),
        bind_address: options.serving.bind_address,
        secure_port: options.serving.secure_port,
        shutdown: Shutdown {
            delay: options.shutdown.shutdown_delay_duration,
            grace: options.shutdown.shutdown_grace_period,
        },
        health: health.clone(),
        storage_versions: parts.fleet.as_ref().and_then(|fleet| fleet.storage_versions()),
        ..Config::new(serving_identity, version::info(emulation.release))
    };
    reload_identity(&options.serving, &config.identity, &mut reloader);
    parts.reload_keys(&options.service_accounts, &pki_dir, &mut reloader);
    at_rest.reload(parts.fleet.as_ref().map(|fleet| fleet.id()), &metrics, &mut reloader);
    let server = config.complete()?.listen().await?;
    let address = server.local_addr();
    let running = Running::start(Work {
        options: &options,
        emulation: &emulation,
        engine,
        parts: &parts,
        access: &access,
        garbage,
        trust,
        audit_log: audit_log.as_ref(),
        health,
        port: address.port(),
    });
    let running = running.await?;
    let _reloading = reloader.start();
    let signals = Signals::install()?;
    let kubeconfig = base.data_dir.join(kubeconfig::FILE);
    let url = format!("https://{}", dialable(address));
    Kubeconfig::new(&url, &admin).write(&kubeconfig)?;
    greet(&url, engine, &base.data_dir, &kubeconfig)?;
    let announcer = running.announcer();
    let retire = async {
        tokio::time::sleep(options.shutdown.shutdown_delay_duration).await;
        if let Some(announcer) = announcer {
            announcer.retire().await;
        }
    };
    run_until_signalled(server, signals, retire, async {
        running.shutdown().await;
        // Last of all that is written: afterwards nothing of this server can be.
        parts.leave().await;
        replica.shutdown().await;
        engine.close().await;
        // Last: until here something may be written down.
        drop(audit_log);
    })
    .await;
    Ok(())
}
