//! The two users of a flood: service accounts, whom servers keep waiting as they do everybody else.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::Method;
use rand::RngExt as _;
use serde_json::{Value, json};

use crate::{
    client::{Call, Connection, JSON, Server},
    kubeconfig::Access,
    scan,
};

/// The shortest life that servers give a token.
const LEAST_LIFE: Duration = Duration::from_secs(600);
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Two service accounts that may read everything, and nothing more.
pub(super) struct Users {
    administrator: Server,
    name: String,
    /// Of the quiet one, and of the one who floods.
    pub(super) tokens: [String; 2],
}

impl Users {
    /// Makes them, with tokens that last for longer than `time`.
    pub(super) async fn create(administrator: Server, time: Duration) -> Result<Self> {
        let name = format!("concord-bench-{:08x}", rand::rng().random::<u32>());
        let mut users = Self { administrator, name, tokens: Default::default() };
        match users.fill(time).await {
            Ok(()) => Ok(users),
            Err(error) => {
                // What is wrong is what made it fail; that not everything is there to be removed follows from it.
                users.remove().await.ok();
                Err(error.context("cannot make users: the user of the kubeconfig must be allowed to"))
            }
        }
    }

    async fn fill(&mut self, time: Duration) -> Result<()> {
        let mut connection = self.administrator.connect().await?;
        let names = self.names();
        let metadata = |name: &str| json!({"metadata": {"name": name}});
        let mut role = metadata(&self.name);
        role["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
        post(&mut connection, ROLES, &role).await?;
        for (name, token) in names.iter().zip(&mut self.tokens) {
            post(&mut connection, ACCOUNTS, &metadata(name)).await?;
            *token = request_token(&mut connection, name, time).await?;
        }
        let subject = |name: &String| json!({"kind": "ServiceAccount", "namespace": "default", "name": name});
        let mut binding = metadata(&self.name);
        binding["subjects"] = names.iter().map(subject).collect();
        binding["roleRef"] =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.name});
        post(&mut connection, BINDINGS, &binding).await.map(drop)
    }

    fn names(&self) -> [String; 2] {
        ["quiet", "flood"].map(|who| format!("{}-{who}", self.name))
    }

    /// Takes away everything that was made.
    pub(super) async fn remove(&self) -> Result<()> {
        let mut connection = self.administrator.connect().await?;
        let accounts = self.names().map(|name| format!("{ACCOUNTS}/{name}"));
        let others = [BINDINGS, ROLES].map(|collection| format!("{collection}/{}", self.name));
        for path in others.iter().chain(&accounts) {
            let call = Call { method: Method::DELETE, ..Call::get(path) };
            let answer = connection.expect(call).await.with_context(|| format!("cannot delete {path}"))?;
            scan::drain(answer.into_body()).await?;
        }
        Ok(())
    }
}

async fn post(connection: &mut Connection, path: &str, object: &Value) -> Result<Value> {
    let call = Call::with_body(Method::POST, path, JSON, Bytes::from(object.to_string()));
    let answer = connection.expect(call).await.with_context(|| format!("POST {path}"))?;
    Ok(concord_codec::decode(&scan::whole(answer.into_body()).await?, &concord_codec::Options::default())?
        .object
        .into())
}

async fn request_token(connection: &mut Connection, account: &str, time: Duration) -> Result<String> {
    let seconds = (2 * time).max(LEAST_LIFE).as_secs();
    let path = format!("{ACCOUNTS}/{account}/token");
    let answer = post(connection, &path, &json!({"spec": {"expirationSeconds": seconds}})).await?;
    answer["status"]["token"].as_str().map(ToOwned::to_owned).context("the server gave no token")
}

/// The same server for somebody with a token.
pub(super) fn with_token(access: &Access, token: &str) -> Access {
    let mut access = access.clone();
    access.token = Some(token.to_owned());
    if let Some(tls) = &mut access.tls {
        // A certificate would go before the token.
        tls.identity = None;
    }
    access
}
