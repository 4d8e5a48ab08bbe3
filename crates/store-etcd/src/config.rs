use std::{path::PathBuf, time::Duration};

use bytes::Bytes;

/// How to reach an etcd cluster and what of it to show.
#[derive(Debug, Clone)]
pub struct Config {
    /// The client URLs of the members, `http://` or `https://`. One is used until it fails.
    pub endpoints: Vec<String>,
    /// How to trust the members and what to show them. Required exactly for `https://` endpoints.
    pub tls: Option<TlsConfig>,
    /// Keys that do not begin with this are not shown by scans and follows, and writing or comparing
    /// them is invalid. Keys are always given and shown in full. Default: empty, all keys.
    pub prefix: Bytes,
    /// How long connecting to a member may take, TLS included. Default: 2 seconds.
    pub dial_timeout: Duration,
    /// How long an answer may take. Reads, and writes that certainly did not happen, are tried again on
    /// other members within this time. Default: 10 seconds; a healthy etcd needs milliseconds, one that
    /// elects a leader a few seconds.
    pub request_timeout: Duration,
    /// How long [`concord_store::Store::health`] may take. Default: 2 seconds.
    pub health_timeout: Duration,
    /// A connection with requests or watches under way is pinged this often, and given up when the
    /// answer takes as long. Default: 10 seconds. etcd closes connections that ping more often than
    /// every 5 seconds.
    pub keepalive: Duration,
    /// How often history older than one interval is compacted, in turn with all kube-apiservers on this
    /// etcd. Zero: never. Default: 5 minutes, as kube-apiserver.
    pub compaction_interval: Duration,
}

/// The TLS side of [`Config`]. Files are PEM and read once, by [`crate::EtcdStore::open`].
#[derive(Debug, Clone)]
pub struct TlsConfig {
    /// The certificates that sign the members' certificates.
    pub ca_file: PathBuf,
    /// What we authenticate with, for an etcd started with `--client-cert-auth`.
    pub client_certificate: Option<ClientCertificate>,
}

/// A client certificate and its key.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// The certificate, followed by intermediates if there are any.
    pub cert_file: PathBuf,
    /// The private key.
    pub key_file: PathBuf,
}

impl Config {
    /// The defaults, for these endpoints.
    pub fn new<I>(endpoints: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            tls: None,
            prefix: Bytes::new(),
            dial_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(10),
            health_timeout: Duration::from_secs(2),
            keepalive: Duration::from_secs(10),
            compaction_interval: Duration::from_secs(300),
        }
    }
}
