//! Where a server is, whom to believe and who we are.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use serde_json::{Map, Value};

/// A server to send requests to.
#[derive(Debug, Clone)]
pub struct Server {
    /// `host:port`.
    pub(crate) authority: String,
    pub(crate) name: ServerName<'static>,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) token: Option<String>,
}

/// Reads the current context of a kubeconfig.
///
/// # Errors
///
/// When the file, or what it names, cannot be read or used.
pub fn load(path: &Path) -> Result<Server> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    parse(&text, directory).with_context(|| format!("kubeconfig {}", path.display()))
}

fn parse(text: &[u8], directory: &Path) -> Result<Server> {
    let config = concord_codec::decode_yaml(text, &concord_codec::Options::default())?.object;
    let current = text_of(&config, "current-context").context("there is no current-context")?;
    let context = named(&config, "contexts", current, "context")?;
    let section = |list: &str, key: &str| {
        let name = text_of(context, key).with_context(|| format!("the context names no {key}"))?;
        named(&config, list, name, key)
    };
    let (cluster, user) = (section("clusters", "cluster")?, section("users", "user")?);
    let url = text_of(cluster, "server").context("the cluster has no server")?;
    let url: http::Uri = url.parse().context("the server is not a URL")?;
    let host = url.host().context("the server has no host")?;
    Ok(Server {
        authority: format!("{host}:{}", url.port_u16().unwrap_or(443)),
        name: ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?,
        tls: Arc::new(tls(cluster, user, directory)?),
        token: text_of(user, "token").map(str::to_owned),
    })
}

fn tls(cluster: &Map<String, Value>, user: &Map<String, Value>, directory: &Path) -> Result<ClientConfig> {
    let authority =
        data(cluster, "certificate-authority", directory)?.context("there is no certificate-authority")?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        roots.add(certificate?)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let identity = (data(user, "client-certificate", directory)?, data(user, "client-key", directory)?);
    let mut config = match identity {
        (Some(certificate), Some(key)) => {
            let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&key)?)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A value that is either in the file or in a file it names.
fn data(section: &Map<String, Value>, key: &str, directory: &Path) -> Result<Option<Vec<u8>>> {
    if let Some(inline) = text_of(section, &format!("{key}-data")) {
        return Ok(Some(STANDARD.decode(inline).with_context(|| format!("{key}-data is not base64"))?));
    }
    let Some(path) = text_of(section, key) else { return Ok(None) };
    let path = directory.join(path);
    Ok(Some(std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?))
}

fn text_of<'a>(section: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    section.get(key)?.as_str().filter(|text| !text.is_empty())
}

fn named<'a>(
    config: &'a Map<String, Value>,
    list: &str,
    name: &str,
    key: &str,
) -> Result<&'a Map<String, Value>> {
    let entries = config.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry["name"] == name);
    entry.and_then(|entry| entry[key].as_object()).with_context(|| format!("{list} has no {name:?}"))
}
