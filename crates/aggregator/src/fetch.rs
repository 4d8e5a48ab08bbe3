//! What another server is asked for, again and again, and what is remembered in between so that it need not say it twice.

use std::time::Duration;

use bytes::Bytes;
use concord_codec::{Options, decode};
use concord_meta::GroupVersion;
use concord_openapi::{ExtensionDocument, SwaggerPart};
use http::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_TYPE, ETAG},
};
use tokio::task::spawn_blocking;

use crate::{
    discovered,
    remote::{Answer, MASTERS, Question, Remote},
};

const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
const DISCOVERY_LIMIT: usize = 3 * 1024 * 1024;
/// Both versions of the aggregated form, the newer one first.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
/// Upstream waits for a minute; nobody waits here, but what hangs is given up.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest document of a kube-apiserver has four megabytes.
const DOCUMENT_LIMIT: usize = 32 * 1024 * 1024;

/// The resources of a server.
#[derive(Default)]
pub(crate) struct DiscoverySource {
    /// What the aggregated document was, with its tag.
    known: Option<(String, Bytes)>,
}

impl DiscoverySource {
    /// The resources of a version, as a list in JSON.
    pub(crate) async fn ask(&mut self, remote: &Remote, version: &GroupVersion) -> Result<Bytes, String> {
        let question = Question {
            method: Method::GET,
            path: "/apis",
            user: "system:kube-aggregator",
            groups: MASTERS,
            accept: AGGREGATED,
            known: self.known.as_ref().map(|(tag, _)| tag.as_str()),
            timeout: DISCOVERY_TIMEOUT,
            limit: DISCOVERY_LIMIT,
        };
        let answer = remote.ask(&question).await.map_err(|error| error.to_string())?;
        match (answer.status, &self.known) {
            (StatusCode::NOT_MODIFIED, Some((_, resources))) => Ok(resources.clone()),
            (StatusCode::SERVICE_UNAVAILABLE, _) => Err("the server is unavailable".to_owned()),
            (StatusCode::OK, _) if is_aggregated(&answer.headers) => {
                let resources =
                    discovered::aggregated(&answer.body, version).map_err(|error| error.to_string())?;
                self.known = tag(&answer.headers).map(|tag| (tag, resources.clone()));
                Ok(resources)
            }
            _ => {
                self.known = None;
                ask_legacy(remote, version).await
            }
        }
    }
}

/// What servers say that know nothing of the aggregated form.
async fn ask_legacy(remote: &Remote, version: &GroupVersion) -> Result<Bytes, String> {
    let path = format!("/apis/{version}");
    let question = Question {
        method: Method::GET,
        path: &path,
        user: "system:kube-aggregator",
        groups: &[],
        accept: "application/json",
        known: None,
        timeout: DISCOVERY_TIMEOUT,
        limit: DISCOVERY_LIMIT,
    };
    let answer = remote.ask(&question).await.map_err(|error| error.to_string())?;
    if answer.status != StatusCode::OK {
        return Err(format!("{path} answers with {}", answer.status));
    }
    discovered::legacy(&answer.body).map_err(|error| error.to_string())
}

fn is_aggregated(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let has = |parameter: &str| content_type.split(';').any(|part| part.trim() == parameter);
    has("g=apidiscovery.k8s.io") && has("as=APIGroupDiscoveryList") && (has("v=v2") || has("v=v2beta1"))
}

fn tag(headers: &HeaderMap) -> Option<String> {
    headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The OpenAPI documents of a server.
#[derive(Default)]
pub(crate) struct DocumentSource {
    leaf: Option<Leaf>,
    swagger: Option<Swagger>,
}

/// The document of version 3.
struct Leaf {
    /// Where it was: another hash is another address.
    url: String,
    tag: Option<String>,
    document: ExtensionDocument,
}

/// The document of version 2.
struct Swagger {
    tag: Option<String>,
    part: SwaggerPart,
}

impl DocumentSource {
    /// The document of a version. Whether a server has one of version 3 is asked each time: it may have been upgraded.
    pub(crate) async fn ask(
        &mut self,
        remote: &Remote,
        version: &GroupVersion,
    ) -> Result<ExtensionDocument, String> {
        let index = get(remote, "/openapi/v3", None).await?;
        match index.status {
            StatusCode::NOT_FOUND => {
                self.leaf = None;
                self.read_swagger(remote, version).await?;
                let swagger = self.swagger.as_ref().ok_or("there is no document")?;
                Ok(ExtensionDocument::converted(&swagger.part))
            }
            StatusCode::OK => {
                let url = leaf_url(&index.body, version)?;
                self.read_leaf(remote, version, url).await?;
                // A server that says everything in version 3 may have stopped to speak version 2.
                if let Err(error) = self.read_swagger(remote, version).await {
                    tracing::debug!(error, %version, "There is no document of version 2.");
                }
                let leaf = self.leaf.as_ref().ok_or("there is no document")?;
                let swagger = self.swagger.as_ref().map(|swagger| &swagger.part);
                Ok(leaf.document.clone().with_swagger(swagger))
            }
            other => Err(format!("/openapi/v3 answers with {other}")),
        }
    }

    async fn read_leaf(
        &mut self,
        remote: &Remote,
        version: &GroupVersion,
        url: String,
    ) -> Result<(), String> {
        let known = self.leaf.as_ref();
        let has_hash = url.contains("hash=");
        if has_hash && known.is_some_and(|known| known.url == url) {
            return Ok(());
        }
        let answer = get(remote, &url, known.and_then(|known| known.tag.as_deref())).await?;
        match (answer.status, &mut self.leaf) {
            (StatusCode::NOT_MODIFIED, Some(leaf)) => leaf.url = url,
            (StatusCode::OK, _) => {
                let tag = tag(&answer.headers);
                let version = version.clone();
                let document = spawn_blocking(move || ExtensionDocument::read(&answer.body, &version)).await;
                let document = document.map_err(|error| error.to_string())?;
                let document = document.map_err(|error| error.to_string())?;
                self.leaf = Some(Leaf { url, tag, document });
            }
            (other, _) => return Err(format!("{url} answers with {other}")),
        }
        Ok(())
    }

    async fn read_swagger(&mut self, remote: &Remote, version: &GroupVersion) -> Result<(), String> {
        let known = self.swagger.as_ref().and_then(|swagger| swagger.tag.as_deref());
        let answer = get(remote, "/openapi/v2", known).await?;
        match answer.status {
            StatusCode::NOT_MODIFIED if self.swagger.is_some() => Ok(()),
            StatusCode::OK => {
                let tag = tag(&answer.headers);
                let version = version.clone();
                let part = spawn_blocking(move || SwaggerPart::read(&answer.body, &version)).await;
                let part = part.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
                self.swagger = Some(Swagger { tag, part });
                Ok(())
            }
            other => Err(format!("/openapi/v2 answers with {other}")),
        }
    }
}

async fn get(remote: &Remote, path: &str, known: Option<&str>) -> Result<Answer, String> {
    let question = Question {
        method: Method::GET,
        path,
        user: "system:aggregator",
        groups: &[],
        accept: "application/json",
        known,
        timeout: DOCUMENT_TIMEOUT,
        limit: DOCUMENT_LIMIT,
    };
    remote.ask(&question).await.map_err(|error| error.to_string())
}

/// Where the index says that the document of a version is. It can only be below the place of all documents: nobody sends
/// this server anywhere else.
fn leaf_url(index: &[u8], version: &GroupVersion) -> Result<String, String> {
    let index = decode(index, &Options::default()).map_err(|error| error.to_string())?.object;
    let key = format!("apis/{version}");
    let url = index.get("paths").and_then(|paths| paths.get(&key)?.get("serverRelativeURL")?.as_str());
    let url = url.ok_or_else(|| format!("the index has no {key}"))?;
    let path = url.split('?').next().unwrap_or_default();
    match path == format!("/openapi/v3/{key}") {
        true => Ok(url.to_owned()),
        false => Err(format!("the index says that {key} is at {url}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_where_they_belong() {
        let version = GroupVersion::new("a.io", "v1");
        let url = |url: &str| {
            let index = json!({"paths": {"apis/a.io/v1": {"serverRelativeURL": url}, "apis/apps/v1": {}}});
            leaf_url(index.to_string().as_bytes(), &version)
        };
        let good = "/openapi/v3/apis/a.io/v1?hash=A";
        assert_eq!(url(good).as_deref(), Ok(good));
        for bad in [
            "",
            "//evil/x",
            "/apis/apps/v1",
            "/openapi/v3/apis/apps/v1",
            "https://evil/openapi/v3/apis/a.io/v1",
        ] {
            assert!(url(bad).is_err(), "{bad}");
        }
        for index in ["", "[]", "{}", r#"{"paths":{"apis/a.io/v1":{}}}"#, r#"{"Paths":["apis/a.io/v1"]}"#] {
            assert!(leaf_url(index.as_bytes(), &version).is_err(), "{index}");
        }
    }

    #[test]
    fn the_aggregated_form_is_known_by_its_type() {
        let is = |text: &str| {
            is_aggregated(&HeaderMap::from_iter([(CONTENT_TYPE, text.parse().expect("a value"))]))
        };
        assert!(is("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"));
        assert!(is("application/json; as=APIGroupDiscoveryList; v=v2beta1; g=apidiscovery.k8s.io"));
        assert!(!is("application/json"));
        assert!(!is("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList"));
    }
}
