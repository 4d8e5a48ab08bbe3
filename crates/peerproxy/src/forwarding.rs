//! The transport between servers: shared connections over mutual TLS.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use concord_forward::{Backend, Connector, Dial, Failure, ForwardError, TcpDial};
use concord_server::{Request, Response, UserInfo};
use http::{HeaderValue, uri::Authority};
use parking_lot::Mutex;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::sync::Notify;

use crate::transport::{PROXIED, SendError, Transport};

/// The name that every server's certificate has to have, wherever the server is; kube-apiserver's.
const SERVER_NAME: &str = "kubernetes.default.svc";

/// How long a connection may take. Another server may have what is asked for, and the client waits.
const CONNECT: Duration = Duration::from_secs(3);

/// How many addresses are remembered with their connections. Fleets are smaller; but servers come and go.
const MAX_ADDRESSES: usize = 64;

/// Makes what reaches an address: directly, unless told otherwise.
pub type Egress = dyn Fn(SocketAddr) -> Arc<dyn Dial> + Send + Sync;

/// Reaches servers by their addresses. Each has to have a certificate for `kubernetes.default.svc`.
pub struct PeerTransport {
    tls: ArcSwap<ClientConfig>,
    egress: Box<Egress>,
    backends: Mutex<HashMap<SocketAddr, Arc<Backend>>>,
    closed: Arc<Closed>,
}

/// The servers to which a connection ended.
#[derive(Default)]
struct Closed {
    addresses: Mutex<BTreeSet<SocketAddr>>,
    told: Notify,
}

impl Closed {
    fn tell(&self, address: SocketAddr) {
        self.addresses.lock().insert(address);
        self.told.notify_one();
    }
}

impl PeerTransport {
    /// Shakes hands so: believes the authority of the peers, and shows this server's certificate as a proxy.
    pub fn new(tls: ClientConfig) -> Self {
        let egress = Box::new(|address| -> Arc<dyn Dial> { Arc::new(TcpDial(address)) });
        Self { tls: ArcSwap::from_pointee(tls), egress, backends: Mutex::default(), closed: Arc::default() }
    }

    /// Reaches addresses through `egress`.
    #[must_use]
    pub fn with_egress(self, egress: Box<Egress>) -> Self {
        Self { egress, ..self }
    }

    /// Shakes hands so from now on. Requests under way stay on their connections.
    pub fn replace(&self, tls: ClientConfig) {
        self.tls.store(Arc::new(tls));
        self.backends.lock().clear();
    }

    fn backend(&self, address: SocketAddr) -> Arc<Backend> {
        let mut backends = self.backends.lock();
        if backends.len() >= MAX_ADDRESSES && !backends.contains_key(&address) {
            backends.clear();
        }
        let made = || {
            let authority: Authority = address.to_string().parse().expect("an address is an authority");
            let name = ServerName::try_from(SERVER_NAME).expect("a constant name is valid");
            let connector = Connector::new((self.egress)(address), &self.tls.load(), name, CONNECT);
            let closed = self.closed.clone();
            let connector = connector.with_close_notice(Arc::new(move || closed.tell(address)));
            Arc::new(Backend::new(authority, connector))
        };
        backends.entry(address).or_insert_with(made).clone()
    }
}

#[async_trait]
impl Transport for PeerTransport {
    async fn send(&self, to: SocketAddr, user: &UserInfo, request: Request) -> Result<Response, SendError> {
        let mark = (PROXIED, HeaderValue::from_static("true"));
        let sent = self.backend(to).forward(request, user, &[mark]).await;
        sent.map_err(|Failure { error, request }| match (request, error) {
            (_, error @ ForwardError::Identity) => SendError::Unnameable(error.to_string()),
            (Some(request), error) => SendError::NotSent { request, reason: error.to_string() },
            (None, error) => SendError::Broken(error.to_string()),
        })
    }

    fn forget(&self, to: SocketAddr) {
        self.backends.lock().remove(&to);
    }

    async fn closed(&self) -> SocketAddr {
        loop {
            let told = self.closed.told.notified();
            let next = self.closed.addresses.lock().pop_first();
            match next {
                Some(address) => return address,
                None => told.await,
            }
        }
    }
}
