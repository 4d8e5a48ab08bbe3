//! Addresses and networks as upstream reads them: Go's old reading, which takes leading zeros, and the strict one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{gates::Gate, node::Node};

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An address, also with leading zeros in decimal parts.
pub(crate) fn parse_sloppy(text: &str) -> Option<IpAddr> {
    match text.find(['.', ':']) {
        Some(at) if text.as_bytes()[at] == b'.' => parse_v4(text).map(IpAddr::V4),
        Some(_) => parse_v6(text).map(IpAddr::V6),
        None => None,
    }
}

fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let mut bytes = [0_u8; 4];
    let mut parts = text.split('.');
    for byte in &mut bytes {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *byte = part
            .trim_start_matches('0')
            .parse()
            .or(if part.bytes().all(|b| b == b'0') { Ok(0) } else { Err(()) })
            .ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(bytes))
}

/// Groups may have any number of leading zeros. The last two may be an IPv4 address, which may have them too.
fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let group = |group: &str| match group.trim_start_matches('0') {
        _ if group.contains('.') => Some(parse_v4(group)?.to_string()),
        "" if !group.is_empty() => Some("0".to_owned()),
        short => Some(short.to_owned()),
    };
    let groups: Option<Vec<String>> = text.split(':').map(group).collect();
    groups?.join(":").parse().ok()
}

/// What Go calls an IPv4 address: also one that is written as a mapped IPv6 address.
pub(crate) fn is_v4(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => address.to_ipv4_mapped().is_some(),
    }
}

/// How Go writes an address.
pub(crate) fn canonical(address: IpAddr) -> String {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| v6.to_string(), |v4| v4.to_string()),
        IpAddr::V4(v4) => v4.to_string(),
    }
}

/// Whether the strict reading takes the text.
fn is_strict(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// An address in a field that used to take more than it does now: values it had stay valid.
pub(crate) fn legacy_ip(node: Node<'_>, text: &str, valid_before: &[&str]) {
    if valid_before.contains(&text) {
        return;
    }
    match node.gate(Gate::StrictIPCIDRValidation) {
        true => drop(parse(node, text)),
        false if parse_sloppy(text).is_none() => node.invalid(text, NO_ADDRESS),
        false => {}
    }
}

fn parse(node: Node<'_>, text: &str) -> Option<IpAddr> {
    let Some(address) = parse_sloppy(text) else {
        node.invalid(text, NO_ADDRESS);
        return None;
    };
    if !is_strict(text) {
        node.invalid(text, "must not have leading 0s");
    } else if is_mapped(address) {
        node.invalid(text, "must not be an IPv4-mapped IPv6 address");
    }
    Some(address)
}

/// An address in canonical form.
pub(crate) fn strict_ip(node: Node<'_>, text: &str) {
    let before = node.errors();
    if let Some(address) = parse(node, text)
        && node.errors() == before
        && canonical(address) != text
    {
        node.invalid(text, format!("must be in canonical form (\"{}\")", canonical(address)));
    }
}

/// A network: the address as written, and the length of the prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl Cidr {
    pub(crate) fn parse_sloppy(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address = parse_sloppy(address)?;
        let most = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
        let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix: u32 = prefix.parse().ok().filter(|prefix| digits && *prefix <= most)?;
        Some(Self { address, prefix: u8::try_from(prefix).ok()? })
    }

    /// The first address of the network.
    pub(crate) fn masked(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
            }
        }
    }

    /// The network as Go understands it: one of mapped addresses is one of IPv4 addresses.
    fn network(self) -> Self {
        let address = self.masked().to_canonical();
        let mapped = address.is_ipv4() && self.address.is_ipv6();
        let prefix = if mapped { self.prefix.saturating_sub(96) } else { self.prefix };
        Self { address, prefix }
    }

    /// How Go writes the network.
    pub(crate) fn canonical(self) -> String {
        let Self { address, prefix } = self.network();
        format!("{address}/{prefix}")
    }

    pub(crate) fn contains(self, other: IpAddr) -> bool {
        let (Self { address, prefix }, other) = (self.network(), other.to_canonical());
        address.is_ipv4() == other.is_ipv4() && Self { address: other, prefix }.masked() == address
    }
}

fn is_strict_prefix(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(address, prefix)| is_strict(address) && (prefix == "0" || !prefix.starts_with('0')))
}

fn parse_cidr(node: Node<'_>, text: &str) -> Option<Cidr> {
    let Some(cidr) = Cidr::parse_sloppy(text) else {
        node.invalid(text, NO_NETWORK);
        return None;
    };
    if !is_strict_prefix(text) {
        node.invalid(text, "must not have leading 0s in IP or prefix length");
    } else if is_mapped(cidr.address) {
        node.invalid(text, "must not have an IPv4-mapped IPv6 address");
    } else if cidr.address != cidr.masked() {
        node.invalid(text, "must not have bits set beyond the prefix length");
    }
    Some(cidr)
}

/// A network in a field that used to take more than it does now: values it had stay valid.
pub(crate) fn legacy_cidr(node: Node<'_>, text: &str, valid_before: &[&str]) {
    if valid_before.contains(&text) {
        return;
    }
    match node.gate(Gate::StrictIPCIDRValidation) {
        true => drop(parse_cidr(node, text)),
        false if Cidr::parse_sloppy(text).is_none() => node.invalid(text, NO_NETWORK),
        false => {}
    }
}

/// A network in canonical form.
pub(crate) fn strict_cidr(node: Node<'_>, text: &str) {
    let before = node.errors();
    if let Some(cidr) = parse_cidr(node, text)
        && node.errors() == before
        && cidr.canonical() != text
    {
        node.invalid(text, format!("must be in canonical form (\"{}\")", cidr.canonical()));
    }
}

/// An address that something in a cluster can be reached at.
pub(crate) fn endpoint_ip(node: Node<'_>, text: &str) {
    let Some(address) = parse_sloppy(text) else {
        return node.invalid(text, "must be a valid IP address");
    };
    // Go treats mapped addresses as IPv4.
    let address = address.to_canonical();
    if address.is_unspecified() {
        node.invalid(text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        node.invalid(text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (unicast, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02),
    };
    if unicast {
        node.invalid(text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        node.invalid(text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// One address of each family.
pub(crate) fn is_dual_stack(addresses: &[&str]) -> bool {
    let families: Vec<bool> = addresses.iter().filter_map(|text| parse_sloppy(text)).map(is_v4).collect();
    families.contains(&true) && families.contains(&false)
}

/// What to say about an address that is valid but not written as it should be.
pub(crate) fn warn_ip(node: Node<'_>, text: &str) {
    let Some(address) = parse_sloppy(text) else { return };
    let canonical = canonical(address);
    if !is_strict(text) || is_mapped(address) {
        node.warn(&format!("non-standard IP address \"{text}\" is invalid: use \"{canonical}\""));
    } else if matches!(address, IpAddr::V6(_)) && canonical != text {
        let detail =
            format!("IPv6 address \"{text}\" should be in RFC 5952 canonical format (\"{canonical}\")");
        node.warn(&detail);
    }
}

/// What to say about a network that is valid but not written as it should be.
pub(crate) fn warn_cidr(node: Node<'_>, text: &str) {
    let Some(cidr) = Cidr::parse_sloppy(text) else { return };
    let network = cidr.canonical();
    let mut warned = false;
    if cidr.address != cidr.masked() {
        let bits = if matches!(cidr.address, IpAddr::V4(_)) { 32 } else { 128 };
        let single = format!("{}/{bits}", canonical(cidr.address));
        node.warn(&format!(
            "CIDR value \"{text}\" is ambiguous in this context (should be \"{network}\" or \"{single}\"?)"
        ));
        warned = true;
    }
    if !is_strict_prefix(text) || is_mapped(cidr.address) {
        node.warn(&format!("non-standard CIDR value \"{text}\" is invalid: use \"{network}\""));
    } else if !warned && matches!(cidr.address, IpAddr::V6(_)) && network != text {
        node.warn(&format!(
            "IPv6 CIDR value \"{text}\" should be in RFC 5952 canonical format (\"{network}\")"
        ));
    }
}
