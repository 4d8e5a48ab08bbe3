use std::sync::Arc;

use rustls::{
    CipherSuite, ProtocolVersion, SupportedProtocolVersion,
    crypto::{CryptoProvider, aws_lc_rs},
    version::{TLS12, TLS13},
};

use super::NamedIdentity;

/// How connections are secured, apart from the certificate for everybody. The default is what upstream's is: TLS 1.2 and 1.3
/// with all their ciphers that are any good.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// The oldest version that clients may speak.
    pub min_version: TlsVersion,
    /// Ciphers of TLS 1.2, those of TLS 1.3 cannot be chosen; all if there are none here. What is none of them is
    /// passed over.
    pub cipher_suites: Vec<CipherSuite>,
    /// Certificates for clients that ask for a name.
    pub by_name: Vec<Arc<NamedIdentity>>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2: there is nothing older.
    #[default]
    Tls12,
    /// 1.3.
    Tls13,
}

static VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

impl TlsOptions {
    pub(super) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.min_version {
            TlsVersion::Tls12 => &VERSIONS,
            TlsVersion::Tls13 => &VERSIONS[..1],
        }
    }

    /// The ciphers of TLS 1.3 with a key of 128 bits come first, whatever the client would rather have: that is strong
    /// enough for anything, it takes fewer rounds than 256, and servers in Go choose the same.
    pub(super) fn provider(&self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        let chosen = &self.cipher_suites;
        provider.cipher_suites.retain(|suite| {
            let is_fixed = suite.version().version == ProtocolVersion::TLSv1_3;
            is_fixed || chosen.is_empty() || chosen.contains(&suite.suite())
        });
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        provider
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(options: &TlsOptions) -> Vec<CipherSuite> {
        options.provider().cipher_suites.iter().map(|suite| suite.suite()).collect()
    }

    #[test]
    fn ciphers_of_tls_1_3_are_always_there() {
        let all = suites(&TlsOptions::default());
        assert_eq!((all.len(), all[0]), (9, CipherSuite::TLS13_AES_128_GCM_SHA256));
        let one = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
        let chosen = vec![one, CipherSuite::TLS_RSA_WITH_RC4_128_SHA];
        let some = suites(&TlsOptions { cipher_suites: chosen, ..TlsOptions::default() });
        assert_eq!((some.len(), some.contains(&one)), (4, true));
    }
}
