use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderValue;
use rustls::sign::CertifiedKey;
use tokio::net::TcpListener;

use crate::{
    AllowedOrigins, Auditing, Authentication, Authorizer, Basics, FlowControl, HealthChecks, Identity,
    Metrics, PrivilegedGroups, Server, ShutdownToken, StorageVersions, TlsOptions, Unhealthy, Union, Version,
    authentication::IdentityHeaders,
    chain::Chain,
    health::check_fn,
    http::Handler,
    routes::{Apis, NotFound, Routes},
    tls::Tls,
};

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The TLS library refused its configuration.
    #[error("the TLS configuration is not usable")]
    Tls(#[from] rustls::Error),

    /// A value that cannot stand in a header.
    #[error("the HSTS directives cannot stand in a header: {0:?}")]
    Hsts(String),

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
    pub identity: Arc<Identity>,
    /// How connections are secured besides.
    pub tls: TlsOptions,
    /// What one client, or many, may take.
    pub limits: ConnectionLimits,
    /// How the server ends.
    pub shutdown: Shutdown,
    /// What the server says it is.
    pub version: Version,
    /// What the parts have to say about their state.
    pub health: HealthChecks,
    /// How the server finds out who its clients are. The default knows nobody: all are anonymous.
    pub authentication: Authentication,
    /// Who may do what. The default is what upstream's default roles allow everybody, and everything to the
    /// group `system:masters`.
    pub authorizer: Arc<dyn Authorizer>,
    /// What is written down about requests; `None` for nothing.
    pub auditing: Option<Arc<Auditing>>,
    /// How many requests run at once, and how long.
    pub requests: RequestLimits,
    /// Who waits when there are too many. Without it those above the limits are sent away.
    pub flow_control: Option<Arc<dyn FlowControl>>,
    /// What browsers are told.
    pub browsers: Browsers,
    /// How often, of one, an HTTP/2 connection is closed after a request, so that clients spread over several
    /// servers. Default: never.
    pub goaway_chance: f64,
    /// What monitoring reads. Parts may add to it.
    pub metrics: Arc<Metrics>,
    /// What answers everything that is not the server's own: the APIs.
    pub apis: Arc<dyn Handler>,
    /// The paths that the APIs answer now, for the index at `/`.
    pub paths: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Which resources wait for the registration of their storage versions. Default: none ever do.
    pub storage_versions: Option<Arc<dyn StorageVersions>>,
}

/// What requests may take.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    /// How long a request may take, unless it is one that lasts. Default: one minute, as upstream's.
    pub timeout: Duration,
    /// How many requests that only read run at once; 0 for no limit. Default: 400, as upstream's.
    pub max_in_flight: usize,
    /// How many other requests run at once; 0 for no limit. Default: 200, as upstream's.
    pub max_mutating_in_flight: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), max_in_flight: 400, max_mutating_in_flight: 200 }
    }
}

/// What browsers are told; by default nothing.
#[derive(Clone, Default)]
pub struct Browsers {
    /// The directives of `Strict-Transport-Security`.
    pub hsts: Vec<String>,
    /// The origins whose pages may call the server.
    pub allowed_origins: Option<AllowedOrigins>,
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
            identity: Arc::new(Identity::new(identity)),
            tls: TlsOptions::default(),
            limits: ConnectionLimits::default(),
            shutdown: Shutdown::default(),
            version,
            health: HealthChecks::new(),
            authentication: Authentication::default(),
            authorizer: Arc::new(Union(vec![Arc::new(PrivilegedGroups::default()), Arc::new(Basics)])),
            auditing: None,
            requests: RequestLimits::default(),
            flow_control: None,
            browsers: Browsers::default(),
            goaway_chance: 0.0,
            metrics: Arc::default(),
            apis: Arc::new(NotFound),
            paths: Arc::new(Vec::new),
            storage_versions: None,
        }
    }

    /// Checks the configuration and builds what follows from it.
    ///
    /// # Errors
    ///
    /// [`Error::ZeroLimit`], [`Error::Tls`], [`Error::Hsts`].
    pub fn complete(self) -> Result<CompletedConfig, Error> {
        if self.limits.connections == 0 {
            return Err(Error::ZeroLimit("the number of connections"));
        }
        if self.limits.streams == 0 {
            return Err(Error::ZeroLimit("the number of HTTP/2 streams"));
        }
        let (stopping, draining) = (Stopping::default(), ShutdownToken::default());
        // Last, as upstream has it: it is the one everybody waits for in the list.
        let health = self.health.with_readiness(stopping.clone().into_check());
        self.metrics.set_build_info(&self.version);
        let Authentication { client_ca, request_header, .. } = &self.authentication;
        let proxies = request_header.as_ref().map(|proxies| proxies.authorities());
        let tls = Tls::new(self.identity, client_ca.iter().chain(proxies).cloned().collect(), self.tls)?;
        let chain = Chain {
            identity_headers: IdentityHeaders::new(request_header.as_deref()),
            authenticator: self.authentication.into_authenticator(),
            authorizer: self.authorizer,
            auditing: self.auditing,
            limits: self.requests,
            flow_control: self.flow_control,
            hsts: hsts(&self.browsers.hsts)?,
            allowed_origins: self.browsers.allowed_origins,
            goaway_chance: self.goaway_chance,
            metrics: self.metrics.clone(),
            draining: draining.clone(),
            storage_versions: self.storage_versions,
        };
        let apis = Apis { handler: self.apis, paths: self.paths };
        let routes = Routes::new(health.endpoints(), self.version, self.metrics.clone(), apis);
        Ok(CompletedConfig {
            address: SocketAddr::new(self.bind_address, self.secure_port),
            tls,
            limits: self.limits,
            shutdown: self.shutdown,
            handler: chain.build(routes),
            metrics: self.metrics,
            stopping,
            draining,
        })
    }
}

fn hsts(directives: &[String]) -> Result<Option<HeaderValue>, Error> {
    if directives.is_empty() {
        return Ok(None);
    }
    let directives = directives.join("; ");
    HeaderValue::try_from(&directives).map(Some).map_err(|_| Error::Hsts(directives))
}

/// A configuration that has been checked: all it takes to listen.
pub struct CompletedConfig {
    address: SocketAddr,
    pub(crate) tls: Tls,
    pub(crate) limits: ConnectionLimits,
    pub(crate) shutdown: Shutdown,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stopping: Stopping,
    pub(crate) draining: ShutdownToken,
}

impl CompletedConfig {
    /// The whole chain without connections: for who has requests from elsewhere, such as benchmarks.
    #[must_use]
    pub fn into_handler(self) -> Arc<dyn Handler> {
        self.handler
    }

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
