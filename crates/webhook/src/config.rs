use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use concord_pki::{Trust, TrustError};
use serde_json::{Map, Value};

/// The port of a Service whose reference names none.
const DEFAULT_PORT: u16 = 443;

/// Where a webhook is, and whom to believe that it is the webhook: `clientConfig` of a webhook configuration or of a
/// CustomResourceDefinition's conversion.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// Where it is.
    pub target: Target,
    /// PEM certificates of the authorities that may vouch for it. If empty, those that the system trusts.
    pub ca_bundle: Bytes,
}

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// At an `https` URL.
    Url(String),
    /// Behind a Service of the cluster.
    Service(ServiceReference),
}

/// A Service, and a path there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceReference {
    /// The namespace of the Service.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path of requests to it; may be empty.
    pub path: String,
    /// One of the ports of the Service.
    pub port: u16,
}

impl ServiceReference {
    /// What its certificate must be for.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

/// A `clientConfig` by which nothing can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidConfig {
    /// It does not say where the webhook is.
    #[error("webhook configuration must have either service or URL")]
    NoTarget,
    /// The authorities are not base64.
    #[error("caBundle is not base64")]
    Bundle,
    /// The URL is none that can be called.
    #[error("Unparsable URL: {0}")]
    Url(String),
    /// There is no certificate in the bundle.
    #[error("unable to load root certificates: unable to parse bytes as PEM block")]
    NoCertificate,
    /// The system has no authorities that could be trusted in place of a bundle.
    #[error("there is no caBundle, and this system has no certificate authorities")]
    NoSystemRoots,
}

impl From<TrustError> for InvalidConfig {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::NoCertificate => Self::NoCertificate,
            TrustError::NoSystemRoots => Self::NoSystemRoots,
        }
    }
}

impl ClientConfig {
    /// Whom to believe.
    pub(crate) fn trust(&self) -> Trust {
        match &*self.ca_bundle {
            [] => Trust::System,
            bundle => Trust::Bundle(bundle.to_vec()),
        }
    }

    /// Reads a `clientConfig` as it stands in an object that was validated.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`], if it does not say where the webhook is, or its bundle is not base64.
    pub fn from_object(config: &Map<String, Value>) -> Result<Self, InvalidConfig> {
        let text = |object: &Map<String, Value>, field: &str| {
            object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let target = match (config.get("service").and_then(Value::as_object), text(config, "url")) {
            (Some(service), _) => Target::Service(ServiceReference {
                namespace: text(service, "namespace"),
                name: text(service, "name"),
                path: text(service, "path"),
                port: port(service),
            }),
            (None, url) if url.is_empty() => return Err(InvalidConfig::NoTarget),
            (None, url) => Target::Url(url),
        };
        let bundle = STANDARD.decode(text(config, "caBundle")).map_err(|_| InvalidConfig::Bundle)?;
        Ok(Self { target, ca_bundle: bundle.into() })
    }
}

fn port(service: &Map<String, Value>) -> u16 {
    let port = service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    port.filter(|port| *port != 0).unwrap_or(DEFAULT_PORT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(config: &Value) -> Result<ClientConfig, InvalidConfig> {
        ClientConfig::from_object(config.as_object().expect("an object"))
    }

    #[test]
    fn what_a_client_config_says() {
        let url = read(&json!({"url": "https://example.org/x", "caBundle": "YQ=="})).expect("a URL");
        assert_eq!(url.target, Target::Url("https://example.org/x".into()));
        assert_eq!(url.ca_bundle, "a");

        let service = json!({"service": {"namespace": "ns", "name": "hook", "path": "/p", "port": 8443}});
        let reference = |path: &str, port| ServiceReference {
            namespace: "ns".into(),
            name: "hook".into(),
            path: path.into(),
            port,
        };
        assert_eq!(read(&service).expect("a service").target, Target::Service(reference("/p", 8443)));
        let service = json!({"service": {"namespace": "ns", "name": "hook"}});
        assert_eq!(read(&service).expect("a service").target, Target::Service(reference("", 443)));
        assert_eq!(reference("", 443).server_name(), "hook.ns.svc");

        assert_eq!(read(&json!({})), Err(InvalidConfig::NoTarget));
        assert_eq!(read(&json!({"url": "https://a", "caBundle": "-"})), Err(InvalidConfig::Bundle));
    }
}
