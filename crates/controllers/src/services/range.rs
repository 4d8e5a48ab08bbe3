use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::RangeInclusive,
    str::FromStr,
};

use rand::RngExt as _;

use crate::Error;

/// The addresses that Services get: `--service-cluster-ip-range`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpRange {
    family: Family,
    network: u128,
    prefix: u32,
}

/// The ports that Services get on every node: `--service-node-port-range`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePortRange {
    first: u16,
    last: u16,
}

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The name in `ipFamilies`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    fn address(self, number: u128) -> IpAddr {
        match self {
            // The number is one of the family's: it never has more bits.
            Self::V4 => Ipv4Addr::from(u32::try_from(number).unwrap_or_default()).into(),
            Self::V6 => Ipv6Addr::from(number).into(),
        }
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

impl FromStr for IpRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| Error::IpRange { range: text.to_owned(), why };
        if text.contains(',') {
            return Err(refuse("a second range, for dual-stack services, is not supported yet"));
        }
        let no_range = || refuse("must be an address, a slash and a number of bits, such as 10.0.0.0/24");
        let (ip, bits) = text.trim().split_once('/').ok_or_else(no_range)?;
        let (ip, prefix): (IpAddr, u32) =
            (ip.parse().map_err(|_| no_range())?, bits.parse().map_err(|_| no_range())?);
        let family = Family::of(ip);
        if prefix > family.bits() {
            return Err(no_range());
        }
        if family.bits() - prefix < 3 {
            return Err(refuse("must have at least 8 addresses"));
        }
        if family == Family::V6 && prefix < 64 {
            return Err(refuse("an IPv6 range must have a prefix of 64 bits or more"));
        }
        let size = 1_u128 << (family.bits() - prefix);
        Ok(Self { family, network: number(ip) & !(size - 1), prefix })
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.family.address(self.network), self.prefix)
    }
}

impl IpRange {
    /// The first address, which is that of the Service `default/kubernetes`.
    pub fn first(&self) -> IpAddr {
        self.family.address(*self.usable().start())
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// Whether an address can be given to a Service: that of the network cannot, nor the broadcast address of IPv4.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        Family::of(ip) == self.family && self.usable().contains(&number(ip))
    }

    fn usable(&self) -> RangeInclusive<u128> {
        let size = 1_u128 << (self.family.bits() - self.prefix);
        let last = self.network + size - 1;
        self.network + 1..=if self.family == Family::V4 { last - 1 } else { last }
    }

    /// All addresses in the order in which they are to be tried: those that are given out first, from a random one on,
    /// then those at the beginning of the range, which are left to who asks for a certain address.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = IpAddr> {
        let (first, last) = self.usable().into_inner();
        let size = last - first + 1;
        let kept = band(size, 16, 256);
        let family = self.family;
        cycled(first + kept, last)
            .chain(cycled(first, first + kept - 1))
            .map(move |number| family.address(number))
    }
}

impl FromStr for NodePortRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| Error::PortRange { range: text.to_owned(), why };
        let no_range = || refuse("must be two ports, such as 30000-32767");
        let (first, last) = text.trim().split_once('-').ok_or_else(no_range)?;
        let (first, last): (u16, u16) =
            (first.parse().map_err(|_| no_range())?, last.parse().map_err(|_| no_range())?);
        if first == 0 || first > last {
            return Err(refuse("must go from a port to a higher one"));
        }
        Ok(Self { first, last })
    }
}

impl Default for NodePortRange {
    fn default() -> Self {
        Self { first: 30_000, last: 32_767 }
    }
}

impl fmt::Display for NodePortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl NodePortRange {
    pub(crate) fn contains(&self, port: i64) -> bool {
        (i64::from(self.first)..=i64::from(self.last)).contains(&port)
    }

    /// All ports in the order in which they are to be tried, as [`IpRange::candidates`].
    pub(crate) fn candidates(&self) -> impl Iterator<Item = u16> {
        let (first, last) = (u128::from(self.first), u128::from(self.last));
        let kept = band(last - first + 1, 32, 128);
        let order = cycled(first + kept, last).chain(cycled(first, first + kept - 1));
        order.map(|port| u16::try_from(port).unwrap_or(u16::MAX))
    }
}

/// How many numbers at the beginning of a range are given out last, as upstream has it.
fn band(size: u128, step: u128, max: u128) -> u128 {
    const MIN: u128 = 16;
    if size <= MIN { 0 } else { (size / step).clamp(MIN, max) }
}

/// Every number of a range once, beginning with a random one. Nothing for a range that ends before it begins.
fn cycled(first: u128, last: u128) -> impl Iterator<Item = u128> {
    let start = if first < last { rand::rng().random_range(first..=last) } else { first };
    (start..=last).chain(first..start)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(text: &str) -> IpRange {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn ranges_are_read() {
        for (text, shown, first) in [
            ("10.0.0.0/24", "10.0.0.0/24", "10.0.0.1"),
            (" 10.0.0.77/24", "10.0.0.0/24", "10.0.0.1"),
            ("fd00:1::/112", "fd00:1::/112", "fd00:1::1"),
            ("192.168.0.8/29", "192.168.0.8/29", "192.168.0.9"),
        ] {
            assert_eq!(range(text).to_string(), shown);
            assert_eq!(range(text).first().to_string(), first);
        }
        for bad in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/30",
            "x/24",
            "fd00::/48",
            "10.0.0.0/24,fd00::/112",
            "10.0.0.0/-1",
        ] {
            assert!(bad.parse::<IpRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_ends_of_a_range_are_not_given_out() {
        let contains = |text: &str, ip: &str| range(text).contains(ip.parse().expect("an address"));
        assert!(!contains("10.0.0.0/24", "10.0.0.0") && !contains("10.0.0.0/24", "10.0.0.255"));
        assert!(contains("10.0.0.0/24", "10.0.0.1") && contains("10.0.0.0/24", "10.0.0.254"));
        assert!(contains("fd00::/112", "fd00::ffff") && !contains("fd00::/112", "fd00::"));
        assert!(!contains("fd00::/112", "10.0.0.1") && !contains("0.0.0.0/1", "::1"));
    }

    #[test]
    fn every_address_is_tried_once_and_the_low_ones_last() {
        let all: Vec<IpAddr> = range("10.0.0.0/24").candidates().collect();
        assert_eq!(all.len(), 254);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 254);
        let low: BTreeSet<String> = all[238..].iter().map(ToString::to_string).collect();
        assert!((1..=16).all(|last| low.contains(&format!("10.0.0.{last}"))), "{low:?}");
        assert_eq!(range("10.0.0.0/29").candidates().count(), 6, "too few to keep any back");
        assert_eq!(
            range("fd00::/64").candidates().take(3).count(),
            3,
            "a huge range is not made up in advance"
        );
    }

    #[test]
    fn node_ports_are_read_and_tried() {
        let ports: NodePortRange = "30000-32767".parse().expect("a range");
        assert_eq!(ports, NodePortRange::default());
        assert_eq!(ports.candidates().collect::<BTreeSet<_>>().len(), 2768);
        assert!(ports.candidates().take(2682).all(|port| port >= 30_086));
        assert!(ports.contains(30_000) && !ports.contains(29_999) && !ports.contains(32_768));
        for bad in ["", "1", "0-1", "2-1", "1-70000"] {
            assert!(bad.parse::<NodePortRange>().is_err(), "{bad}");
        }
    }
}
