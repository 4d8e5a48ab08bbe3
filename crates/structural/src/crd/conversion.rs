//! How objects get from one version to another.

use std::collections::BTreeSet;

use concord_meta::{
    field::{BadValue, Error, Path},
    names as rules,
};
use serde_json::Value;

use super::{
    Options,
    spec::{Spec, one_of},
};
use crate::{formats::url, props::Props};

/// The versions of ConversionReview that the server speaks.
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];

pub(super) fn validate(spec: &Spec<'_>, options: &Options<'_>, path: &Path) -> Vec<Error> {
    let Some(conversion) = spec.conversion() else { return Vec::new() };
    let mut errors = Vec::new();
    let (strategy, strategy_path) = (conversion.text("strategy"), path.child("strategy"));
    if strategy != "None" && spec.preserves_unknown_fields() {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(Error::invalid(&strategy_path, BadValue::named(strategy), detail));
    }
    errors.extend(one_of(&strategy_path, strategy, &["None", "Webhook"]));
    let webhook = conversion.schema("webhook");
    let config = webhook.and_then(|webhook| webhook.schema("clientConfig"));
    let config_path = path.child("webhookClientConfig");
    let reviews_path = path.child("conversionReviewVersions");
    if strategy == "Webhook" {
        match config {
            None => errors.push(Error::required(&config_path, "required when strategy is set to Webhook")),
            Some(config) => errors.extend(client_config(config, options, &config_path)),
        }
        let demanded = options.recognized_review_version;
        errors.extend(review_versions(webhook, demanded, &reviews_path));
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(Error::forbidden(&config_path, detail));
        }
        if webhook.is_some_and(|webhook| webhook.has("conversionReviewVersions")) {
            errors.push(Error::forbidden(&reviews_path, detail));
        }
    }
    errors
}

/// Whether a definition's list of review versions is none to be demanded better of.
pub(super) fn has_good_review_versions(conversion: Option<Props<'_>>) -> bool {
    let webhook = conversion.and_then(|conversion| conversion.schema("webhook"));
    let mut versions =
        webhook.into_iter().flat_map(|webhook| webhook.list("conversionReviewVersions")).peekable();
    versions.peek().is_none() || versions.any(|version| REVIEW_VERSIONS.iter().any(|known| version == known))
}

fn review_versions(webhook: Option<Props<'_>>, demanded: bool, path: &Path) -> Vec<Error> {
    let versions: Vec<_> =
        webhook.into_iter().flat_map(|webhook| webhook.texts("conversionReviewVersions")).collect();
    if versions.is_empty() {
        return vec![Error::required(path, "")];
    }
    let (mut errors, mut seen) = (Vec::new(), BTreeSet::new());
    for (index, version) in versions.iter().enumerate() {
        if !seen.insert(*version) {
            errors.push(Error::invalid(&path.index(index), *version, "duplicate version"));
            continue;
        }
        let problems = rules::dns1035_label(version).into_iter();
        errors.extend(problems.map(|problem| Error::invalid(&path.index(index), *version, problem)));
    }
    if demanded && !versions.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(Error::invalid(path, BadValue::strings(&versions), detail));
    }
    errors
}

fn client_config(config: Props<'_>, options: &Options<'_>, path: &Path) -> Vec<Error> {
    let mut errors = match (config.optional_text("url"), config.schema("service")) {
        (Some(url), None) => url_errors(url, &path.child("url")),
        (None, Some(service)) => service_errors(service, &path.child("service")),
        _ => vec![Error::required(path, "exactly one of url or service is required")],
    };
    let bundle = config.text("caBundle");
    if !bundle.is_empty() && !options.invalid_ca_bundle && !is_ca_bundle(bundle) {
        let detail = "unable to load root certificates: unable to parse bytes as PEM block";
        errors.push(Error::invalid(&path.child("caBundle"), BadValue::named(bundle), detail));
    }
    errors
}

/// Whether base64 text holds a certificate in PEM. The certificate itself is read when it is used.
pub(super) fn is_ca_bundle(text: &str) -> bool {
    let Ok(bytes) = concord_schema::decode_base64(text.as_bytes()) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let Some((_, after)) = text.split_once("-----BEGIN CERTIFICATE-----") else { return false };
    let Some((body, _)) = after.split_once("-----END CERTIFICATE-----") else { return false };
    let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    // A certificate is a DER sequence.
    concord_schema::decode_base64(body.as_bytes()).is_ok_and(|der| der.first() == Some(&0x30))
}

fn url_errors(text: &str, path: &Path) -> Vec<Error> {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match url::parse(text) {
        Ok(url) => url,
        Err(error) => return vec![Error::required(path, format!("url must be a valid URL: {error}{FORM}"))],
    };
    let mut errors = Vec::new();
    if url.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(Error::invalid(path, &url.scheme, detail));
    }
    if url.host.is_empty() {
        errors.push(Error::invalid(path, url.host, format!("host must be specified{FORM}")));
    }
    if let Some(user) = url.user {
        errors.push(Error::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !url.fragment.is_empty() {
        errors.push(Error::invalid(path, url.fragment, "fragments are not permitted in the URL"));
    }
    if !url.query.is_empty() {
        errors.push(Error::invalid(path, url.query, "query parameters are not permitted in the URL"));
    }
    errors
}

/// Upstream hands the name over as the namespace and the other way round, so the path of an error about one is that
/// of the other.
fn service_errors(service: Props<'_>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    for (field, shown) in [("namespace", "name"), ("name", "namespace")] {
        if service.text(field).is_empty() {
            errors.push(Error::required(&path.child(shown), ""));
        }
    }
    let port = service.0.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(Error::invalid(&path.child("port"), port, detail));
    }
    errors.extend(service_path(service.text("path"), &path.child("path")));
    errors
}

fn service_path(text: &str, path: &Path) -> Vec<Error> {
    match text {
        "" | "/" => return Vec::new(),
        "//" => return vec![Error::invalid(path, text, "segment[0] may not be empty")],
        _ => {}
    }
    let mut errors = Vec::new();
    if !text.starts_with('/') {
        errors.push(Error::invalid(path, text, "must start with a '/'"));
    }
    // Upstream drops the first byte, whatever it is.
    let first = text.chars().next().map_or(0, char::len_utf8);
    let rest = &text[first..];
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            errors.push(Error::invalid(path, text, format!("segment[{index}] may not be empty")));
            continue;
        }
        let problems = rules::dns1123_subdomain(step).into_iter();
        errors.extend(
            problems.map(|problem| Error::invalid(path, text, format!("segment[{index}]: {problem}"))),
        );
    }
    errors
}
