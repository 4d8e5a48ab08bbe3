//! `concord serve`: puts a server together, runs it, and takes it apart in order.

mod assembly;
mod following;
mod greeting;
mod health;
pub(crate) mod metrics;
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
    concord_server::runtime().context("cannot start the runtime")?.block_on(serve(options, log_check))
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
    let config = assembly.config(&options, &emulation, health.clone(), audit_log.as_ref(), &mut reloader)?;
    let Assembly { admin, at_rest, replica, access, garbage, parts, trust, metrics, .. } = assembly;
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
        metrics,
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
