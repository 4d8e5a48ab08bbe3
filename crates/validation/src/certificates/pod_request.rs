//! Requests for certificates of pods.

use concord_meta::names;

use super::{pod_status, signer_name};
use crate::{
    internal,
    json::base64,
    keys::{self, Wrong},
    meta,
    node::{Node, Root},
    rules::{IMMUTABLE, qualified_name, same},
};

const MAX_UID: usize = 128;
const MAX_KEY: usize = 10 * 1024;
const MAX_ANNOTATIONS: usize = 256 * 1024;
/// Seconds: an hour at the least, and a day or 91 days at the most.
pub(crate) const SHORTEST: i64 = 60 * 60;
const LONGEST_OF_KUBERNETES: i64 = 24 * 60 * 60;
const LONGEST: i64 = 91 * 24 * 60 * 60;

pub(crate) fn pod_request(root: Root<'_>) {
    let spec = root.get("spec");
    let signer = spec.get("signerName");
    signer_name(signer, signer.text());
    user_annotations(spec.get("unverifiedUserAnnotations"));
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        identity(spec.get(name), spec.get(uid));
    }
    let seconds = spec.get("maxExpirationSeconds");
    let Some(number) = seconds.int() else { return seconds.required("must be set") };
    let longest = longest(signer.text());
    if !(SHORTEST..=longest).contains(&number) {
        seconds.invalid(number, format!("must be in the range [{SHORTEST}, {longest}]"));
    }
    key(spec);
}

/// The longest time that a signer's certificates are good for.
pub(crate) fn longest(signer: &str) -> i64 {
    let host = signer.split('/').next().unwrap_or_default();
    let of_kubernetes = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    if of_kubernetes { LONGEST_OF_KUBERNETES } else { LONGEST }
}

fn identity(name: Node<'_>, uid: Node<'_>) {
    name.check(names::dns1123_subdomain);
    if uid.text().is_empty() {
        uid.invalid("", "must not be empty");
    }
    if uid.text().len() > MAX_UID {
        uid.too_long(MAX_UID);
    }
}

/// Annotations for the signer; keys have a domain, in letters of either case.
pub(crate) fn user_annotations(annotations: Node<'_>) {
    for (key, _) in annotations.entries() {
        let key = key.to_lowercase();
        let problems = qualified_name(&key);
        match key.as_str() {
            "" => annotations.required(""),
            _ if problems.is_empty() && !key.contains('/') => {
                annotations.invalid(&*key, "must be a domain-prefixed key (such as \"acme.io/foo\")");
            }
            _ => problems.into_iter().for_each(|problem| annotations.invalid(&*key, problem)),
        }
    }
    let size: usize =
        annotations.entries().map(|(key, value)| key.len().saturating_add(value.text().len())).sum();
    if size > MAX_ANNOTATIONS {
        annotations.too_long(MAX_ANNOTATIONS);
    }
}

/// The key that is certified: in a request of the usual form, or by itself and with a proof, as it was before.
fn key(spec: Node<'_>) {
    let [request, key, proof] =
        ["stubPKCS10Request", "pkixPublicKey", "proofOfPossession"].map(|name| spec.get(name));
    match [request, key, proof].map(|node| !node.text().is_empty()) {
        [true, false, false] => stub_request(request),
        [false, true, true] => key_and_proof(key, proof, spec.str("podUID")),
        _ => spec.invalid_as_such(
            "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
        ),
    }
}

fn key_and_proof<'v>(key: Node<'v>, proof: Node<'v>, pod_uid: &str) {
    let [der, signature] = [key, proof].map(|node| base64(node.text()));
    for (node, bytes) in [(key, &der), (proof, &signature)] {
        if bytes.len() > MAX_KEY {
            return node.too_long(MAX_KEY);
        }
    }
    match keys::proven(&der, &signature, pod_uid.as_bytes()) {
        Ok(()) => {}
        Err(Wrong::Form) => key.wrong("must be a valid PKIX-serialized public key"),
        Err(Wrong::Kind) => key.wrong(KINDS),
        Err(Wrong::Curve(name)) => {
            key.invalid(&*format!("curve {name}"), "elliptic public keys must use curve P256 or P384");
        }
        Err(Wrong::Modulus(bits)) => modulus(key, bits),
        Err(Wrong::Proof) => proof.invalid_as_such("could not verify proof-of-possession signature"),
    }
}

fn stub_request(node: Node<'_>) {
    let der = base64(node.text());
    if der.len() > MAX_KEY {
        return node.too_long(MAX_KEY);
    }
    match keys::requested(&der) {
        Ok(_) => {}
        Err(Wrong::Form) => node.invalid_as_such("must be a valid PKCS#10 CSR"),
        Err(Wrong::Kind) => node.invalid_as_such(KINDS),
        Err(Wrong::Curve(name)) => {
            node.invalid(
                &*format!("curve {name}"),
                "elliptic public keys must use curve P256, P384, or P521",
            );
        }
        Err(Wrong::Modulus(bits)) => modulus(node, bits),
        Err(Wrong::Proof) => node.invalid_as_such("invalid signature"),
    }
}

const KINDS: &str = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";

fn modulus(node: Node<'_>, bits: usize) {
    node.invalid(&*format!("{bits}-bit modulus"), "RSA keys must have modulus size 3072 or 4096");
}

pub(crate) fn pod_request_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return pod_status::update(new, old);
    }
    let spec = new.get("spec");
    if !same(spec.value(), old.get("spec").value()) {
        spec.invalid(internal::shown("PodCertificateRequestSpec", spec.value()), IMMUTABLE);
    }
}
