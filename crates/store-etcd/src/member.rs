//! The members of the cluster: one connection each for requests, and which one to ask next.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use concord_store::Error;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::{
    config::{Config, TlsConfig},
    pb::etcdserverpb::{
        kv_client::KvClient, lease_client::LeaseClient, maintenance_client::MaintenanceClient,
    },
};

/// As high as etcd's own client goes. What bounds a response is what we ask for.
pub(crate) const MAX_RESPONSE_BYTES: usize = i32::MAX as usize;

/// One etcd member.
#[derive(Debug)]
pub(crate) struct Member {
    /// As configured, for messages.
    pub(crate) url: String,
    /// For watches: each gets a connection of its own, since a follower that reads slowly would use up
    /// the flow-control window that requests need.
    pub(crate) endpoint: Endpoint,
    pub(crate) kv: KvClient<Channel>,
    pub(crate) lease: LeaseClient<Channel>,
    pub(crate) maintenance: MaintenanceClient<Channel>,
}

/// All members, in the order configured.
#[derive(Debug)]
pub(crate) struct Members {
    list: Vec<Member>,
    preferred: AtomicUsize,
}

impl Members {
    /// Prepares the members without connecting to any.
    pub(crate) async fn new(config: &Config) -> Result<Self, Error> {
        if config.endpoints.is_empty() {
            return Err(Error::invalid("no etcd endpoint is configured"));
        }
        let tls = match &config.tls {
            Some(tls) => Some(load_tls(tls).await?.timeout(config.dial_timeout)),
            None => None,
        };
        let list = config
            .endpoints
            .iter()
            .map(|url| Member::new(url, config, tls.as_ref()))
            .collect::<Result<_, _>>()?;
        Ok(Self { list, preferred: AtomicUsize::new(0) })
    }

    /// How many there are, at least one.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn all(&self) -> &[Member] {
        &self.list
    }

    /// The place of the member to ask.
    pub(crate) fn preferred(&self) -> usize {
        self.preferred.load(Ordering::Relaxed)
    }

    /// The member at a place; places go round.
    pub(crate) fn at(&self, place: usize) -> &Member {
        &self.list[place % self.list.len()]
    }

    /// Turns to the next member, unless somebody else already turned away from this one.
    pub(crate) fn fail_over(&self, place: usize) {
        let next = (place + 1) % self.list.len();
        // Losing this race means that another caller saw the same failure.
        self.preferred.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed).ok();
    }
}

impl Member {
    fn new(url: &str, config: &Config, tls: Option<&ClientTlsConfig>) -> Result<Self, Error> {
        let endpoint = endpoint(url, config, tls)?;
        let channel = endpoint.connect_lazy();
        Ok(Self {
            url: url.to_owned(),
            endpoint,
            kv: KvClient::new(channel.clone()).max_decoding_message_size(MAX_RESPONSE_BYTES),
            lease: LeaseClient::new(channel.clone()),
            maintenance: MaintenanceClient::new(channel),
        })
    }
}

fn endpoint(url: &str, config: &Config, tls: Option<&ClientTlsConfig>) -> Result<Endpoint, Error> {
    let invalid = |why: &dyn std::fmt::Display| Error::invalid(format!("the etcd endpoint {url:?}: {why}"));
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|e| invalid(&e))?;
    if endpoint.uri().host().is_none_or(str::is_empty) {
        return Err(invalid(&"it names no host"));
    }
    let endpoint = endpoint
        .connect_timeout(config.dial_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(config.keepalive)
        .keep_alive_timeout(config.keepalive)
        // etcd takes pings without a request under way for an attack.
        .keep_alive_while_idle(false);
    match (endpoint.uri().scheme_str(), tls) {
        (Some("http"), None) => Ok(endpoint),
        (Some("https"), Some(tls)) => endpoint.tls_config(tls.clone()).map_err(|e| invalid(&chain(&e))),
        (Some("https"), None) => Err(invalid(&"it needs a CA file to verify the member with")),
        (Some("http"), Some(_)) => Err(invalid(&"TLS is configured, but the URL is not https")),
        _ => Err(invalid(&"the URL must begin with http:// or https://")),
    }
}

async fn load_tls(tls: &TlsConfig) -> Result<ClientTlsConfig, Error> {
    let ca = read(&tls.ca_file).await?;
    // Otherwise nobody would be trusted, and the message would be about the members' certificates.
    if !String::from_utf8_lossy(&ca).contains("-----BEGIN CERTIFICATE-----") {
        return Err(Error::invalid(format!("{} holds no PEM certificate", tls.ca_file.display())));
    }
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
    if let Some(client) = &tls.client_certificate {
        config = config
            .identity(Identity::from_pem(read(&client.cert_file).await?, read(&client.key_file).await?));
    }
    Ok(config)
}

async fn read(path: &Path) -> Result<Vec<u8>, Error> {
    tokio::fs::read(path).await.map_err(|e| Error::invalid(format!("reading {}: {e}", path.display())))
}

/// An error with all it was caused by: transport errors say nothing on their own.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// How long to wait before asking again: doubles from 50 ms, is random so that clients of a failed member
/// do not come back in step, and ends at `limit`.
pub(crate) fn backoff(attempt: u32, limit: Duration) -> Duration {
    let full = Duration::from_millis(50).saturating_mul(1 << attempt.min(10)).min(limit);
    full.mul_f64(rand::random_range(0.5..=1.0))
}
