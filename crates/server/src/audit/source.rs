use std::net::IpAddr;

use http::request::Parts;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Where a request comes from: what proxies say, and last where its connection comes from, which nobody can make up.
pub(super) fn source_ips(request: &Parts) -> Vec<String> {
    let header =
        |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let parse = |text: &str| text.trim().parse::<IpAddr>().ok();
    let mut addresses: Vec<IpAddr> = header("x-forwarded-for").split(',').filter_map(parse).collect();
    if let Some(real) = parse(header("x-real-ip")).filter(|real| !addresses.contains(real)) {
        addresses.push(real);
    }
    let peer = request.extensions.get::<PeerAddress>().map(|PeerAddress(peer)| peer.to_canonical());
    if let Some(peer) = peer.filter(|peer| addresses.last() != Some(peer)) {
        addresses.push(peer);
    }
    addresses.iter().map(IpAddr::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::request;

    #[test]
    fn proxies_are_heard_and_the_connection_is_known() {
        for (forwarded, real, peer, expected) in [
            ("", "", Some("10.0.0.1"), &["10.0.0.1"][..]),
            ("", "", Some("::ffff:10.0.0.1"), &["10.0.0.1"]),
            (
                "192.0.2.1, nonsense,2001:db8::1",
                "",
                Some("10.0.0.1"),
                &["192.0.2.1", "2001:db8::1", "10.0.0.1"],
            ),
            ("192.0.2.1", "192.0.2.1", None, &["192.0.2.1"]),
            ("192.0.2.1", "192.0.2.2", Some("192.0.2.2"), &["192.0.2.1", "192.0.2.2"]),
            ("", "", None, &[]),
        ] {
            let mut parts = request("GET", "/").into_parts().0;
            for (name, value) in [("x-forwarded-for", forwarded), ("x-real-ip", real)] {
                parts.headers.insert(name, value.parse().expect("a value"));
            }
            if let Some(peer) = peer {
                parts.extensions.insert(PeerAddress(peer.parse().expect("an address")));
            }
            assert_eq!(source_ips(&parts), expected, "{forwarded} {real} {peer:?}");
        }
    }
}
