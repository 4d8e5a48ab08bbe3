//! Which path is answered by what.

use async_trait::async_trait;
use concord_meta::Status;
use http::{Method, StatusCode};
use serde::Serialize;

use crate::{
    Accept, Version,
    health::HealthEndpoints,
    http::{Handler, Request, Response, indented_json, text},
    respond_status,
};

/// The innermost handler.
pub(crate) struct Routes {
    health: HealthEndpoints,
    version: Version,
}

/// What `/` answers.
#[derive(Serialize)]
struct RootPaths {
    paths: Vec<String>,
}

impl Routes {
    pub(crate) fn new(health: HealthEndpoints, version: Version) -> Self {
        Self { health, version }
    }

    fn index(&self) -> Response {
        let mut paths: Vec<_> = self.health.paths().collect();
        paths.push("/version".to_owned());
        paths.sort();
        indented_json(&RootPaths { paths })
    }
}

#[async_trait]
impl Handler for Routes {
    async fn handle(&self, request: Request) -> Response {
        match request.uri().path() {
            // Upstream answers the index and health to any method.
            "/" | "/index.html" => self.index(),
            "/version" | "/version/" if request.method() == Method::GET => indented_json(&self.version),
            "/version" | "/version/" => respond_status(&Status::method_not_allowed(), &Accept::of(&request)),
            path => match self.health.answer(path, request.uri().query().unwrap_or_default()).await {
                Some(response) => response,
                None => not_found(),
            },
        }
    }
}

/// Upstream answers a path that no part of the server knows in plain text, also below `/api` and `/apis`;
/// only a known group version answers with a `Status`.
fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        HealthChecks,
        http::testing::{read, request},
        version::sample,
    };

    async fn answer(method: &str, path: &str) -> (u16, String) {
        let routes = Routes::new(HealthChecks::new().endpoints(), sample());
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
            "/healthz", "/healthz/ping", "/livez", "/livez/ping", "/readyz", "/readyz/ping", "/version"
        ]});
        assert_eq!(index, expected);
    }
}
