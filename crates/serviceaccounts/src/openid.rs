use arc_swap::ArcSwap;
use async_trait::async_trait;
use bytes::Bytes;
use concord_meta::{Reason, Status, StatusDetails};
use concord_server::{Accept, Handler, Request, Response, respond_status, with_body};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode, Uri,
    header::{ACCEPT, CACHE_CONTROL},
};
use serde::Serialize;

use crate::{Config, Error, VerificationKeys, keys::KeySet};

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

/// Tells others how to check tokens themselves: OpenID Connect Discovery.
pub struct OpenId {
    issuer: String,
    jwks_uri: String,
    documents: ArcSwap<Documents>,
}

struct Documents {
    configuration: Bytes,
    keys: Bytes,
}

/// The members that relying parties need, in upstream's order.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'static str; 1],
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: Vec<&'static str>,
}

impl OpenId {
    /// The documents about these keys. They say that the keys are at `jwks_uri`, or else on the server at `address`.
    ///
    /// # Errors
    ///
    /// [`Error::Discovery`] for an issuer that no relying party would accept. Tokens work without these documents.
    pub fn new(
        config: &Config,
        keys: &VerificationKeys,
        jwks_uri: Option<&str>,
        address: &str,
    ) -> Result<Self, Error> {
        let issuer = config.issuer();
        check_issuer(issuer)?;
        let at_address = format!("https://{address}{KEYS}");
        let jwks_uri = jwks_uri.unwrap_or(&at_address);
        if !jwks_uri.starts_with("https://") {
            return Err(Error::Discovery(format!("jwksURI requires https scheme, parsed as: {jwks_uri}")));
        }
        let documents = ArcSwap::from_pointee(Documents::new(issuer, jwks_uri, keys)?);
        Ok(Self { issuer: issuer.to_owned(), jwks_uri: jwks_uri.to_owned(), documents })
    }

    /// Tells of these keys from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Discovery`]; the documents are then as before.
    pub fn replace_keys(&self, keys: &VerificationKeys) -> Result<(), Error> {
        self.documents.store(Documents::new(&self.issuer, &self.jwks_uri, keys)?.into());
        Ok(())
    }

    /// Whether a path is one of those it answers.
    #[must_use]
    pub fn answers(path: &str) -> bool {
        [CONFIGURATION, KEYS].contains(&without_slash(path))
    }

    /// The paths, for the index of the server.
    #[must_use]
    pub fn paths() -> [String; 2] {
        [CONFIGURATION, KEYS].map(str::to_owned)
    }
}

impl Documents {
    fn new(issuer: &str, jwks_uri: &str, keys: &VerificationKeys) -> Result<Self, Error> {
        let mut algorithms: Vec<_> = keys.all().iter().map(|key| key.algorithm().as_str()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let metadata = Metadata {
            issuer,
            jwks_uri,
            response_types_supported: ["id_token"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: algorithms,
        };
        let encode = |value: Result<Vec<u8>, serde_json::Error>| {
            value.map(Bytes::from).map_err(|error| Error::Discovery(error.to_string()))
        };
        Ok(Self {
            configuration: encode(serde_json::to_vec(&metadata))?,
            keys: encode(serde_json::to_vec(&KeySet::new(keys.all())))?,
        })
    }
}

fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// An issuer must be one that OpenID Connect allows.
fn check_issuer(issuer: &str) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::Discovery(format!("issuer URL {why}, got: {issuer}")));
    if issuer.contains('#') {
        return refuse("may not include a fragment");
    }
    let Ok(url) = issuer.parse::<Uri>() else { return refuse("must be a URL") };
    if url.scheme_str() != Some("https") {
        return refuse("must use https scheme");
    }
    if url.query().is_some_and(|query| !query.is_empty()) {
        return refuse("may not include a query");
    }
    Ok(())
}

/// Whether a client wants this type, or anything.
fn accepts(headers: &HeaderMap, content_type: &str) -> bool {
    let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else { return true };
    let mut types = accept.split(',').map(|item| item.split(';').next().unwrap_or_default().trim());
    accept.is_empty() || types.any(|wanted| wanted == "*/*" || wanted == content_type)
}

fn not_acceptable(content_type: &str) -> Status {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {content_type}");
    let mut status = Status::failure(406, Reason::NOT_ACCEPTABLE, message);
    status.details = Some(Box::new(StatusDetails::default()));
    status
}

#[async_trait]
impl Handler for OpenId {
    async fn handle(&self, request: Request) -> Response {
        if request.method() != Method::GET {
            return respond_status(&Status::method_not_allowed(), &Accept::of(&request));
        }
        let documents = self.documents.load();
        let (content_type, body) = match without_slash(request.uri().path()) {
            KEYS => ("application/jwk-set+json", &documents.keys),
            _ => ("application/json", &documents.configuration),
        };
        if !accepts(request.headers(), content_type) {
            return respond_status(&not_acceptable(content_type), &Accept::of(&request));
        }
        let mut response = with_body(StatusCode::OK, content_type, body.clone());
        // The only answers of the server that anybody may keep: keys are known for a while before they sign.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        response
    }
}

#[cfg(test)]
mod tests;
