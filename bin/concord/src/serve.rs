//! `concord serve`: puts a server together, runs it, and takes it apart in order.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    pin::pin,
    process,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use concord_admission::AdmissionView;
use concord_apiextensions::{CustomResources, DefinitionsView};
use concord_fleet::FleetView;
use concord_pki::{
    AdminPki, ClientIdentity, FrontProxyPki, Kubeconfig, ServingNames, ServingPki, load_identity,
};
use concord_replica::{Replica, View};
use concord_server::{
    Coalesced, Config, HealthCheck, HealthChecks, Identity, Metrics, Server, Shutdown, Unhealthy, check_fn,
};
use concord_store::Store;
use rustls::sign::CertifiedKey;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
};

use crate::{
    access::Access,
    aggregation,
    audit::AuditLog,
    authentication::{Authorities, Clients},
    cli::{SecureServingOptions, ServeOptions},
    compose::{Ground, Parts},
    election,
    emulation::Emulation,
    encryption::AtRest,
    engine::{Engine, key_prefix},
    garbage::Garbage,
    host, kubeconfig, logging, migration,
    peers::{self, Peering},
    reload::Reloader,
    say,
    service_accounts::ServiceAccounts,
    version,
};

/// Health endpoints are open to everyone: however often they are asked, the store is asked only this often.
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the server until it is told to stop.
pub(crate) fn run(options: ServeOptions) -> anyhow::Result<()> {
    let log_check = logging::init(&options.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(serve(options, log_check))
}

async fn serve(options: ServeOptions, log_check: impl HealthCheck) -> anyhow::Result<()> {
    let emulation = Emulation::new(&options.apis)?;
    let data_dir = host::data_dir(&options.data)?;
    host::make_private(&data_dir)?;
    // The store comes first: its lock keeps a second server away from the certificates, too.
    let engine = Engine::open(&options.etcd, &host::store_file(&options.data)?).await?;
    let pki_dir = options.serving.pki_dir.clone().unwrap_or_else(|| data_dir.join("pki"));
    let Pki { identity: serving_identity, admin, front_proxy, authorities } =
        open_pki(&options.serving, &pki_dir)?;
    let (access, rules) = Access::new(&options.authorization, key_prefix(&options.etcd));
    let definitions = DefinitionsView::new(&key_prefix(&options.etcd));
    let served = definitions.progress();
    let admission = AdmissionView::new(&key_prefix(&options.etcd));
    let configurations = admission.configurations();
    let fleet = FleetView::new(&key_prefix(&options.etcd));
    let fleet_state = fleet.state();
    let metrics = Arc::new(Metrics::default());
    let at_rest = AtRest::open(&options.encryption, &key_prefix(&options.etcd))?;
    let store = engine.legible(at_rest.store(engine.store()));
    let mut views: Vec<Box<dyn View>> =
        vec![Box::new(rules), Box::new(definitions), Box::new(admission), Box::new(fleet)];
    let garbage = Garbage::new(&options.garbage, &key_prefix(&options.etcd), &mut views);
    let api_services = aggregation::view(&key_prefix(&options.etcd), emulation.release, &mut views);
    let flow_control = options.requests.flow_control(&key_prefix(&options.etcd), &metrics);
    let flow_control = flow_control.map(|(control, view)| {
        views.push(Box::new(view));
        control
    });
    let mut reloader = Reloader::default();
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
    let health = health.with_livez_grace_period(options.serving.livez_grace_period);
    let config = Config {
        authentication,
        auditing: audit_log.as_ref().map(AuditLog::auditing),
        authorizer: access.authorizer.clone(),
        requests: options.requests.limits(),
        flow_control,
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
    let port = server.local_addr().port();
    let at = SocketAddr::new(parts.advertise_address, port);
    peers::advertise(parts.fleet.as_ref(), &options.peers, features, at);
    let controllers = Arc::new(parts.controllers(port, engine.is_shared(), trust).await?);
    let leadership = election::stand(&parts, &controllers, engine.is_shared()).await;
    aggregation::look_after(&parts, &controllers, leadership.clone()).await;
    migration::start(parts.migrator.clone(), &controllers, leadership.clone()).await;
    garbage.start(&parts.registry, parts.apis.clone(), &controllers, leadership).await;
    let fleet = parts.fleet.as_ref().filter(|_| engine.is_shared());
    let announcer =
        peers::announce(fleet, engine.store(), &options, features, at, health, &controllers).await?;
    let _reloading = reloader.start();
    let roles = access.start(&parts.registry, &parts.apis, &controllers);
    let signals = Signals::install()?;
    let kubeconfig = data_dir.join(kubeconfig::FILE);
    let url = format!("https://{}", dialable(server.local_addr()));
    Kubeconfig::new(&url, &admin).write(&kubeconfig)?;
    announce(&url, &engine, &data_dir, &kubeconfig)?;
    let retire = async {
        tokio::time::sleep(options.shutdown.shutdown_delay_duration).await;
        if let Some(announcer) = &announcer {
            announcer.retire().await;
        }
    };
    run_until_signalled(server, signals, retire, async {
        roles.shutdown().await;
        controllers.shutdown().await;
        if let Some(announcer) = &announcer {
            announcer.leave().await;
        }
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

/// Runs `server`, then `close`, and `retire` when it begins to end. A second signal ends the process at once.
async fn run_until_signalled(
    server: Server,
    mut signals: Signals,
    retire: impl Future<Output = ()>,
    close: impl Future<Output = ()>,
) {
    let stop = Notify::new();
    let mut work = pin!(async {
        let drained = server.run(stop.notified()).await;
        if drained.cut > 0 {
            tracing::warn!(connections = drained.cut, "Requests did not finish in time and were cut off.");
        }
        close.await;
    });
    tokio::select! {
        () = &mut work => return,
        name = signals.next() => {
            tracing::info!(signal = name, "Shutting down; a second signal ends the server at once.");
            stop.notify_one();
        }
    }
    tokio::select! {
        ((), ()) = async { tokio::join!(work, retire) } => tracing::info!("The server has ended."),
        name = signals.next() => {
            tracing::warn!(signal = name, "Ending at once.");
            process::exit(1);
        }
    }
}

/// The certificates of a server.
struct Pki {
    /// What the server shows to its clients.
    identity: Arc<CertifiedKey>,
    /// The administrator's, with what that client trusts servers by.
    admin: AdminPki,
    /// Whom it believes who its clients are. Never what an operator's serving certificate is signed by: who signs servers
    /// need not be trusted to name users.
    authorities: Authorities,
    /// What the server shows to those behind it.
    front_proxy: Arc<ClientIdentity>,
}

fn open_pki(options: &SecureServingOptions, directory: &Path) -> anyhow::Result<Pki> {
    let mut admin = AdminPki::open_or_create(directory, SystemTime::now())?;
    let front_proxy = FrontProxyPki::open_or_create(directory, SystemTime::now())?;
    let authorities = Authorities { clients: admin.ca.clone(), proxies: front_proxy.ca.clone() };
    let front_proxy = load_identity(&front_proxy.certificate, &front_proxy.key)?;
    let front_proxy = Arc::new(ClientIdentity::new(front_proxy));
    if let (Some(certificate), Some(key)) = (&options.tls_cert_file, &options.tls_private_key_file) {
        let identity = load_identity(certificate, key)?;
        // The file may hold the chain that clients are to trust.
        let chain = fs::read_to_string(certificate);
        admin.ca.push_str(&chain.with_context(|| format!("cannot read {}", certificate.display()))?);
        return Ok(Pki { identity, admin, authorities, front_proxy });
    }
    let mut names = ServingNames::loopback().with_ip(options.bind_address);
    // What peers and clients in a cluster call every server.
    for name in ["kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
        names = names.with_dns(name);
    }
    if let Some(name) = host::name() {
        names = names.with_dns(&name);
    }
    let serving = ServingPki::open_or_create(directory, &names, SystemTime::now())?;
    if serving.issued {
        tracing::info!(directory = %directory.display(), "Issued a new serving certificate.");
    }
    Ok(Pki { identity: serving.identity, admin, authorities, front_proxy })
}

/// Serves with what the files of the operator hold, whenever they change.
fn reload_identity(options: &SecureServingOptions, identity: &Arc<Identity>, reloader: &mut Reloader) {
    if let (Some(certificate), Some(key)) =
        (options.tls_cert_file.clone(), options.tls_private_key_file.clone())
    {
        let (identity, files) = (identity.clone(), vec![certificate.clone(), key.clone()]);
        reloader.watch("--tls-cert-file", files, move || {
            identity.replace(load_identity(&certificate, &key)?);
            Ok(())
        });
    }
}

/// The checks by upstream's names, which monitoring looks for: `etcd` is the store, whichever it is.
fn health_checks(
    log_check: impl HealthCheck,
    store: Arc<dyn Store>,
    replica: Arc<Replica>,
    customs: Arc<CustomResources>,
) -> HealthChecks {
    let ask_store = check_fn("etcd", move || {
        let store = store.clone();
        async move { store.health().await.map_err(|error| Unhealthy(error.to_string())) }
    });
    let store_check = Arc::new(Coalesced::new(ask_store, STORE_CHECK_INTERVAL));
    let same_check = store_check.clone();
    HealthChecks::new()
        .with(log_check)
        .with(store_check)
        .with_readiness(check_fn("etcd-readiness", move || {
            let check = same_check.clone();
            async move { check.check().await }
        }))
        .with_readiness(check_fn("informer-sync", move || std::future::ready(replica_health(&replica))))
        .with_readiness(check_fn("poststarthook/crd-informer-synced", move || {
            let synced = customs.is_synced().then_some(());
            std::future::ready(synced.ok_or_else(|| Unhealthy("not finished".to_owned())))
        }))
}

fn replica_health(replica: &Replica) -> Result<(), Unhealthy> {
    let status = replica.status();
    if status.is_ready() {
        return Ok(());
    }
    let last_error = status.last_error.map(|error| format!(": {error}")).unwrap_or_default();
    Err(Unhealthy(format!("the replica is {:?}{last_error}", status.phase)))
}

/// Says where the server is and what to type next.
fn announce(url: &str, engine: &Engine, data_dir: &Path, kubeconfig: &Path) -> anyhow::Result<()> {
    let (data_dir, kubeconfig) = (absolute(data_dir), absolute(kubeconfig));
    say(&format!(
        "Concord {version} is serving {url}\n\
         \x20 data  {data} ({engine})\n\
         \x20 try   export KUBECONFIG={kubeconfig}\n\
         \x20       kubectl get namespaces\n\
         \x20 stop  Ctrl-C or kill {pid}",
        version = version::CONCORD,
        data = data_dir.display(),
        engine = engine.describe(),
        kubeconfig = shell_word(&kubeconfig.to_string_lossy()),
        pid = process::id(),
    ))
}

/// Where a client on this machine finds a server that listens on `address`.
fn dialable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// `word` such that a shell takes it for one word.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The signals that end a server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on signals no longer end the process by themselves.
    fn install() -> anyhow::Result<Self> {
        let install = |kind| signal(kind).context("cannot install a signal handler");
        Ok(Self {
            terminate: install(SignalKind::terminate())?,
            interrupt: install(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_becomes_one_to_dial() {
        for (listening, dialable_at) in
            [("0.0.0.0:6443", "127.0.0.1:6443"), ("[::]:6443", "[::1]:6443"), ("10.0.0.7:1", "10.0.0.7:1")]
        {
            assert_eq!(dialable(listening.parse().expect("an address")).to_string(), dialable_at);
        }
    }

    #[test]
    fn paths_survive_the_shell() {
        assert_eq!(shell_word("/var/lib/concord-1/ca.crt"), "/var/lib/concord-1/ca.crt");
        assert_eq!(shell_word("/my data/it's"), r"'/my data/it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
