//! What a kubeconfig says about the server to measure and about who we are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

/// Everything needed to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Host name or address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Put before every request path; empty for most servers.
    pub(crate) path_prefix: String,
    /// Absent for `http://`.
    pub(crate) tls: Option<Tls>,
    pub(crate) token: Option<String>,
}

/// How the connection is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) verify: Verify,
    /// The name the certificate must carry, and the one sent as SNI.
    pub(crate) server_name: String,
    /// PEM of the client certificate (chain) and of its key.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Whom to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// `insecure-skip-tls-verify`.
    Nobody,
    /// PEM of the authorities.
    Authorities(Vec<u8>),
    /// What the machine trusts.
    System,
}

/// The file to read when none is named: the first of `$KUBECONFIG`, else `~/.kube/config`, as kubectl.
pub(crate) fn default_path() -> Result<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
    if let Some(first) = listed.as_deref().and_then(|value| std::env::split_paths(value).next()) {
        return Ok(first);
    }
    let home = std::env::home_dir().context("no home directory: name the file with --kubeconfig")?;
    Ok(home.join(".kube").join("config"))
}

/// Reads a kubeconfig and follows one context of it, the current one unless another is named.
pub(crate) fn load(path: &Path, context: Option<&str>) -> Result<Access> {
    let text = std::fs::read(path).with_context(|| {
        format!("cannot read the kubeconfig {}: name the file with --kubeconfig", path.display())
    })?;
    let directory = path.parent().unwrap_or(Path::new("."));
    parse(&text, context, directory).with_context(|| format!("kubeconfig {}", path.display()))
}

/// `directory` is what paths in the file are relative to.
pub(crate) fn parse(text: &[u8], context: Option<&str>, directory: &Path) -> Result<Access> {
    let config = concord_codec::decode_yaml(text, &concord_codec::Options::default())
        .context("it is neither YAML nor JSON")?
        .object;
    let current = context.or_else(|| text_of(&config, "current-context")).filter(|name| !name.is_empty());
    let current = current.context("it has no current-context: choose one with --context")?;
    let context = named(&config, "contexts", current, "context")?;
    let cluster = text_of(context, "cluster").context("the context names no cluster")?;
    let cluster = Section { fields: named(&config, "clusters", cluster, "cluster")?, directory };
    let no_fields = Map::new();
    let user = match text_of(context, "user") {
        Some(user) => named(&config, "users", user, "user")?,
        None => &no_fields,
    };
    access(&cluster, &Section { fields: user, directory })
}

fn access(cluster: &Section<'_>, user: &Section<'_>) -> Result<Access> {
    ensure!(
        cluster.text("proxy-url").is_none(),
        "proxy-url is not supported: connect to the server directly"
    );
    let server = cluster.text("server").context("the cluster has no server")?;
    let address: http::Uri = server.parse().with_context(|| format!("server {server:?} is not a URL"))?;
    let host = address.host().with_context(|| format!("server {server:?} names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let secure = match address.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => bail!("server {server:?} must begin with https:// or http://"),
    };
    Ok(Access {
        port: address.port_u16().unwrap_or(if secure { 443 } else { 80 }),
        path_prefix: address.path().trim_end_matches('/').to_owned(),
        tls: if secure { Some(tls(cluster, user, &host)?) } else { None },
        token: token(user)?,
        host,
    })
}

fn tls(cluster: &Section<'_>, user: &Section<'_>, host: &str) -> Result<Tls> {
    let skip = cluster.fields.get("insecure-skip-tls-verify") == Some(&Value::Bool(true));
    let verify = match cluster.data("certificate-authority")? {
        _ if skip => Verify::Nobody,
        Some(authorities) => Verify::Authorities(authorities),
        None => Verify::System,
    };
    let server_name = cluster.text("tls-server-name").unwrap_or(host).to_owned();
    let identity = match (user.data("client-certificate")?, user.data("client-key")?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => bail!("client-certificate and client-key must be given together"),
    };
    Ok(Tls { verify, server_name, identity })
}

fn token(user: &Section<'_>) -> Result<Option<String>> {
    for plugin in ["exec", "auth-provider"] {
        ensure!(
            !user.fields.contains_key(plugin),
            "{plugin} credentials are not supported: make a token (kubectl create token) and use that"
        );
    }
    // As client-go: a file wins over an inline token.
    if let Some(path) = user.text("tokenFile") {
        let path = user.directory.join(path);
        let token = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read the tokenFile {}", path.display()))?;
        return Ok(Some(token.trim().to_owned()));
    }
    Ok(user.text("token").map(str::to_owned))
}

/// One cluster or user of the file.
struct Section<'a> {
    fields: &'a Map<String, Value>,
    directory: &'a Path,
}

impl Section<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        text_of(self.fields, field).filter(|text| !text.is_empty())
    }

    /// Inline base64 (`FIELD-data`, which wins) or a file.
    fn data(&self, field: &str) -> Result<Option<Vec<u8>>> {
        if let Some(inline) = self.text(&format!("{field}-data")) {
            let decoded = STANDARD.decode(inline).with_context(|| format!("{field}-data is not base64"))?;
            return Ok(Some(decoded));
        }
        let Some(path) = self.text(field) else { return Ok(None) };
        let path = self.directory.join(path);
        let read = std::fs::read(&path);
        read.map(Some).with_context(|| format!("cannot read the {field} {}", path.display()))
    }
}

fn text_of<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    fields.get(field).and_then(Value::as_str)
}

/// The entry of a named list: `contexts: [{name: x, context: {...}}]`.
fn named<'a>(
    config: &'a Map<String, Value>,
    list: &str,
    name: &str,
    kind: &str,
) -> Result<&'a Map<String, Value>> {
    let entries = config.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let has_name = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some(name);
    let entry = entries.iter().find(has_name).and_then(|entry| entry.get(kind)).and_then(Value::as_object);
    entry.with_context(|| {
        let known: Vec<_> = entries.iter().filter_map(|entry| entry.get("name")?.as_str()).collect();
        format!("it has no {kind} {name:?}; it has: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
