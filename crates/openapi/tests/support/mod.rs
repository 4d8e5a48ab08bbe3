//! A server of documents without a server.

#[allow(dead_code, reason = "not every test uses it")]
pub(crate) mod exemptions;
#[allow(dead_code, reason = "not every test uses it")]
pub(crate) mod structure;
#[allow(dead_code, reason = "not every test uses it")]
pub(crate) mod validator;

use std::{path::PathBuf, sync::Arc};

use concord_apis::{RuntimeConfig, Settings, api_set};
use concord_endpoints::ApiSet;
use concord_openapi::{Contents, OPENID, OpenApi};
use concord_server::{Handler as _, full};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use serde_json::{Map, Value};

/// Documents about what `set` gives.
pub(crate) fn openapi(set: impl Fn() -> Arc<ApiSet> + Send + Sync + 'static) -> OpenApi {
    openapi_with(set, concord_builtins::annotations)
}

/// Documents with these texts.
pub(crate) fn openapi_with(
    set: impl Fn() -> Arc<ApiSet> + Send + Sync + 'static,
    annotations: fn() -> Map<String, Value>,
) -> OpenApi {
    openapi_of("1.36", set, annotations)
}

/// Documents of a release.
pub(crate) fn openapi_of(
    release: &str,
    set: impl Fn() -> Arc<ApiSet> + Send + Sync + 'static,
    annotations: fn() -> Map<String, Value>,
) -> OpenApi {
    let contents = Contents {
        release: release.to_owned(),
        annotations,
        definitions: Box::new(|_| None),
        services: OPENID.iter().collect(),
    };
    OpenApi::new(set, contents)
}

/// Documents about every version there is.
#[allow(dead_code, reason = "not every test uses it")]
pub(crate) fn everything() -> OpenApi {
    let runtime_config = RuntimeConfig::parse(&["api/all=true".to_owned()]).expect("valid");
    let set = Arc::new(api_set(&Settings { runtime_config, ..Settings::default() }));
    openapi(move || set.clone())
}

/// The status, headers and body of an answer.
pub(crate) async fn ask(
    openapi: &OpenApi,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, HeaderMap, Vec<u8>) {
    let mut request = http::Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = openapi.handle(request.body(full("")).expect("a request")).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    (parts.status.as_u16(), parts.headers, bytes.to_vec())
}

/// A document.
#[allow(dead_code, reason = "not every test uses it")]
pub(crate) async fn get(openapi: &OpenApi, path: &str) -> Value {
    let (status, _, body) = ask(openapi, path, &[]).await;
    assert_eq!(status, 200, "{path}");
    serde_json::from_slice(&body).expect("JSON")
}

/// The keys of all documents.
#[allow(dead_code, reason = "not every test uses it")]
pub(crate) async fn keys(openapi: &OpenApi) -> Vec<String> {
    let index = get(openapi, "/openapi/v3").await;
    index["paths"].as_object().expect("paths").keys().cloned().collect()
}

/// Where upstream's documents are.
#[allow(dead_code, reason = "not every test uses it")]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn specifications() -> Option<PathBuf> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kubernetes-v1.36/openapi-spec");
    if !path.is_dir() {
        println!("skipped: there is no ../shared/data");
        return None;
    }
    Some(path)
}
