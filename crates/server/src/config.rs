use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustls::{crypto::aws_lc_rs, server::ServerConfig, sign::CertifiedKey, sign::SingleCertAndKey};
use tokio::net::TcpListener;

use crate::{
    HealthChecks, Server, Unhealthy, Version, chain, health::check_fn, http::Handler, routes::Routes,
};

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The TLS library refused its configuration.
    #[error("the TLS configuration is not usable")]
    Tls(#[from] rustls::Error),

    /// A limit of zero would serve nobody.
    #[error("{0} must be at least 1")]
    ZeroLimit(&'static str),

    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
}

/// How a server is to be: everything that its parts and the operator decide.
pub struct Config {
    /// Where to listen. The default is every IPv4 address, as upstream's.
    pub bind_address: IpAddr,
    /// The port to listen on; 0 lets the system choose.
    pub secure_port: u16,
    /// The certificate to serve with.
    pub identity: Arc<CertifiedKey>,
    /// What one client, or many, may take.
    pub limits: ConnectionLimits,
    /// How the server ends.
    pub shutdown: Shutdown,
    /// What the server says it is.
    pub version: Version,
    /// What the parts have to say about their state.
    pub health: HealthChecks,
}

/// What connections may take: each limit keeps a slow, broken or hostile client from costing others.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// How many connections are open at once; more wait until one is closed. The default, 10,000, is far
    /// below what memory allows and far above what a control plane needs.
    pub connections: usize,
    /// How long a client may take for the TLS handshake. Default: 10 seconds, as Go's server.
    pub handshake: Duration,
    /// How long a client may take to send a request's header; also how long an idle HTTP/1.1 connection is
    /// kept. Default: 32 seconds, as upstream's.
    pub header: Duration,
    /// How many requests one HTTP/2 connection may have open. Default: 100, as upstream's.
    pub streams: u32,
    /// How often an HTTP/2 client that says nothing is asked whether it is there. Default: 30 seconds.
    pub ping_interval: Duration,
    /// How long it may take to answer. Default: 15 seconds.
    pub ping_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(32),
            streams: 100,
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
        }
    }
}

/// How the server ends once it is asked to.
#[derive(Debug, Clone)]
pub struct Shutdown {
    /// How long to go on serving with `/readyz` failing, so that load balancers can notice. Default: none,
    /// as upstream's.
    pub delay: Duration,
    /// How long requests then have to finish before their connections are cut. Default: 10 seconds.
    pub grace: Duration,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { delay: Duration::ZERO, grace: Duration::from_secs(10) }
    }
}

impl Config {
    /// A server with this certificate and version, on port 6443, with default limits and only `ping` for a
    /// health check.
    pub fn new(identity: Arc<CertifiedKey>, version: Version) -> Self {
        Self {
            bind_address: Ipv4Addr::UNSPECIFIED.into(),
            secure_port: 6443,
            identity,
            limits: ConnectionLimits::default(),
            shutdown: Shutdown::default(),
            version,
            health: HealthChecks::new(),
        }
    }

    /// Checks the configuration and builds what follows from it.
    ///
    /// # Errors
    ///
    /// [`Error::ZeroLimit`], [`Error::Tls`].
    pub fn complete(self) -> Result<CompletedConfig, Error> {
        if self.limits.connections == 0 {
            return Err(Error::ZeroLimit("the number of connections"));
        }
        if self.limits.streams == 0 {
            return Err(Error::ZeroLimit("the number of HTTP/2 streams"));
        }
        let stopping = Stopping::default();
        // Last, as upstream has it: it is the one everybody waits for in the list.
        let health = self.health.with_readiness(stopping.clone().into_check());
        Ok(CompletedConfig {
            address: SocketAddr::new(self.bind_address, self.secure_port),
            tls: tls(self.identity)?,
            limits: self.limits,
            shutdown: self.shutdown,
            handler: chain::build(Routes::new(health.endpoints(), self.version)),
            stopping,
        })
    }
}

/// A configuration that has been checked: all it takes to listen.
pub struct CompletedConfig {
    address: SocketAddr,
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) limits: ConnectionLimits,
    pub(crate) shutdown: Shutdown,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) stopping: Stopping,
}

impl CompletedConfig {
    /// Takes the address. Clients can connect from now on and are served once the server runs.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`].
    pub async fn listen(self) -> Result<Server, Error> {
        let failed = |source| Error::Listen { address: self.address, source };
        let listener = TcpListener::bind(self.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server::new(self, listener, address))
    }
}

/// Whether the server has been asked to stop; shared with the `shutdown` check.
#[derive(Clone, Default)]
pub(crate) struct Stopping(Arc<AtomicBool>);

impl Stopping {
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn into_check(self) -> impl crate::HealthCheck {
        check_fn("shutdown", move || {
            let stopping = self.0.load(Ordering::Relaxed);
            let result =
                if stopping { Err(Unhealthy("the server is shutting down".to_owned())) } else { Ok(()) };
            std::future::ready(result)
        })
    }
}

/// TLS 1.2 and 1.3; HTTP/2 for clients that offer it.
fn tls(identity: Arc<CertifiedKey>) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
