//! Network addresses, as Go's net package and its lenient older twin read them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address as Go reads it: no leading zeros, no zone.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// An address whose decimal parts may have leading zeros.
pub(super) fn parse_ip_sloppy(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return parse_v6_sloppy(text).map(IpAddr::V6);
    }
    parse_v4_sloppy(text).map(IpAddr::V4)
}

fn parse_v4_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = parts.next().and_then(decimal_octet)?;
    }
    parts.next().is_none().then(|| octets.into())
}

fn decimal_octet(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let plain = text.trim_start_matches('0');
    let plain = if plain.is_empty() { "0" } else { plain };
    digits.then(|| plain.parse().ok()).flatten()
}

fn parse_v6_sloppy(text: &str) -> Option<Ipv6Addr> {
    if let Some((head, tail)) = text.rsplit_once(':')
        && tail.contains('.')
    {
        return format!("{head}:{}", parse_v4_sloppy(tail)?).parse().ok();
    }
    text.parse().ok()
}

pub(super) fn is_cidr_sloppy(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match parse_ip_sloppy(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    digits && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

/// 6, 8 or 20 bytes: in pairs after `:` or `-`, or in groups of four after `.`.
pub(super) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 14 {
        return false;
    }
    let (separator, group) = match (bytes[2], bytes[4]) {
        (b':' | b'-', _) => (bytes[2], 2),
        (_, b'.') => (b'.', 4),
        _ => return false,
    };
    let groups: Vec<_> = bytes.split(|b| *b == separator).collect();
    let hex = |part: &&[u8]| part.len() == group && part.iter().all(u8::is_ascii_hexdigit);
    matches!(groups.len() * group / 2, 6 | 8 | 20) && groups.iter().all(hex)
}
