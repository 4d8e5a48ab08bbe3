//! What an APIService says, read once.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use concord_codec::{Options, decode};
use concord_endpoints::Priority;
use concord_meta::GroupVersion;
use concord_registry::{Object, metadata};
use serde_json::Value;

/// The label that says who looks after an APIService.
pub(crate) const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The port of a Service whose reference names none.
const DEFAULT_PORT: u16 = 443;

/// Who looks after an APIService.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Managed {
    /// Whoever wrote it.
    ByHand,
    /// The server, when it starts.
    OnStart,
    /// The server, all the time.
    Always,
}

impl Managed {
    /// The value of the label.
    pub(crate) fn label(self) -> Option<&'static str> {
        match self {
            Self::ByHand => None,
            Self::OnStart => Some("onstart"),
            Self::Always => Some("true"),
        }
    }
}

/// An APIService: who serves a version of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiService {
    /// `version.group`
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: GroupVersion,
    pub(crate) priority: Priority,
    /// Who serves it; `None` for this server itself.
    pub(crate) backend: Option<Backend>,
    pub(crate) managed: Managed,
    /// Whether its condition says that it can be reached.
    pub(crate) is_available: bool,
    /// Whether it says that it is this server's own.
    pub(crate) is_told_local: bool,
}

/// A server behind a Service, and whom to believe that it is that server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Backend {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
    /// PEM; those that the system trusts if empty.
    pub(crate) ca_bundle: Bytes,
    pub(crate) insecure_skip_tls_verify: bool,
}

impl ApiService {
    /// What tells its server from all others, now and after a restart; nothing for this server itself. Whom to believe that
    /// it is that server does not.
    pub(crate) fn owner(&self) -> Option<String> {
        let Backend { namespace, name, port, .. } = self.backend.as_ref()?;
        Some(format!("{} {} {namespace}/{name}:{port}", self.uid, self.name))
    }

    /// Reads an APIService as it is stored. `None` for what is none.
    pub(crate) fn read(stored: &[u8]) -> Option<Self> {
        Self::of(&decode(stored, &Options::default()).ok()?.object)
    }

    fn of(object: &Object) -> Option<Self> {
        let spec = object.get("spec")?.as_object()?;
        let metadata = metadata(object);
        let managed = metadata.labels().and_then(|labels| labels.get(MANAGED)?.as_str());
        Some(Self {
            name: metadata.name().to_owned(),
            uid: metadata.uid().to_owned(),
            version: GroupVersion::new(text(spec, "group"), text(spec, "version")),
            priority: Priority {
                group: number(spec, "groupPriorityMinimum"),
                version: number(spec, "versionPriority"),
            },
            backend: spec.get("service").and_then(Value::as_object).map(|of| Backend::of(of, spec)),
            managed: match managed {
                Some("onstart") => Managed::OnStart,
                Some("true") => Managed::Always,
                _ => Managed::ByHand,
            },
            is_available: available(object).is_some_and(|available| available["status"] == "True"),
            is_told_local: available(object).is_some_and(|available| available["reason"] == "Local"),
        })
    }
}

impl Backend {
    fn of(service: &Object, spec: &Object) -> Self {
        let port = service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        Self {
            namespace: text(service, "namespace").to_owned(),
            name: text(service, "name").to_owned(),
            port: port.unwrap_or(DEFAULT_PORT),
            ca_bundle: STANDARD.decode(text(spec, "caBundle")).unwrap_or_default().into(),
            insecure_skip_tls_verify: spec.get("insecureSkipTLSVerify") == Some(&Value::Bool(true)),
        }
    }

    /// What its certificate must be for.
    pub(crate) fn server_name(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Object, name: &str) -> i32 {
    object.get(name).and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok()).unwrap_or_default()
}

fn available(object: &Object) -> Option<&Value> {
    let conditions = object.get("status").and_then(|status| status.get("conditions")?.as_array());
    conditions.into_iter().flatten().find(|condition| condition["type"] == "Available")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Option<ApiService> {
        ApiService::read(value.to_string().as_bytes())
    }

    #[test]
    fn what_an_api_service_says() {
        let service = read(&json!({
            "metadata": {"name": "v1.example.com", "uid": "u", "labels": {MANAGED: "onstart"}},
            "spec": {
                "group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
                "service": {"namespace": "ns", "name": "api", "port": 8443}, "caBundle": "YQ==",
            },
            "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Available", "status": "True"}]},
        }));
        let service = service.expect("an APIService");
        assert_eq!((service.version.to_string().as_str(), service.uid.as_str()), ("example.com/v1", "u"));
        assert_eq!(service.priority, Priority { group: 1000, version: 10 });
        assert_eq!(service.managed, Managed::OnStart);
        assert!(service.is_available);
        let backend = service.backend.expect("a Service");
        assert_eq!((backend.server_name().as_str(), backend.port), ("api.ns.svc", 8443));
        assert_eq!((&backend.ca_bundle[..], backend.insecure_skip_tls_verify), (&b"a"[..], false));
    }

    #[test]
    fn what_is_missing_has_a_default() {
        let service = read(&json!({
            "metadata": {"name": "v1."},
            "spec": {"version": "v1", "service": {"name": "a"}, "insecureSkipTLSVerify": true},
        }));
        let service = service.expect("an APIService");
        assert!(!service.is_available && service.managed == Managed::ByHand);
        let backend = service.backend.expect("a Service");
        assert!(backend.port == 443 && backend.insecure_skip_tls_verify && backend.ca_bundle.is_empty());
        let local = read(&json!({"metadata": {}, "spec": {"version": "v1", "service": null}}));
        assert_eq!(local.expect("an APIService").backend, None);
        assert_eq!(read(&json!({"metadata": {}})), None);
        assert_eq!(ApiService::read(b"torn"), None);
    }
}
