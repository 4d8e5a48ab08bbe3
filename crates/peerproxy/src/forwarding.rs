//! The transport between servers: shared connections over mutual TLS.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use concord_forward::{Backend, Connector, Dial, Failure, TcpDial};
use concord_server::{Request, Response, UserInfo};
use http::{HeaderValue, uri::Authority};
use parking_lot::Mutex;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    sign::{CertifiedKey, SingleCertAndKey},
};

use crate::transport::{PROXIED, SendError, Transport};

/// The name that every server's certificate has to have, wherever the server is; kube-apiserver's.
const SERVER_NAME: &str = "kubernetes.default.svc";

/// How long a connection may take. Another server may have what is asked for, and the client waits.
const CONNECT: Duration = Duration::from_secs(3);

/// How many addresses are remembered with their connections. Fleets are smaller; but servers come and go.
const MAX_ADDRESSES: usize = 64;

/// Makes what reaches an address: directly, unless told otherwise.
pub type Egress = dyn Fn(SocketAddr) -> Arc<dyn Dial> + Send + Sync;

/// Why there can be no transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// There is no authority in the file.
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    Empty,
    /// An authority cannot be used.
    #[error("a certificate cannot be used: {0}")]
    Authority(String),
    /// The TLS library refused.
    #[error("the TLS configuration is not usable")]
    Tls(#[from] rustls::Error),
}

/// Reaches servers by their addresses, believes those with a certificate of the peers' authority for
/// `kubernetes.default.svc`, and shows them this server's certificate as a proxy.
pub struct PeerTransport {
    tls: ArcSwap<ClientConfig>,
    egress: Box<Egress>,
    backends: Mutex<HashMap<SocketAddr, Arc<Backend>>>,
}

impl PeerTransport {
    /// Believes servers of these authorities (PEM), and shows them this certificate.
    ///
    /// # Errors
    ///
    /// [`TrustError`].
    pub fn new(authorities: &[u8], client: &CertifiedKey) -> Result<Self, TrustError> {
        let tls = ArcSwap::from_pointee(config(authorities, client)?);
        let egress = Box::new(|address| -> Arc<dyn Dial> { Arc::new(TcpDial(address)) });
        Ok(Self { tls, egress, backends: Mutex::default() })
    }

    /// Reaches addresses through `egress`.
    #[must_use]
    pub fn with_egress(self, egress: Box<Egress>) -> Self {
        Self { egress, ..self }
    }

    /// Believes others and shows another certificate from now on. Requests under way stay on their connections.
    ///
    /// # Errors
    ///
    /// [`TrustError`]; nothing changes then.
    pub fn replace(&self, authorities: &[u8], client: &CertifiedKey) -> Result<(), TrustError> {
        self.tls.store(Arc::new(config(authorities, client)?));
        self.backends.lock().clear();
        Ok(())
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
            Arc::new(Backend::new(authority, connector))
        };
        backends.entry(address).or_insert_with(made).clone()
    }
}

fn config(authorities: &[u8], client: &CertifiedKey) -> Result<ClientConfig, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate = certificate.map_err(|error| TrustError::Authority(error.to_string()))?;
        roots.add(certificate).map_err(|error| TrustError::Authority(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(TrustError::Empty);
    }
    let identity = Arc::new(SingleCertAndKey::from(client.clone()));
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_cert_resolver(identity);
    Ok(config)
}

#[async_trait]
impl Transport for PeerTransport {
    async fn send(&self, to: SocketAddr, user: &UserInfo, request: Request) -> Result<Response, SendError> {
        let mark = (PROXIED, HeaderValue::from_static("true"));
        let sent = self.backend(to).forward(request, user, &[mark]).await;
        sent.map_err(|Failure { error, request }| match request {
            Some(request) => SendError::NotSent { request, reason: error.to_string() },
            None => SendError::Broken(error.to_string()),
        })
    }

    fn forget(&self, to: SocketAddr) {
        self.backends.lock().remove(&to);
    }
}
