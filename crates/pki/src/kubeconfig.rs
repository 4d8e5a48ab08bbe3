use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_codec::encode_yaml;
use serde_json::json;

use crate::{
    AdminPki, Error,
    files::{self, PRIVATE},
};

/// What the cluster is called in the file.
const CLUSTER: &str = "concord";
/// Who uses it, by kubeadm's name.
const USER: &str = "kubernetes-admin";

/// A file that lets Kubernetes clients use a server as its administrator. Everything is in it: it can be
/// copied elsewhere, and must be kept as safe as a key.
pub struct Kubeconfig(String);

impl Kubeconfig {
    /// For the server at `url`.
    #[must_use]
    pub fn new(url: &str, admin: &AdminPki) -> Self {
        let encode = |pem: &str| BASE64_STANDARD.encode(pem);
        let context = format!("{USER}@{CLUSTER}");
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": CLUSTER,
                "cluster": { "server": url, "certificate-authority-data": encode(&admin.ca) },
            }],
            "users": [{
                "name": USER,
                "user": {
                    "client-certificate-data": encode(&admin.pair.certificate),
                    "client-key-data": encode(&admin.pair.key),
                },
            }],
            "contexts": [{ "name": context, "context": { "cluster": CLUSTER, "user": USER } }],
            "current-context": context,
        });
        let mut yaml = Vec::new();
        encode_yaml(&config, &mut yaml);
        Self(String::from_utf8_lossy(&yaml).into_owned())
    }

    /// The text of the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Writes the file, readable by its owner only, unless it is there and the same. Says whether it wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write(&self, path: &Path) -> Result<bool, Error> {
        if files::read(path)?.as_deref() == Some(&self.0) && files::is_private(path)? {
            return Ok(false);
        }
        files::replace(path, &self.0, PRIVATE)?;
        Ok(true)
    }
}
