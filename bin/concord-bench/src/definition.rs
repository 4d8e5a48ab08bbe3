//! A kind of our own, with a schema, defaults and rules: what operators define, and servers have to work for.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    client::{Call, Connection, JSON, Refusal, Server},
    scan,
};

/// Its group.
pub(crate) const GROUP: &str = "concord-bench.example.com";
/// What its objects are called.
pub(crate) const KIND: &str = "Record";
const PLURAL: &str = "records";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Between two looks at what is awaited.
const PAUSE: Duration = Duration::from_millis(100);

/// Nothing of the rest of an object is given, so that everything has its default; every rule looks at what is there.
fn definition() -> Value {
    let number = |default: u32| json!({"type": "integer", "minimum": 0, "maximum": 1000, "default": default});
    let port = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 63, "pattern": "^[a-z]+$"}, "port": number(80)},
    });
    let spec = json!({
        "type": "object", "required": ["payload", "stamp"],
        "properties": {
            "payload": {"type": "string", "maxLength": 1_000_000},
            "stamp": {"type": "string", "minLength": 1, "maxLength": 63},
            "mode": {"type": "string", "enum": ["auto", "manual"], "default": "auto"},
            "least": number(1), "wanted": number(3), "most": number(5),
            "ports": {
                "type": "array", "maxItems": 16, "items": port,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "default": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
            },
        },
        "x-kubernetes-validations": [
            {"rule": "self.least <= self.wanted && self.wanted <= self.most", "message": "out of bounds"},
            {"rule": "self.ports.all(p, p.port > 0)", "message": "a port is missing"},
            {"rule": "self.mode == 'auto' || self.stamp.startsWith('m')", "message": "not by hand"},
        ],
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": "record", "kind": KIND, "listKind": "RecordList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// Defines it, and waits until objects can be created.
pub(crate) async fn create(server: &Server, collection: &str, time_limit: Duration) -> Result<()> {
    let mut connection = server.connect().await?;
    let post = async |connection: &mut Connection, path: &str, body: &Value| {
        let call = Call::with_body(Method::POST, path, JSON, Bytes::from(body.to_string()));
        scan::drain(connection.expect(call).await?.into_body()).await.map(drop)
    };
    let defined = post(&mut connection, DEFINITIONS, &definition()).await;
    defined.context("cannot define a kind: the user of the kubeconfig must be allowed to")?;
    let first = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": KIND, "metadata": {"name": "first"},
        "spec": {"payload": "", "stamp": "first"},
    });
    let begun = Instant::now();
    while let Err(failure) = post(&mut connection, collection, &first).await {
        let waiting = [StatusCode::NOT_FOUND, StatusCode::TOO_MANY_REQUESTS];
        let refused = failure.downcast_ref::<Refusal>();
        if !refused.is_some_and(|refusal| waiting.contains(&refusal.status)) || begun.elapsed() > time_limit {
            return Err(failure);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Whether it was there already, or may not be made.
pub(crate) fn is_of_others(failure: &anyhow::Error) -> bool {
    let status = failure.downcast_ref::<Refusal>().map(|refusal| refusal.status);
    matches!(status, Some(StatusCode::CONFLICT | StatusCode::FORBIDDEN))
}

/// Deletes it with all its objects, and waits until it is gone.
pub(crate) async fn remove(server: &Server, time_limit: Duration) -> Result<()> {
    let mut connection = server.connect().await?;
    let path = format!("{DEFINITIONS}/{PLURAL}.{GROUP}");
    let begun = Instant::now();
    let mut call = Call { method: Method::DELETE, ..Call::get(&path) };
    loop {
        match connection.expect(call).await {
            Ok(answer) => drop(scan::drain(answer.into_body()).await?),
            Err(failure) => {
                let refused = failure.downcast_ref::<Refusal>();
                return match refused.is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND) {
                    true => Ok(()),
                    false => Err(failure),
                };
            }
        }
        if begun.elapsed() > time_limit {
            bail!("the definition {PLURAL}.{GROUP} is left behind: delete it yourself");
        }
        tokio::time::sleep(PAUSE).await;
        call = Call::get(&path);
    }
}
