//! Which path is answered by what.

use std::sync::Arc;

use async_trait::async_trait;
use concord_meta::Status;
use http::{Method, StatusCode, Uri};
use serde::Serialize;

use crate::{
    Accept, Metrics, Served, Version,
    health::HealthEndpoints,
    http::{Handler, Request, Response, indented_json, text},
    respond_status,
};

/// The innermost handler: what every server answers, and beyond that the APIs.
pub(crate) struct Routes {
    health: HealthEndpoints,
    version: Version,
    metrics: Arc<Metrics>,
    apis: Apis,
}

/// What a program gives the server to serve.
pub(crate) struct Apis {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) paths: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
}

/// What `/` answers.
#[derive(Serialize)]
struct RootPaths {
    paths: Vec<String>,
}

impl Routes {
    pub(crate) fn new(health: HealthEndpoints, version: Version, metrics: Arc<Metrics>, apis: Apis) -> Self {
        Self { health, version, metrics, apis }
    }

    fn index(&self) -> Response {
        let mut paths: Vec<_> = self.health.paths().collect();
        paths.extend(["/metrics", "/metrics/slis", "/version"].map(str::to_owned));
        paths.extend((self.apis.paths)());
        paths.sort();
        paths.dedup();
        indented_json(&RootPaths { paths })
    }

    async fn health(&self, uri: &Uri) -> Option<Response> {
        let mut response = self.health.answer(uri.path(), uri.query().unwrap_or_default()).await?;
        response.extensions_mut().insert(Served);
        Some(response)
    }
}

#[async_trait]
impl Handler for Routes {
    async fn handle(&self, request: Request) -> Response {
        match request.uri().path() {
            // By far the most requests are for the APIs, and none of them is the server's own.
            path if path.starts_with("/api") => self.apis.handler.handle(request).await,
            // Upstream answers the index, metrics and health to any method.
            "/" | "/index.html" => self.index(),
            "/metrics" => self.metrics.scrape(),
            "/metrics/slis" => self.health.slis(),
            "/version" | "/version/" if request.method() == Method::GET => indented_json(&self.version),
            "/version" | "/version/" => respond_status(&Status::method_not_allowed(), &Accept::of(&request)),
            _ => {
                let uri = request.uri().clone();
                match self.health(&uri).await {
                    Some(response) => response,
                    None => self.apis.handler.handle(request).await,
                }
            }
        }
    }
}

/// Answers for APIs that are not there.
pub(crate) struct NotFound;

#[async_trait]
impl Handler for NotFound {
    async fn handle(&self, _: Request) -> Response {
        not_found()
    }
}

/// The answer to a path that no part of the server knows: plain text, also below `/api` and `/apis`; only
/// a known group version answers with a `Status`.
#[must_use]
pub fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        HealthChecks,
        http::testing::{Echo, read, request},
        version::sample,
    };

    async fn answer(method: &str, path: &str) -> (u16, String) {
        answer_with(Arc::new(NotFound), method, path).await
    }

    async fn answer_with(handler: Arc<dyn Handler>, method: &str, path: &str) -> (u16, String) {
        let paths = Arc::new(|| vec!["/apis".to_owned(), "/api".to_owned(), "/livez".to_owned()]);
        let apis = Apis { handler, paths };
        let routes = Routes::new(HealthChecks::new().endpoints(), sample(), Arc::default(), apis);
        read(routes.handle(request(method, path)).await).await
    }

    #[tokio::test]
    async fn version_has_upstreams_fields_in_their_order() {
        let (status, body) = answer("GET", "/version").await;
        assert_eq!(status, 200);
        let names: Vec<&str> = body.lines().filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(
            names,
            [
                "major",
                "minor",
                "emulationMajor",
                "emulationMinor",
                "minCompatibilityMajor",
                "minCompatibilityMinor",
                "gitVersion",
                "gitCommit",
                "gitTreeState",
                "buildDate",
                "goVersion",
                "compiler",
                "platform"
            ]
        );
        assert!(body.starts_with("{\n  \"major\": \"1\","), "{body}");
    }

    #[tokio::test]
    async fn version_is_only_for_reading() {
        for method in ["POST", "PUT", "DELETE", "HEAD"] {
            let (status, body) = answer(method, "/version").await;
            assert_eq!(status, 405, "{method}");
            assert!(body.contains(r#""reason":"MethodNotAllowed""#), "{body}");
        }
    }

    #[tokio::test]
    async fn unknown_paths_get_the_plain_answer() {
        for path in
            ["/nothing", "/api/v1/pods", "/apis", "/healthz/", "/healthz/none", "/versions", "//healthz"]
        {
            assert_eq!(answer("GET", path).await, (404, "404 page not found\n".to_owned()), "{path}");
        }
    }

    #[tokio::test]
    async fn the_index_lists_what_there_is() {
        let (status, body) = answer("GET", "/").await;
        assert_eq!(status, 200);
        let index: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        let expected = serde_json::json!({"paths": [
            "/api", "/apis", "/healthz", "/healthz/ping", "/livez", "/livez/ping", "/metrics", "/metrics/slis", "/readyz",
            "/readyz/ping", "/version"
        ]});
        assert_eq!(index, expected);
    }

    #[tokio::test]
    async fn the_apis_answer_everything_that_is_not_the_servers_own() {
        let own = ["/", "/version", "/livez", "/readyz/ping", "/metrics"];
        let theirs = ["/api", "/apis/a/b", "/openapi/v3", "/.well-known/x", "/nothing", "/livez/none"];
        for path in own {
            assert_ne!(answer_with(Arc::new(Echo), "GET", path).await.1, path);
        }
        for path in theirs {
            assert_eq!(answer_with(Arc::new(Echo), "GET", path).await, (200, path.to_owned()));
        }
    }

    #[tokio::test]
    async fn metrics_are_there_to_scrape() {
        let (status, body) = answer("GET", "/metrics").await;
        assert_eq!(status, 200);
        assert!(body.contains("# TYPE apiserver_current_inflight_requests gauge\n"), "{body}");
    }
}
