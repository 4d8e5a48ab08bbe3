//! A client of a server, as a kubeconfig describes it.

use std::{
    env, fs,
    net::ToSocketAddrs as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_codec::{Options, decode_yaml};
use concord_forward::{Backend, Connector, TcpDial};
use concord_migrator::standalone::Answer;
use concord_pki::{ClientIdentity, Trust, client_tls};
use concord_server::full;
use http::{Method, Request, Uri, uri::Authority};
use http_body_util::BodyExt as _;
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    sign::CertifiedKey,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::Connection;
use crate::{host, kubeconfig};

/// How long it may take to reach a server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A server.
pub(crate) struct Api {
    backend: Backend,
    token: Option<String>,
    /// The version of the API of migrations that the server has.
    version: OnceCell<&'static str>,
}

/// The versions of the API of migrations, the newest first.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// An answer that is not a success.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    pub(crate) code: u16,
    message: String,
}

impl Api {
    /// The server that the options name.
    pub(crate) fn open(connection: &Connection) -> anyhow::Result<Self> {
        let path = match (&connection.kubeconfig, env::var_os("KUBECONFIG").filter(|path| !path.is_empty())) {
            (Some(path), _) => path.clone(),
            (None, Some(path)) if connection.data.data_dir.is_none() => PathBuf::from(path),
            _ => host::data_dir(&connection.data)?.join(kubeconfig::FILE),
        };
        let about = || format!("cannot use the kubeconfig {}", path.display());
        Self::from_file(&path).with_context(about)
    }

    fn from_file(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read(path)?;
        let config = Value::Object(decode_yaml(&text, &Options::default())?.object);
        let context = named(&config, "contexts", text_of(&config["current-context"])?, "context")?;
        let cluster = named(&config, "clusters", text_of(&context["cluster"])?, "cluster")?;
        let user = named(&config, "users", text_of(&context["user"])?, "user")?;
        ensure!(
            user["exec"].is_null() && user["auth-provider"].is_null(),
            "plugins of users are not supported"
        );
        let directory = path.parent().unwrap_or(Path::new("."));
        let server: Uri = text_of(&cluster["server"])?.parse()?;
        ensure!(server.scheme_str() == Some("https"), "the server must be an https:// URL");
        let authority = server.authority().context("the server has no host")?.clone();
        let trust = match (
            &cluster["insecure-skip-tls-verify"],
            pem(&cluster, "certificate-authority", directory)?,
        ) {
            (Value::Bool(true), _) => Trust::Anybody,
            (_, Some(bundle)) => Trust::Bundle(bundle),
            (_, None) => Trust::System,
        };
        let tls = client_tls(&trust, identity(&user, directory)?)?;
        let name = cluster["tls-server-name"].as_str().unwrap_or(host_of(&authority));
        let name = ServerName::try_from(name.to_owned()).context("the server has no name")?;
        let connector = Connector::new(Arc::new(TcpDial(address(&authority)?)), &tls, name, TIMEOUT);
        let token = match (user["token"].as_str(), user["tokenFile"].as_str()) {
            (Some(token), _) => Some(token.to_owned()),
            (None, Some(file)) => Some(fs::read_to_string(directory.join(file))?.trim().to_owned()),
            (None, None) => None,
        };
        Ok(Self { backend: Backend::new(authority, connector), token, version: OnceCell::new() })
    }

    /// The newest version of the API of migrations that the server has.
    pub(crate) async fn version(&self) -> anyhow::Result<&'static str> {
        let find = async || {
            let group = self.get("/apis/storagemigration.k8s.io").await;
            let group = group.context("the server does not serve StorageVersionMigrations")?;
            let served = |version: &&str| {
                let mut all = group["versions"].as_array().into_iter().flatten();
                all.any(|served| served["version"] == **version)
            };
            VERSIONS.into_iter().find(served).context("the server serves no known StorageVersionMigrations")
        };
        self.version.get_or_try_init(find).await.copied()
    }

    /// Where migrations are, or one of them.
    pub(crate) async fn migrations(&self, name: &str) -> anyhow::Result<String> {
        let all = format!("/apis/storagemigration.k8s.io/{}/storageversionmigrations", self.version().await?);
        Ok(if name.is_empty() { all } else { format!("{all}/{name}") })
    }

    /// What is at a path.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, Some(object)).await
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> anyhow::Result<Value> {
        self.send(Method::PATCH, path, Some(patch)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::DELETE, path, None).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let Answer { code, body: answer, .. } = self.ask(method, path, body, "application/json").await?;
        if (200..300).contains(&code) {
            return Ok(answer);
        }
        let message = answer["message"].as_str().map(str::to_owned);
        Err(Refused { code, message: message.unwrap_or_else(|| format!("{path}: status {code}")) }.into())
    }

    /// Any answer, in one of these forms.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        accept: &str,
    ) -> anyhow::Result<Answer> {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let mut request = Request::builder().method(method).uri(path).header("accept", accept);
        request = request.header("user-agent", "concord").header("content-type", kind);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        let response =
            self.backend.ask(request.body(full(body))?).await.context("the server cannot be reached")?;
        let code = response.status().as_u16();
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes =
            response.into_body().collect().await.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Ok(Answer { code, body, retry_after })
    }
}

/// Whether an error is that something is not there.
pub(crate) fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == 404)
}

fn text_of(value: &Value) -> anyhow::Result<&str> {
    value.as_str().context("something is missing in it")
}

/// What is called so in a list of the file.
fn named(config: &Value, list: &str, name: &str, member: &str) -> anyhow::Result<Value> {
    let mut items = config[list].as_array().into_iter().flatten();
    match items.find(|item| item["name"] == name) {
        Some(item) => Ok(item[member].clone()),
        None => bail!("it has no {member} {name:?}"),
    }
}

/// What is in the file itself, or in one that it names.
fn pem(object: &Value, name: &str, directory: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    if let Some(data) = object[format!("{name}-data")].as_str() {
        return Ok(Some(BASE64_STANDARD.decode(data).with_context(|| format!("{name}-data"))?));
    }
    object[name].as_str().map(|file| fs::read(directory.join(file)).context(file.to_owned())).transpose()
}

fn identity(user: &Value, directory: &Path) -> anyhow::Result<Option<Arc<ClientIdentity>>> {
    let pair = (pem(user, "client-certificate", directory)?, pem(user, "client-key", directory)?);
    let (Some(certificate), Some(key)) = pair else { return Ok(None) };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let key = PrivateKeyDer::from_pem_slice(&key)?;
    let identity = CertifiedKey::from_der(chain?, key, &aws_lc_rs::default_provider())?;
    Ok(Some(Arc::new(ClientIdentity::new(Arc::new(identity)))))
}

/// The host without the brackets around an address of version 6.
fn host_of(authority: &Authority) -> &str {
    authority.host().trim_start_matches('[').trim_end_matches(']')
}

fn address(authority: &Authority) -> anyhow::Result<std::net::SocketAddr> {
    let port = authority.port_u16().unwrap_or(443);
    let mut addresses = (host_of(authority), port).to_socket_addrs().context("the server cannot be found")?;
    addresses.next().context("the server has no address")
}
