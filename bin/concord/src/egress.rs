//! Ways to other servers that lead through a proxy: `--egress-selector-config-file`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail, ensure};
use concord_codec::{Options, decode_yaml};
use concord_forward::{Dial, HostDial, TlsDial, TunnelDial, UnixDial};
use concord_peerproxy::Egress;
use concord_pki::{ClientIdentity, Trust, client_tls, load_identity};
use http::Uri;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use serde_json::Value;

use crate::reload::read_text;

/// The versions that kube-apiserver reads.
const VERSIONS: [&str; 3] = ["apiserver.k8s.io/v1", "apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Configuration {
    api_version: String,
    kind: String,
    #[serde(default)]
    egress_selections: Vec<Selection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    name: String,
    connection: Connection,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Connection {
    proxy_protocol: String,
    transport: Option<Transport>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transport {
    tcp: Option<Tcp>,
    uds: Option<Uds>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Tcp {
    url: String,
    tls_config: Option<Tls>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Uds {
    uds_name: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Tls {
    ca_bundle: Option<PathBuf>,
    client_key: PathBuf,
    client_cert: PathBuf,
}

/// The way to other servers that a file says; `None` if they are reached directly.
pub(crate) fn controlplane(file: &Path) -> anyhow::Result<Option<Box<Egress>>> {
    let read = || -> anyhow::Result<Option<Arc<dyn Dial>>> {
        let decoded = decode_yaml(read_text(file)?.as_bytes(), &Options::default())?;
        if let Some(violation) = decoded.violations.first() {
            bail!("{violation}");
        }
        proxy(serde_json::from_value(Value::Object(decoded.object))?)
    };
    let proxy = read().with_context(|| format!("--egress-selector-config-file {}", file.display()))?;
    Ok(proxy.map(|proxy| -> Box<Egress> {
        Box::new(move |target: SocketAddr| -> Arc<dyn Dial> {
            Arc::new(TunnelDial { proxy: proxy.clone(), target })
        })
    }))
}

fn proxy(configuration: Configuration) -> anyhow::Result<Option<Arc<dyn Dial>>> {
    let Configuration { api_version, kind, egress_selections } = configuration;
    ensure!(
        kind == "EgressSelectorConfiguration" && VERSIONS.contains(&api_version.as_str()),
        "unexpected config type: {api_version}, Kind={kind}"
    );
    let mut found = None;
    let mut seen = Vec::new();
    for Selection { name, connection } in egress_selections {
        let name = name.to_lowercase();
        ensure!(!seen.contains(&name), "{name} is there twice");
        match (name.as_str(), connection.proxy_protocol.as_str()) {
            // The older name, in the oldest version.
            ("controlplane", _) => found = dial(connection)?,
            ("master", _) if api_version.ends_with("v1alpha1") => found = dial(connection)?,
            ("cluster" | "etcd", "Direct") => {}
            ("cluster" | "etcd", _) => {
                bail!("only controlplane can be reached through a proxy, and {name} directly")
            }
            _ => bail!("{name} is none of controlplane, cluster and etcd"),
        }
        seen.push(name);
    }
    Ok(found)
}

/// What the proxy is reached by.
fn dial(connection: Connection) -> anyhow::Result<Option<Arc<dyn Dial>>> {
    match (connection.proxy_protocol.as_str(), connection.transport) {
        ("Direct", None) => Ok(None),
        ("Direct", Some(_)) => bail!("transport: config must be absent for direct connect"),
        ("HTTPConnect", Some(Transport { tcp: None, uds: Some(uds) })) => {
            ensure!(!uds.uds_name.as_os_str().is_empty(), "udsName: must be present for UDS connections");
            Ok(Some(Arc::new(UnixDial(uds.uds_name))))
        }
        ("HTTPConnect", Some(Transport { tcp: Some(tcp), uds: None })) => host(tcp).map(Some),
        ("HTTPConnect", Some(Transport { tcp: Some(_), uds: Some(_) })) => {
            bail!("TCP and UDS cannot both be set")
        }
        ("HTTPConnect", Some(_)) => bail!("One of TCP or UDS must be set"),
        ("HTTPConnect", None) => bail!("transport must be set for HTTPConnect"),
        ("GRPC", _) => bail!("proxyProtocol GRPC is not supported here: use HTTPConnect"),
        (other, _) => bail!("proxyProtocol: {other:?} is none of Direct, HTTPConnect and GRPC"),
    }
}

fn host(Tcp { url, tls_config }: Tcp) -> anyhow::Result<Arc<dyn Dial>> {
    let uri: Uri = url.parse().with_context(|| format!("url {url}"))?;
    let host = uri.host().with_context(|| format!("url {url} has no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    match (uri.scheme_str(), tls_config) {
        (Some("http"), None) => Ok(Arc::new(HostDial { host, port: uri.port_u16().unwrap_or(80) })),
        (Some("http"), Some(_)) => bail!("tlsConfig: config must not be present when using HTTP"),
        (Some("https"), Some(tls)) => {
            let identity = load_identity(&tls.client_cert, &tls.client_key)?;
            let trust = match &tls.ca_bundle {
                Some(bundle) => Trust::Bundle(read_text(bundle)?.into()),
                None => Trust::System,
            };
            let config = client_tls(&trust, Some(Arc::new(ClientIdentity::new(identity))))?;
            let server_name = ServerName::try_from(host.clone()).context("url")?;
            let dial = Arc::new(HostDial { host, port: uri.port_u16().unwrap_or(443) });
            Ok(Arc::new(TlsDial::new(dial, config, server_name)))
        }
        (Some("https"), None) => bail!("TLSConfig must be present when using HTTPS"),
        _ => bail!("supported connection protocols are http:// and https://"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(selections: &str) -> Result<bool, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("egress.yaml");
        let text = format!(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: {selections}\n"
        );
        std::fs::write(&file, text).expect("written");
        controlplane(&file).map(|found| found.is_some()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn ways_that_lead_through_a_proxy() {
        let unix = "[{name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /run/x}}}}]";
        let tcp = "[{name: ControlPlane, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://10.0.0.1:80'}}}}]";
        for selections in [unix, tcp] {
            assert_eq!(read(selections), Ok(true), "{selections}");
        }
        let direct = "[{name: controlplane, connection: {proxyProtocol: Direct}}, {name: etcd, connection: {proxyProtocol: Direct}}]";
        for selections in ["[]", direct] {
            assert_eq!(read(selections), Ok(false), "{selections}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (selections, complaint) in [
            (
                "[{name: controlplane, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /x}}}}]",
                "GRPC",
            ),
            ("[{name: controlplane, connection: {proxyProtocol: HTTPConnect}}]", "transport must be set"),
            (
                "[{name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {}}}]",
                "One of TCP or UDS",
            ),
            ("[{name: controlplane, connection: {proxyProtocol: Direct, transport: {}}}]", "must be absent"),
            ("[{name: controlplane, connection: {proxyProtocol: Pigeon}}]", "Pigeon"),
            ("[{name: cluster, connection: {proxyProtocol: HTTPConnect}}]", "only controlplane"),
            ("[{name: moon, connection: {proxyProtocol: Direct}}]", "moon is none of"),
            (
                "[{name: etcd, connection: {proxyProtocol: Direct}}, {name: etcd, connection: {proxyProtocol: Direct}}]",
                "twice",
            ),
            (
                "[{name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a'}}}}]",
                "TLSConfig must be present",
            ),
            ("[{name: controlplane, connection: {proxyProtocol: Direct}, more: 1}]", "more"),
        ] {
            let refusal = read(selections).expect_err(selections);
            assert!(refusal.contains(complaint), "{selections}: {refusal}");
        }
    }
}
