//! Who a server is.

use aws_lc_rs::digest::{SHA256, digest};

/// The namespace of identity leases.
pub const NAMESPACE: &str = "kube-system";
/// The label that makes a lease the identity of a server; its value is the component.
pub const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
/// The label with the name of the machine.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// The annotation that says where peers reach the server: `address:port`.
pub const ADVERTISED_ANNOTATION: &str = "kubernetes.io/peer-advertise-address";
/// The annotation of a server's lease that is `false` if it registers no versions. Upstream has none: there, what a server
/// said before the feature was turned off is believed for ever.
pub const REGISTERS_ANNOTATION: &str = "storageversions.concord.dev/registers";
/// The component of a server like this one. An extension server has its own.
pub const COMPONENT: &str = "kube-apiserver";

/// The most bytes the value of a label may have.
const MAX_LABEL: usize = 63;

/// One process of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The ID of the server: the name of its lease, the same in each of its processes.
    pub id: String,
    /// The process: what the lease says who holds it.
    pub holder: String,
    /// What kind of server it is.
    pub component: String,
    /// The machine it runs on.
    pub hostname: String,
}

/// The ID of a server, as upstream derives it from the name of the machine.
///
/// ```
/// use concord_storageversion::{COMPONENT, server_id};
/// assert_eq!(server_id("kas-0", COMPONENT), "apiserver-e2urur7kithhwevxgqmtxzakr4");
/// ```
pub fn server_id(hostname: &str, component: &str) -> String {
    let mut input = Vec::with_capacity(hostname.len() + component.len() + 4);
    for part in [hostname, component] {
        input.extend_from_slice(&u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        input.extend_from_slice(part.as_bytes());
    }
    let digest = digest(&SHA256, &input);
    format!("apiserver-{}", base32(&digest.as_ref()[..16]))
}

/// Lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |at: usize| (0..5).fold(0, |digit, n| digit << 1 | bit(at * 5 + n));
    (0..(bytes.len() * 8).div_ceil(5)).map(|at| char::from(ALPHABET[usize::from(digit(at))])).collect()
}

/// The name of a machine as the value of a label. One that is too long, or has something in it that labels do not have,
/// is shortened to what fits: upstream's server cannot make its lease then and never becomes ready.
pub fn hostname_label(hostname: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text: String = hostname.chars().map(|c| if fits(c) { c } else { '-' }).take(MAX_LABEL).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_upstreams() {
        for (hostname, id) in [
            ("kas-0", "apiserver-e2urur7kithhwevxgqmtxzakr4"),
            ("localhost", "apiserver-l2yubf4cvcl5c7a3wrubrwqdve"),
            ("testAPIServerID", "apiserver-5toptfq5wsd34qjmvecvmgbige"),
        ] {
            assert_eq!(server_id(hostname, COMPONENT), id);
        }
        assert_ne!(server_id("kas-0", "my-server"), server_id("kas-0", COMPONENT));
    }

    #[test]
    fn every_host_has_a_label() {
        let long = "a".repeat(64);
        for (hostname, label) in [
            ("kas-0", "kas-0"),
            (&long, &long[..63]),
            ("host_1.example.", "host_1.example"),
            ("männer", "m-nner"),
            ("", ""),
        ] {
            assert_eq!(hostname_label(hostname), label);
            assert!(concord_meta::names::label_value(&hostname_label(hostname)).is_empty());
        }
    }
}
