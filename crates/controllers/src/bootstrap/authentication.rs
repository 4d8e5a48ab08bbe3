//! What extension API servers have to know about how this server finds out who its clients are.

use std::{sync::Arc, time::SystemTime};

use concord_meta::{Reason, Status};
use concord_registry::{Object, Registry, Resources};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    AGAIN, LOADING,
    objects::MANAGER,
    writer::{Found, Wanted, Writer},
};
use crate::backoff::Backoff;

const CLIENT_CA: &str = "client-ca-file";
const PROXY_CA: &str = "requestheader-client-ca-file";

/// How this server finds out who its clients are: what the ConfigMap `kube-system/extension-apiserver-authentication`
/// tells extension API servers, so that they believe the same certificates and the same proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterAuthentication {
    /// The authorities that sign the certificates of clients, in PEM.
    pub client_ca: String,
    /// The authorities that sign the certificates of proxies, in PEM; empty if there are none.
    pub request_header_ca: String,
    /// Whom those certificates must name; none of them means anybody.
    pub allowed_names: Vec<String>,
    /// The headers with the name of the user.
    pub username_headers: Vec<String>,
    /// The headers with the uid of the user.
    pub uid_headers: Vec<String>,
    /// The headers with the groups of the user.
    pub group_headers: Vec<String>,
    /// What the names of headers begin with that say what else is known about the user.
    pub extra_header_prefixes: Vec<String>,
}

impl ClusterAuthentication {
    fn lists(&self) -> [(&'static str, &[String]); 5] {
        [
            ("requestheader-username-headers", &self.username_headers),
            ("requestheader-uid-headers", &self.uid_headers),
            ("requestheader-group-headers", &self.group_headers),
            ("requestheader-extra-headers-prefix", &self.extra_header_prefixes),
            ("requestheader-allowed-names", &self.allowed_names),
        ]
    }

    /// What the ConfigMap has to say: what it said, which may be about other servers, and what is so here. Authorities
    /// that have ended are left out.
    fn combined(&self, current: &Map<String, Value>, now: SystemTime) -> Map<String, Value> {
        let text = |key: &str| current.get(key).and_then(Value::as_str).unwrap_or_default();
        let client_ca = concord_pki::combine_bundles(&[text(CLIENT_CA), &self.client_ca], now);
        let proxy_ca = concord_pki::combine_bundles(&[text(PROXY_CA), &self.request_header_ca], now);
        let mut data = Map::new();
        if !client_ca.is_empty() {
            data.insert(CLIENT_CA.to_owned(), client_ca.into());
        }
        if proxy_ca.is_empty() {
            return data;
        }
        data.insert(PROXY_CA.to_owned(), proxy_ca.into());
        for (key, own) in self.lists() {
            let list = union(text(key), own);
            // Servers that know nothing of uids must not find the key.
            if !(list.is_empty() && key == "requestheader-uid-headers") {
                data.insert(key.to_owned(), Value::from(list).to_string().into());
            }
        }
        data
    }
}

/// The items of a list in JSON and those of another one, each once. A list that cannot be read has none.
fn union(text: &str, own: &[String]) -> Vec<String> {
    let said = concord_codec::decode_value(text.as_bytes(), concord_codec::Limits::default()).ok();
    let said = said.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut union: Vec<String> = Vec::new();
    for item in said.chain(own.iter().map(String::as_str)) {
        if !union.iter().any(|known| known == item) {
            union.push(item.to_owned());
        }
    }
    union
}

/// Keeps the ConfigMap up to date.
pub(crate) struct ClusterAuthenticationTrust {
    writer: Writer,
    own: watch::Receiver<ClusterAuthentication>,
}

impl ClusterAuthenticationTrust {
    pub(crate) fn new(
        registry: Arc<Registry>,
        resources: Arc<dyn Resources>,
        own: watch::Receiver<ClusterAuthentication>,
    ) -> Self {
        Self { writer: Writer { registry, resources }, own }
    }

    /// Goes on until it is cancelled: once a minute, as upstream, and whenever something changes here.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.look_after()).await;
    }

    async fn look_after(&mut self) {
        let mut backoff = Backoff::new();
        loop {
            let own = self.own.borrow_and_update().clone();
            match self.sync(&own).await {
                Ok(()) => {
                    backoff.reset();
                    tokio::select! {
                        () = tokio::time::sleep(AGAIN) => {}
                        Ok(()) = self.own.changed() => {}
                    }
                }
                Err(error) => {
                    if error.reason != Reason::CONFLICT {
                        tracing::warn!(%error, "What extension API servers must know could not be written.");
                    }
                    backoff.pause().await;
                }
            }
        }
    }

    async fn sync(&self, own: &ClusterAuthentication) -> Result<(), Status> {
        let loaded = self.writer.registry.replica().not_older_than(0, LOADING).await;
        loaded.map_err(Status::internal_error)?;
        let wanted = Wanted {
            group: "",
            version: "v1",
            plural: "configmaps",
            namespace: "kube-system",
            name: "extension-apiserver-authentication".to_owned(),
            manager: MANAGER,
            object: json!({"data": own.combined(&Map::new(), SystemTime::now())}),
        };
        let Some(found) = self.writer.ensure(&wanted).await? else { return Ok(()) };
        let Found { resource, current: Some(mut config_map), .. } = found else { return Ok(()) };
        let nothing = Object::new();
        let said = config_map.get("data").and_then(Value::as_object).unwrap_or(&nothing);
        let data = own.combined(said, SystemTime::now());
        if *said == data {
            return Ok(());
        }
        config_map.insert("data".to_owned(), data.into());
        self.writer.replace(&wanted, &resource, config_map).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn what_other_servers_said_stays() {
        assert_eq!(union(r#"["a","b"]"#, &list(&["b", "c"])), ["a", "b", "c"]);
        assert_eq!(union("", &list(&["b", "b"])), ["b"]);
        assert_eq!(union("nonsense", &[]), [""; 0]);
        assert_eq!(union("[1]", &list(&["x"])), ["x"]);
    }

    #[test]
    fn without_proxies_there_is_nothing_about_them() {
        let own = ClusterAuthentication {
            username_headers: list(&["X-Remote-User"]),
            request_header_ca: "no certificate".to_owned(),
            ..ClusterAuthentication::default()
        };
        assert_eq!(own.combined(&Map::new(), SystemTime::now()), Map::new());
    }
}
