//! How connections are secured, and what browsers are told: the flags.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use concord_admission::re2;
use concord_pki::load_identity;
use concord_server::{Browsers, NamedIdentity, TlsOptions, TlsVersion};
use rustls::CipherSuite;

use crate::reload::Reloader;

#[derive(Debug, Args)]
#[command(next_help_heading = "Secure serving")]
pub(crate) struct TransportOptions {
    /// A certificate for clients that ask for certain names: the files of the certificate and of its key, and names that may
    /// begin with "*.", as CERT,KEY or CERT,KEY:NAME,NAME. Without names those in the certificate count. May be given more
    /// than once; a whole name counts more than one with a wildcard. Read again when the files change.
    #[arg(long, value_name = "CERT,KEY[:NAMES]", value_parser = named)]
    pub(crate) tls_sni_cert_key: Vec<Named>,
    /// The oldest version of TLS that clients may speak. There is none older than 1.2.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = MinVersion::Tls12)]
    pub(crate) tls_min_version: MinVersion,
    /// The ciphers of TLS 1.2, by their names, separated by commas; those of TLS 1.3 are always there [default: all that are
    /// any good].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = cipher)]
    pub(crate) tls_cipher_suites: Vec<Cipher>,
    /// Origins whose pages may call the server from a browser: regular expressions, separated by commas, each with something
    /// that holds the beginning (^ or //) and the end ($ or :) of a host, such as ^https://example\.com(:|$).
    #[arg(long, value_name = "REGEXES", value_delimiter = ',', value_parser = origin)]
    pub(crate) cors_allowed_origins: Vec<Arc<re2::Regex>>,
    /// What browsers are told about coming back over TLS alone, separated by commas: max-age=SECONDS, includeSubDomains,
    /// preload.
    #[arg(long, value_name = "DIRECTIVES", value_delimiter = ',', value_parser = directive)]
    pub(crate) strict_transport_security_directives: Vec<String>,
}

/// Versions by upstream's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MinVersion {
    /// Taken for 1.2.
    #[value(name = "VersionTLS10", hide = true)]
    Tls10,
    /// Taken for 1.2.
    #[value(name = "VersionTLS11", hide = true)]
    Tls11,
    #[value(name = "VersionTLS12")]
    Tls12,
    #[value(name = "VersionTLS13")]
    Tls13,
}

/// A certificate and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    certificate: PathBuf,
    key: PathBuf,
    names: Vec<String>,
}

fn named(text: &str) -> Result<Named, String> {
    let (files, names) = match text.split_once(':') {
        Some((_, names)) if names.trim().is_empty() => {
            return Err("empty names list is not allowed".to_owned());
        }
        Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    match files.split(',').map(str::trim).collect::<Vec<_>>()[..] {
        [certificate, key] => Ok(Named { certificate: certificate.into(), key: key.into(), names }),
        _ => Err("expected comma separated certificate and key file paths".to_owned()),
    }
}

/// A cipher of Go's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cipher {
    /// One that this server has.
    Known(CipherSuite),
    /// One that is always there.
    Fixed,
    /// One that it does not have; upstream calls most of them insecure.
    Missing(String),
}

const GCM_128: &str = "AES_128_GCM_SHA256";
const GCM_256: &str = "AES_256_GCM_SHA384";
const MISSING: [&str; 7] = [
    "AES_128_CBC_SHA",
    "AES_128_CBC_SHA256",
    "AES_256_CBC_SHA",
    "RC4_128_SHA",
    "3DES_EDE_CBC_SHA",
    GCM_128,
    GCM_256,
];

fn cipher(name: &str) -> Result<Cipher, String> {
    let unknown = || format!("Cipher suite {name} not supported or doesn't exist");
    let rest = name.strip_prefix("TLS_").ok_or_else(unknown)?;
    let Some((exchange, rest)) = rest.split_once("_WITH_") else {
        let fixed = [GCM_128, GCM_256, "CHACHA20_POLY1305_SHA256"].contains(&rest);
        return if fixed { Ok(Cipher::Fixed) } else { Err(unknown()) };
    };
    let known = match (exchange, rest) {
        ("ECDHE_ECDSA", GCM_128) => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ("ECDHE_ECDSA", GCM_256) => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ("ECDHE_ECDSA", "CHACHA20_POLY1305" | "CHACHA20_POLY1305_SHA256") => {
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        }
        ("ECDHE_RSA", GCM_128) => CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ("ECDHE_RSA", GCM_256) => CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ("ECDHE_RSA", "CHACHA20_POLY1305" | "CHACHA20_POLY1305_SHA256") => {
            CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
        }
        ("ECDHE_ECDSA" | "ECDHE_RSA" | "RSA", rest) if MISSING.contains(&rest) => {
            return Ok(Cipher::Missing(name.to_owned()));
        }
        _ => return Err(unknown()),
    };
    Ok(Cipher::Known(known))
}

/// What holds neither end of a host would also allow hosts that only contain it.
fn origin(pattern: &str) -> Result<Arc<re2::Regex>, String> {
    let regex = re2::compile(pattern).map_err(|error| error.to_string())?;
    let holds = |marks: [&str; 2]| marks.iter().any(|mark| pattern.contains(mark));
    if !holds(["^", "//"]) || !holds(["$", ":"]) {
        return Err("regular expression does not pin to start/end of host in the origin header".to_owned());
    }
    Ok(Arc::new(regex))
}

fn directive(text: &str) -> Result<String, String> {
    let is_age = text.strip_prefix("max-age=").is_some_and(|age| !age.contains('='));
    match text {
        "includeSubDomains" | "preload" => Ok(text.to_owned()),
        _ if is_age => Ok(text.to_owned()),
        _ => Err("allowed values: max-age=expireTime, includeSubDomains, preload".to_owned()),
    }
}

impl TransportOptions {
    /// How connections are secured; the files are read again when they change.
    pub(crate) fn tls(&self, reloader: &mut Reloader) -> anyhow::Result<TlsOptions> {
        let by_name = self.tls_sni_cert_key.iter().map(|named| named.open(reloader));
        let by_name = by_name.collect::<Result<_, _>>().context("--tls-sni-cert-key")?;
        let (min_version, older) = match self.tls_min_version {
            MinVersion::Tls13 => (TlsVersion::Tls13, false),
            version => (TlsVersion::Tls12, version != MinVersion::Tls12),
        };
        if older {
            tracing::warn!("--tls-min-version is taken for VersionTLS12: nothing older is spoken here.");
        }
        let mut cipher_suites = Vec::new();
        for cipher in &self.tls_cipher_suites {
            match cipher {
                Cipher::Known(suite) => cipher_suites.push(*suite),
                Cipher::Fixed => {}
                Cipher::Missing(name) => {
                    tracing::warn!(name, "A cipher of --tls-cipher-suites is not available and passed over.");
                }
            }
        }
        let chosen = !self.tls_cipher_suites.is_empty();
        if chosen && cipher_suites.is_empty() && min_version == TlsVersion::Tls12 {
            bail!(
                "--tls-cipher-suites has no cipher of TLS 1.2: add one, or set --tls-min-version=VersionTLS13"
            );
        }
        Ok(TlsOptions { min_version, cipher_suites, by_name })
    }

    /// What browsers are told.
    pub(crate) fn browsers(&self) -> Browsers {
        let patterns = self.cors_allowed_origins.clone();
        Browsers {
            hsts: self.strict_transport_security_directives.clone(),
            allowed_origins: (!patterns.is_empty()).then(|| {
                Arc::new(move |origin: &str| patterns.iter().any(|regex| regex.is_match(origin))) as _
            }),
        }
    }
}

impl Named {
    fn open(&self, reloader: &mut Reloader) -> anyhow::Result<Arc<NamedIdentity>> {
        let Self { certificate, key, names } = self.clone();
        let identity = Arc::new(NamedIdentity::new(load_identity(&certificate, &key)?, names));
        let same = identity.clone();
        reloader.watch("--tls-sni-cert-key", vec![certificate.clone(), key.clone()], move || {
            same.replace(load_identity(&certificate, &key)?);
            Ok(())
        });
        Ok(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_have_files_and_names() {
        let named = |text: &str| named(text).map(|named| (named.certificate, named.key, named.names));
        let files = || ("a.crt".into(), "a.key".into());
        let (certificate, key): (PathBuf, PathBuf) = files();
        assert_eq!(named("a.crt, a.key"), Ok((certificate.clone(), key.clone(), vec![])));
        let names = vec!["*.foo.com".to_owned(), "foo.com".to_owned()];
        assert_eq!(named("a.crt,a.key:*.foo.com, foo.com"), Ok((certificate, key, names)));
        for (text, complaint) in [
            ("a.crt", "expected comma"),
            ("a,b,c", "expected comma"),
            ("a,b: ", "empty names"),
            ("", "expected"),
        ] {
            assert!(named(text).expect_err(text).starts_with(complaint), "{text}");
        }
    }

    #[test]
    fn ciphers_have_gos_names() {
        let known = Cipher::Known(CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256);
        assert_eq!(cipher("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"), Ok(known));
        assert_eq!(cipher("TLS_AES_128_GCM_SHA256"), Ok(Cipher::Fixed));
        let missing = "TLS_RSA_WITH_AES_256_CBC_SHA";
        assert_eq!(cipher(missing), Ok(Cipher::Missing(missing.to_owned())));
        for name in ["", "AES", "TLS_", "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "tls_aes_128_gcm_sha256"] {
            let text = format!("Cipher suite {name} not supported or doesn't exist");
            assert_eq!(cipher(name), Err(text));
        }
    }

    #[test]
    fn origins_are_held_at_both_ends() {
        for good in [r"^https://example\.com(:|$)", r"//example\.com(:|$)", "^http://localhost:"] {
            assert!(origin(good).is_ok(), "{good}");
        }
        for (bad, complaint) in [("example.com", "pin to start/end"), ("^a", "pin to"), ("(", "missing")] {
            assert!(origin(bad).expect_err(bad).contains(complaint), "{bad}");
        }
    }

    #[test]
    fn directives_are_those_of_the_standard() {
        for good in ["max-age=31536000", "includeSubDomains", "preload"] {
            assert_eq!(directive(good), Ok(good.to_owned()));
        }
        for bad in ["", "max-age", "max-age=1=2", "preloads"] {
            assert!(directive(bad).is_err(), "{bad}");
        }
    }
}
