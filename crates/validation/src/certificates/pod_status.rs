//! What a signer says to a request for a certificate of a pod.

use concord_meta::field::BadValue;
use serde_json::Value;
use x509_parser::certificate::X509Certificate;

use crate::{
    conditions::conditions,
    json::base64,
    keys,
    node::{Node, Root},
    pem,
    rules::same,
};

const OUTCOMES: [&str; 3] = ["Issued", "Denied", "Failed"];
const MAX_CHAIN: usize = 100 * 1024;
/// Seconds.
const HOUR: i64 = 60 * 60;
const TEN_MINUTES: i64 = 10 * 60;
const FIVE_MINUTES: u64 = 5 * 60;

pub(super) fn update<'v>(new: Root<'v>, old: Root<'v>) {
    let (status, before) = (new.get("status"), old.get("status"));
    let count = status.errors();
    outcomes(status.get("conditions"));
    conditions(status.get("conditions"));
    if status.errors() > count {
        return;
    }
    let has = |status: Node<'v>, outcomes: &[&str]| {
        status.get("conditions").items().any(|condition| outcomes.contains(&condition.str("type")))
    };
    let changed = !same(status.value(), before.value());
    if has(before, &OUTCOMES) {
        if changed {
            status.invalid_as_such("immutable after PodCertificateRequest is issued, denied, or failed");
        }
    } else if has(status, &["Denied", "Failed"]) {
        let mut others = status.object().into_iter().flatten().filter(|(name, _)| *name != "conditions");
        if others.any(|(_, value)| !matches!(value, Value::Null) && value != "") {
            status.invalid_as_such(
                "non-condition status fields must be empty when denying or failing the PodCertificateRequest",
            );
        }
    } else if has(status, &["Issued"]) {
        issued(status, old.get("spec"));
    } else if changed {
        status.invalid_as_such(
            "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"",
        );
    }
}

/// At most one outcome, which is so. Upstream writes the indexes as if they were names.
fn outcomes(all: Node<'_>) {
    const INDEXES: [&str; 8] = ["[0]", "[1]", "[2]", "[3]", "[4]", "[5]", "[6]", "[7]"];
    for (index, condition) in all.items().enumerate() {
        let at = all.child(INDEXES.get(index).copied().unwrap_or("[8]"));
        let (kind, status) = (condition.str("type"), condition.str("status"));
        if !OUTCOMES.contains(&kind) {
            at.child("type").not_supported(kind, &OUTCOMES);
            continue;
        }
        if index > 0 && all.items().take(index).any(|other| OUTCOMES.contains(&other.str("type"))) {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            at.child("type").invalid(kind, why);
        }
        if status != "True" {
            at.child("status").not_supported(BadValue::named(status), &["True"]);
        }
    }
}

/// What comes with a certificate. Upstream stops at the first thing that is wrong.
fn issued(status: Node<'_>, spec: Node<'_>) {
    let chain = status.get("certificateChain");
    if chain.text().len() > MAX_CHAIN {
        return chain.too_long(MAX_CHAIN);
    }
    let blocks = pem::blocks(chain.text());
    let Some(leaf) = blocks.first() else {
        return chain.invalid(chain.text(), "issued certificate chain must contain at least one certificate");
    };
    if leaf.label != "CERTIFICATE" {
        return chain.wrong("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
    }
    let Some(certificate) = keys::certificate(&leaf.content) else {
        return chain.wrong("leaf certificate does not parse as valid X.509");
    };
    let count = status.errors();
    dns_names(chain, &certificate);
    if !is_for_the_key(spec, &certificate) {
        return chain.wrong("leaf certificate was not issued to the requested public key");
    }
    times_are_set(status);
    if status.errors() > count || times(status, spec, &certificate).is_none() {
        return;
    }
    for block in blocks.iter().skip(1) {
        if block.label != "CERTIFICATE" {
            return chain.wrong("issued certificate chain must consist entirely of CERTFICATE PEM blocks");
        }
        if keys::certificate(&block.content).is_none() {
            return chain.wrong("intermediate certificate does not parse as valid X.509");
        }
    }
}

fn dns_names(chain: Node<'_>, certificate: &X509Certificate<'_>) {
    for name in keys::dns_names(certificate) {
        if name.is_empty() {
            chain.invalid(name, "leaf certificate should not contain empty DNSName");
        }
        if name.contains("..") {
            chain.invalid(name, "leaf certificate's DNSName should not contain '..'");
        }
        if name.starts_with('.') || name.ends_with('.') {
            chain.invalid(name, "leaf certificate's DNSName should not start or end with '.'");
        }
    }
}

fn is_for_the_key(spec: Node<'_>, certificate: &X509Certificate<'_>) -> bool {
    let wanted = match spec.str("stubPKCS10Request") {
        "" => Some(base64(spec.str("pkixPublicKey"))),
        request => keys::requested(&base64(request)).ok(),
    };
    wanted.is_some_and(|wanted| wanted == certificate.public_key().raw)
}

fn times_are_set(status: Node<'_>) {
    let consistent = "must be present and consistent with the issued certificate";
    let refreshed = "must be present and in the range [notbefore+10min, notafter-10min]";
    for (name, why) in [("notBefore", consistent), ("notAfter", consistent), ("beginRefreshAt", refreshed)] {
        if !status.has(name) {
            status.child(name).required(why);
        }
    }
}

/// Whether the times are those of the certificate and leave room to renew it; nothing if they do not.
fn times(status: Node<'_>, spec: Node<'_>, certificate: &X509Certificate<'_>) -> Option<()> {
    let [not_before, not_after, refresh] =
        ["notBefore", "notAfter", "beginRefreshAt"].map(|name| status.get(name));
    let [begin, end] =
        [certificate.validity().not_before, certificate.validity().not_after].map(|time| time.timestamp());
    let complain = |node: Node<'_>, why: &'static str| {
        node.wrong(why);
        None
    };
    if seconds(not_before.text()) != Some(begin) {
        return complain(not_before, "must be set to the NotBefore time encoded in the leaf certificate");
    }
    if status.now().is_some_and(|now| now.abs_diff(begin) >= FIVE_MINUTES) {
        return complain(not_before, "must be set to within 5 minutes of kube-apiserver's current time");
    }
    if seconds(not_after.text()) != Some(end) {
        return complain(not_after, "must be set to the NotAfter time encoded in the leaf certificate");
    }
    let (lifetime, longest) = (end.saturating_sub(begin), spec.num("maxExpirationSeconds"));
    let chain = status.child("certificateChain");
    let nanoseconds = lifetime.saturating_mul(1_000_000_000);
    if lifetime < HOUR {
        chain.invalid(nanoseconds, "leaf certificate lifetime must be >= 1 hour");
        return None;
    }
    if lifetime > longest {
        let why = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})");
        chain.invalid(nanoseconds, why);
        return None;
    }
    let refreshed = seconds(refresh.text())?;
    if refreshed < begin.saturating_add(TEN_MINUTES) {
        return complain(refresh, "must be at least 10 minutes after status.notBefore");
    }
    if refreshed > end.saturating_sub(TEN_MINUTES) {
        return complain(refresh, "must be at least 10 minutes before status.notAfter");
    }
    Some(())
}

/// The seconds since 1970 of a time as objects have it, `2026-01-02T03:04:05Z`.
fn seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    // Years that begin in March have their odd day at the end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_counted_from_1970() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-03-01T00:00:01Z", Some(1_772_323_201)),
            ("2026-03", None),
        ] {
            assert_eq!(super::seconds(text), seconds, "{text}");
        }
    }
}
