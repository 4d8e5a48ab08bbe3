//! Namespaces that are being deleted, on other servers: what they have there goes as well.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_codec::{Options, decode};
use concord_meta::GroupVersion;
use futures_util::{StreamExt as _, stream};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::{
    Aggregator,
    remote::{Answer, Question, Remote},
    service::ApiService,
};

/// Upstream's controller, which extension servers may know by its roles.
const USER: &str = "system:serviceaccount:kube-system:namespace-controller";
const GROUPS: &[&str] =
    &["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];

/// How long one request may take. The namespace is looked at again if it took longer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a list is read; a longer one is read in parts.
const LIMIT: usize = 16 * 1024 * 1024;
const PAGE: usize = 500;
/// How many servers, and how many objects of one resource, are worked on at once.
const AT_ONCE: usize = 8;

/// What is left of a namespace on other servers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RemoteContent {
    /// How many objects there are, by `plural.group`.
    pub objects: BTreeMap<String, usize>,
    /// How many of those that were looked at each finalizer is on.
    pub finalizers: BTreeMap<String, usize>,
    /// The versions of which it is not known what there is, and why.
    pub undiscovered: BTreeMap<String, String>,
    /// What went wrong, by `plural.group`.
    pub failures: BTreeMap<String, String>,
}

impl RemoteContent {
    fn add(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.undiscovered.extend(other.undiscovered);
        self.failures.extend(other.failures);
        for (finalizer, count) in other.finalizers {
            *self.finalizers.entry(finalizer).or_default() += count;
        }
    }
}

/// A resource whose objects go with their namespace.
#[derive(Debug, PartialEq, Eq)]
struct Deletable {
    plural: String,
    /// Whether all can be deleted at once.
    as_a_whole: bool,
}

/// Those among the resources of a version.
fn deletable(resources: &[u8]) -> Vec<Deletable> {
    let resources: Vec<Value> = serde_json::from_slice(resources).unwrap_or_default();
    let found = resources.iter().filter(|resource| resource["scope"] == "Namespaced");
    found
        .filter_map(|resource| {
            let verbs = resource["verbs"].as_array()?;
            let has = |verb: &str| verbs.iter().any(|candidate| candidate == verb);
            let plural = resource["resource"].as_str()?.to_owned();
            let as_a_whole = has("deletecollection");
            (has("list") && (has("delete") || as_a_whole)).then_some(Deletable { plural, as_a_whole })
        })
        .collect()
}

impl Aggregator {
    /// Has other servers delete everything that they have in a namespace, and says what is left.
    pub async fn empty(&self, namespace: &str) -> RemoteContent {
        let services: Vec<Arc<ApiService>> = self.registered().remote().cloned().collect();
        let services = stream::iter(services)
            .map(|service| async move { self.empty_version(&service, namespace).await });
        let mut services = services.buffer_unordered(AT_ONCE);
        let mut content = RemoteContent::default();
        while let Some(left) = services.next().await {
            content.add(left);
        }
        content
    }

    async fn empty_version(&self, service: &ApiService, namespace: &str) -> RemoteContent {
        let mut content = RemoteContent::default();
        let version = &service.version;
        let (Some(resources), Some(remote)) = (self.fresh_resources(service), self.remote(service)) else {
            // Upstream's words.
            let why = format!("stale GroupVersion discovery: {version}");
            content.undiscovered.insert(version.to_string(), why);
            return content;
        };
        for resource in deletable(&resources) {
            let name = format!("{}.{}", resource.plural, version.group);
            let place = Place { remote: &remote, version, namespace, resource: &resource };
            match place.empty().await {
                Ok(objects) if objects.count == 0 => {}
                Ok(objects) => {
                    content.objects.insert(name, objects.count);
                    for finalizer in objects.finalizers {
                        *content.finalizers.entry(finalizer).or_default() += 1;
                    }
                }
                Err(why) => drop(content.failures.insert(name, why)),
            }
        }
        content
    }
}

/// The objects of one resource in a namespace.
struct Place<'a> {
    remote: &'a Remote,
    version: &'a GroupVersion,
    namespace: &'a str,
    resource: &'a Deletable,
}

/// Some of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Objects {
    names: Vec<String>,
    /// How many there are at least.
    count: usize,
    /// With repetitions.
    finalizers: Vec<String>,
}

impl Place<'_> {
    /// Deletes them, and says what is left.
    async fn empty(&self) -> Result<Objects, String> {
        let there = self.list().await?;
        if there.count == 0 {
            return Ok(there);
        }
        if self.resource.as_a_whole {
            self.delete(&self.path()).await?;
        } else {
            let paths: Vec<String> =
                there.names.iter().map(|name| format!("{}/{name}", self.path())).collect();
            let deletions = stream::iter(paths).map(|path| async move { self.delete(&path).await });
            let outcomes: Vec<_> = deletions.buffer_unordered(AT_ONCE).collect().await;
            outcomes.into_iter().collect::<Result<(), String>>()?;
        }
        self.list().await
    }

    fn path(&self) -> String {
        let Self { version, namespace, resource, .. } = self;
        format!("/apis/{version}/namespaces/{namespace}/{}", resource.plural)
    }

    async fn delete(&self, path: &str) -> Result<(), String> {
        let answer = self.ask(Method::DELETE, &format!("{path}?propagationPolicy=Background")).await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(refused(status, &answer.body)),
        }
    }

    async fn list(&self) -> Result<Objects, String> {
        let answer = self.ask(Method::GET, &format!("{}?limit={PAGE}", self.path())).await?;
        match answer.status {
            StatusCode::OK => objects(&answer.body),
            // Also when it is said not to exist: its server said that it does, and may be in the middle of an upgrade.
            status => Err(refused(status, &answer.body)),
        }
    }

    async fn ask(&self, method: Method, path: &str) -> Result<Answer, String> {
        let question = Question {
            method,
            path,
            user: USER,
            groups: GROUPS,
            accept: "application/json",
            known: None,
            timeout: TIMEOUT,
            limit: LIMIT,
        };
        self.remote.ask(&question).await.map_err(|error| error.to_string())
    }
}

fn refused(status: StatusCode, body: &Bytes) -> String {
    let message = decode(body, &Options::default()).ok().and_then(|decoded| {
        let message = decoded.object.get("message")?.as_str()?;
        Some(message.to_owned())
    });
    message.unwrap_or_else(|| format!("the server answered with {status}"))
}

fn objects(body: &[u8]) -> Result<Objects, String> {
    let list = decode(body, &Options::default()).map_err(|error| error.to_string())?.object;
    let items = list.get("items").and_then(Value::as_array).ok_or("the answer is no list")?;
    let more = list.get("metadata").and_then(|metadata| metadata["remainingItemCount"].as_u64()).unwrap_or(0);
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let names = items.iter().filter_map(|item| text(&item["metadata"]["name"])).collect();
    let finalizers = items.iter().filter_map(|item| item["metadata"]["finalizers"].as_array()).flatten();
    let count = items.len().saturating_add(usize::try_from(more).unwrap_or(usize::MAX));
    Ok(Objects { names, count, finalizers: finalizers.filter_map(text).collect() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_goes_with_a_namespace() {
        let resource = |name: &str, scope: &str, verbs: &[&str]| json!({"resource": name, "scope": scope, "verbs": verbs});
        let resources = json!([
            resource("books", "Namespaced", &["list", "delete", "deletecollection"]),
            resource("shelves", "Cluster", &["list", "delete", "deletecollection"]),
            resource("pages", "Namespaced", &["list", "delete"]),
            resource("metrics", "Namespaced", &["get", "list"]),
            resource("reviews", "Namespaced", &["create"]),
            {"scope": "Namespaced"},
        ]);
        let found = deletable(resources.to_string().as_bytes());
        let found: Vec<_> = found.iter().map(|of| (of.plural.as_str(), of.as_a_whole)).collect();
        assert_eq!(found, [("books", true), ("pages", false)]);
        assert_eq!(deletable(b"torn"), []);
    }

    #[test]
    fn what_a_list_says() {
        let list = json!({"metadata": {"remainingItemCount": 3}, "items": [
            {"metadata": {"name": "a", "finalizers": ["x", "y"]}}, {"metadata": {"name": "b", "finalizers": ["x"]}}]});
        let found = objects(list.to_string().as_bytes()).expect("a list");
        assert_eq!((found.names.join(" "), found.count), ("a b".to_owned(), 5));
        assert_eq!(found.finalizers, ["x", "y", "x"]);
        assert!(objects(b"{}").is_err() && objects(b"<html>").is_err());
        let no = Bytes::from(r#"{"kind":"Status","message":"no"}"#);
        assert_eq!(refused(StatusCode::FORBIDDEN, &no), "no");
        assert_eq!(
            refused(StatusCode::BAD_GATEWAY, &Bytes::new()),
            "the server answered with 502 Bad Gateway"
        );
    }
}
