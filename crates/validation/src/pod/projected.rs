//! Volumes that bring several sources together.

use concord_meta::names;

use super::{Options, sources::key_to_path, volumes::downward_api_file};
use crate::{
    certificates::{SHORTEST, longest, signer_name, user_annotations},
    internal,
    labels::{self, Values, selector},
    node::Node,
    rules::local_non_reserved_path,
};

const CONFLICT: &str = "conflicting duplicate paths";

/// The paths that are taken already.
struct Paths<'v> {
    volume: Node<'v>,
    taken: Vec<&'v str>,
}

impl<'v> Paths<'v> {
    fn take(&mut self, path: &'v str, shown: &str) {
        match self.taken.contains(&path) {
            true => self.volume.invalid(shown, CONFLICT),
            false => self.taken.push(path),
        }
    }
}

pub(super) fn projected<'v>(volume: Node<'v>, options: &Options<'v>) {
    volume.get("defaultMode").file_mode();
    let mut paths = Paths { volume, taken: Vec::new() };
    for source in volume.get("sources").items() {
        let mut count = 0;
        let mut given = |name: &'static str| {
            let found = source.has(name);
            count += usize::from(found);
            found.then(|| source.get(name))
        };
        for files in [given("secret"), given("configMap")].into_iter().flatten() {
            keys(files, &mut paths);
        }
        if let Some(files) = given("downwardAPI") {
            for file in files.get("items").items() {
                downward_api_file(file, files);
                if !file.str("path").is_empty() {
                    paths.take(file.str("path"), file.str("path"));
                }
            }
        }
        if let Some(token) = given("serviceAccountToken") {
            service_account_token(token, volume, options);
        }
        if let Some(bundle) = given("clusterTrustBundle") {
            trust_bundle(bundle, &mut paths);
        }
        if let Some(certificate) = given("podCertificate") {
            pod_certificate(certificate, &mut paths);
        }
        if count > 1 {
            source.forbidden("may not specify more than 1 volume type per source");
        }
    }
}

fn keys<'v>(files: Node<'v>, paths: &mut Paths<'v>) {
    files.need(&["name"]);
    for item in files.get("items").items() {
        key_to_path(item);
        if !item.str("path").is_empty() {
            paths.take(item.str("path"), files.str("name"));
        }
    }
}

fn service_account_token<'v>(token: Node<'v>, volume: Node<'v>, options: &Options<'v>) {
    let seconds = token.get("expirationSeconds");
    let number = seconds.int().unwrap_or_default();
    if number < 600 {
        seconds.invalid(number, "may not specify a duration less than 10 minutes");
    }
    if number > 1 << 32 {
        seconds.invalid(number, "may not specify a duration larger than 2^32 seconds");
    }
    let path = volume.child("path");
    match token.str("path") {
        "" => path.required(""),
        _ if options.non_local_token_path => {}
        text => local_non_reserved_path(path, text),
    }
}

fn trust_bundle<'v>(bundle: Node<'v>, paths: &mut Paths<'v>) {
    match [bundle.has("name"), bundle.has("signerName")] {
        [true, true] => {
            let shown = internal::shown("ClusterTrustBundleProjection", bundle.value());
            bundle.invalid(shown, "only one of name and signerName may be used");
        }
        [true, false] => bundle_name(bundle),
        [false, true] => {
            let signer = bundle.get("signerName");
            if signer.text().is_empty() {
                signer.required("must be a valid signer name");
            }
            signer_name(signer, signer.text());
            selector(bundle.get("labelSelector"), Values::Labels);
        }
        [false, false] => bundle.required("either name or signerName must be specified"),
    }
    let path = bundle.get("path");
    if path.text().is_empty() {
        path.required("");
    }
    local_non_reserved_path(path, path.text());
    paths.take(path.text(), path.text());
}

/// The name of a bundle: that of its signer, with colons for slashes, and another colon before the rest, if it has one.
fn bundle_name(bundle: Node<'_>) {
    let name = bundle.get("name");
    if name.text().is_empty() {
        name.required("must be a valid object name");
    }
    let rest = name.text().rsplit(':').next().unwrap_or_default();
    let problems = names::dns1123_subdomain(rest);
    for problem in problems {
        name.invalid(name.text(), format!("not a valid clustertrustbundlename: {problem}"));
    }
    let selector = bundle.get("labelSelector");
    if selector.is_set() {
        selector.invalid(labels::shown(selector), "labelSelector must be unset if name is specified");
    }
}

const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

fn pod_certificate<'v>(certificate: Node<'v>, paths: &mut Paths<'v>) {
    let signer = certificate.get("signerName");
    signer_name(signer, signer.text());
    user_annotations(certificate.get("userAnnotations"));
    let key_type = certificate.get("keyType");
    if !KEY_TYPES.contains(&key_type.text()) {
        key_type.not_supported(key_type.text(), &KEY_TYPES);
    }
    let seconds = certificate.get("maxExpirationSeconds");
    if let Some(number) = seconds.int() {
        let longest = longest(signer.text());
        if number < SHORTEST {
            seconds.invalid(number, format!("if provided, maxExpirationSeconds must be >= {SHORTEST}"));
        }
        if number > longest {
            seconds.invalid(number, format!("if provided, maxExpirationSeconds must be <= {longest}"));
        }
    }
    let files = ["credentialBundlePath", "keyPath", "certificateChainPath"].map(|name| certificate.get(name));
    for path in files.into_iter().filter(|path| !path.text().is_empty()) {
        local_non_reserved_path(path, path.text());
        paths.take(path.text(), path.text());
    }
    if files.iter().all(|path| path.text().is_empty()) {
        certificate
            .required("specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
    }
}
