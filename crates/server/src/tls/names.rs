use std::{net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use x509_parser::{extensions::GeneralName, prelude::FromDer as _, prelude::X509Certificate};

use super::Identity;

/// A certificate for clients that ask for one of its names. It can be replaced while the server runs.
#[derive(Debug)]
pub struct NamedIdentity {
    /// What the operator wants it to be used for; its own names if there are none.
    patterns: Vec<String>,
    current: ArcSwap<Named>,
}

#[derive(Debug)]
struct Named {
    certificate: Arc<CertifiedKey>,
    names: Vec<String>,
}

impl NamedIdentity {
    /// For names, which may begin with `*.`; for those in the certificate if there are none here.
    #[must_use]
    pub fn new(certificate: Arc<CertifiedKey>, patterns: Vec<String>) -> Self {
        let patterns = patterns.into_iter().map(|pattern| pattern.to_lowercase()).collect();
        let current = ArcSwap::from_pointee(Named::new(certificate));
        Self { patterns, current }
    }

    /// Shows another certificate from now on.
    pub fn replace(&self, certificate: Arc<CertifiedKey>) {
        self.current.store(Arc::new(Named::new(certificate)));
    }

    /// The certificate, if it is for this name; by what the operator says or by what it says itself.
    fn find(&self, name: &str, explicit: bool) -> Option<Arc<CertifiedKey>> {
        let current = self.current.load();
        let names = match (explicit, self.patterns.is_empty()) {
            (true, _) => &self.patterns,
            (false, true) => &current.names,
            (false, false) => return None,
        };
        names.iter().any(|of| of == name).then(|| current.certificate.clone())
    }
}

impl Named {
    fn new(certificate: Arc<CertifiedKey>) -> Self {
        let names = certificate.cert.first().map(|first| names(first)).unwrap_or_default();
        Self { certificate, names }
    }
}

/// The names that a certificate is for, without addresses: nobody asks for a certificate by those.
fn names(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let common = common.filter(|name| name.parse::<IpAddr>().is_err());
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let alternative = alternative.into_iter().flat_map(|names| &names.value.general_names);
    let alternative = alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    });
    common.chain(alternative).map(str::to_lowercase).collect()
}

/// Shows the certificate that a client asks for.
#[derive(Debug)]
pub(super) struct ByName {
    pub(super) named: Vec<Arc<NamedIdentity>>,
    /// For everybody else.
    pub(super) default: Arc<Identity>,
}

impl ByName {
    /// A whole name counts more than one with a wildcard, and what the operator says more than what a certificate says of
    /// itself; among equals the first counts.
    fn find(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let name = name.to_lowercase();
        let wildcard = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let find = |name: &str| {
            [true, false]
                .iter()
                .find_map(|explicit| self.named.iter().find_map(|identity| identity.find(name, *explicit)))
        };
        find(&name).or_else(|| find(&wildcard?))
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.server_name().and_then(|name| self.find(name));
        Some(named.unwrap_or_else(|| self.default.0.load_full()))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rustls::{crypto::aws_lc_rs::sign::any_supported_type, pki_types::PrivateKeyDer};

    use super::*;

    fn certificate(common: &str, names: &[&str]) -> Arc<CertifiedKey> {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, common);
        let certificate = params.self_signed(&key).expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let key = any_supported_type(&key).expect("a key that can sign");
        Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key))
    }

    #[test]
    fn the_best_match_is_shown() {
        let own = |names: &[&str]| certificate("127.0.0.1", names);
        let certificates = [
            own(&["Own.example.com", "10.0.0.1"]),
            own(&["own.example.com"]),
            own(&["*.example.com"]),
            own(&[]),
        ];
        let patterns: [&[&str]; 4] =
            [&[], &["said.example.com", "both.example.com"], &[], &["both.example.com", "*.said.org"]];
        let named = certificates.iter().zip(patterns).map(|(certificate, patterns)| {
            let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            Arc::new(NamedIdentity::new(certificate.clone(), patterns))
        });
        let default = Arc::new(Identity::new(own(&[])));
        let by_name = ByName { named: named.collect(), default };
        for (name, expected) in [
            ("own.example.com", Some(0)),
            ("OWN.Example.com", Some(0)),
            ("said.example.com", Some(1)),
            ("both.example.com", Some(1)),
            ("other.example.com", Some(2)),
            ("a.other.example.com", None),
            ("example.com", None),
            ("a.said.org", Some(3)),
            ("127.0.0.1", None),
            ("", None),
        ] {
            let found = by_name.find(name);
            let found = found.map(|found| certificates.iter().position(|one| Arc::ptr_eq(one, &found)));
            assert_eq!(found.flatten(), expected, "{name}");
        }
        by_name.named[0].replace(certificate("new.example.com", &[]));
        assert!(by_name.find("new.example.com").is_some(), "its common name");
        assert!(Arc::ptr_eq(&by_name.find("own.example.com").expect("a wildcard"), &certificates[2]));
    }
}
