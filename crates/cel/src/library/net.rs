//! IP addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::Val;

/// An address with the length of its prefix. Bits behind the prefix are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    length: u8,
}

type Answer<'a> = Result<Val<'a>, EvalError>;

impl Cidr {
    fn parse(text: &str) -> Result<Self, String> {
        let fail = |why: &str| {
            let shown = concord_meta::go::quote(text);
            format!(
                "network address parse error during conversion from string: netip.ParsePrefix({shown}): {why}"
            )
        };
        let Some((address, length)) = text.rsplit_once('/') else { return Err(fail("no '/'")) };
        if address.contains('%') {
            return Err(fail("IPv6 zones cannot be present in a prefix"));
        }
        let address = parse_go(address).map_err(|why| fail(&why))?;
        let valid = !length.is_empty()
            && length.bytes().all(|byte| byte.is_ascii_digit())
            && !(length.len() > 1 && length.starts_with('0'));
        let bits: u8 = match length.parse() {
            Ok(bits) if valid => bits,
            _ => return Err(fail(&format!("bad bits after slash: {}", concord_meta::go::quote(length)))),
        };
        if bits > width(address) {
            return Err(fail("prefix length out of range"));
        }
        if is_mapped(address) {
            let shown = concord_meta::go::quote(text);
            return Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"));
        }
        Ok(Self { address, length: bits })
    }

    /// How many bytes the prefix reaches into.
    pub(crate) fn prefix_bytes(&self) -> u64 {
        u64::from(self.length).div_ceil(8)
    }

    fn masked(&self) -> Self {
        let mask = |bits: u128, width: u8| {
            let shift = u32::from(width - self.length);
            if shift >= u32::from(width) { 0 } else { bits >> shift << shift }
        };
        let address = match self.address {
            IpAddr::V4(address) => {
                IpAddr::V4(Ipv4Addr::from_bits(mask(u128::from(address.to_bits()), 32) as u32))
            }
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(mask(address.to_bits(), 128))),
        };
        Self { address, length: self.length }
    }

    fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Self { address, length: self.length }.masked().address == self.masked().address
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// An address as Go's `netip` reads it, which is how Rust does; only the words of errors differ.
fn parse_go(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("ParseAddr({}): {}", concord_meta::go::quote(text), why_no_address(text)))
}

/// What Go says of a text that is no address.
fn why_no_address(text: &str) -> String {
    match text.find(['.', ':', '%']).map(|at| &text[at..=at]) {
        Some(".") => why_no_ipv4(text),
        Some("%") => "missing IPv6 address".to_owned(),
        _ => "unable to parse IP".to_owned(),
    }
}

fn why_no_ipv4(text: &str) -> String {
    let at = |message: &str, rest: &str| format!("{message} (at {})", concord_meta::go::quote(rest));
    let (mut fields, mut value, mut digits) = (0, 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '0'..='9' if digits == 1 && value == 0 => {
                return "IPv4 field has octet with leading zero".to_owned();
            }
            '0'..='9' => {
                value = value * 10 + u32::from(c) - u32::from('0');
                digits += 1;
                if value > 255 {
                    return "IPv4 field has value >255".to_owned();
                }
            }
            '.' if digits == 0 || i + 1 == text.len() => {
                return at("IPv4 field must have at least one digit", &text[i..]);
            }
            '.' if fields == 3 => return "IPv4 address too long".to_owned(),
            '.' => (fields, value, digits) = (fields + 1, 0, 0),
            _ => return at("unexpected character", &text[i..]),
        }
    }
    "IPv4 address too short".to_owned()
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let shown = concord_meta::go::quote(text);
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(format!("IP address {shown} with zone value is not allowed"));
    }
    let address = parse_go(text)
        .map_err(|why| format!("IP Address {shown} parse error during conversion from string: {why}"))?;
    if is_mapped(address) {
        return Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"));
    }
    Ok(address)
}

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "ip" => ip,
        "isIP" => |args, _| text(args).map(|text| Val::Bool(parse_ip(text).is_ok())),
        "ip.isCanonical" => is_canonical,
        "family" => |args, _| address(args, |ip| Val::Int(if ip.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => |args, _| address(args, |ip| Val::Bool(ip.is_unspecified())),
        "isLoopback" => |args, _| address(args, |ip| Val::Bool(ip.is_loopback())),
        "isLinkLocalMulticast" => |args, _| address(args, |ip| Val::Bool(is_link_local_multicast(ip))),
        "isLinkLocalUnicast" => |args, _| address(args, |ip| Val::Bool(is_link_local_unicast(ip))),
        "isGlobalUnicast" => |args, _| address(args, |ip| Val::Bool(is_global_unicast(ip))),
        "cidr" => |args, _| cidr_of(text(args)?),
        "isCIDR" => |args, _| text(args).map(|text| Val::Bool(Cidr::parse(text).is_ok())),
        "masked" => |args, _| network(args, |cidr| Val::Cidr(cidr.masked())),
        "prefixLength" => |args, _| network(args, |cidr| Val::Int(i64::from(cidr.length))),
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        _ => return None,
    })
}

fn text<'v>(args: &'v [Val<'_>]) -> Result<&'v str, EvalError> {
    match args {
        [Val::String(text)] => Ok(text),
        _ => Err(no_overload()),
    }
}

fn address<'a>(args: &[Val<'a>], read: fn(&IpAddr) -> Val<'static>) -> Answer<'a> {
    match args {
        [Val::Ip(ip)] => Ok(read(ip)),
        _ => Err(no_overload()),
    }
}

fn network<'a>(args: &[Val<'a>], read: fn(&Cidr) -> Val<'static>) -> Answer<'a> {
    match args {
        [Val::Cidr(cidr)] => Ok(read(cidr)),
        _ => Err(no_overload()),
    }
}

fn ip_of<'a>(text: &str) -> Answer<'a> {
    parse_ip(text).map(Val::Ip).map_err(EvalError::new)
}

fn cidr_of<'a>(text: &str) -> Answer<'a> {
    Cidr::parse(text).map(Val::Cidr).map_err(|error| {
        EvalError::new(format!("network address parse error during conversion from string: {error}"))
    })
}

fn ip<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text)] => ip_of(text),
        [Val::Cidr(cidr)] => Ok(Val::Ip(cidr.address)),
        _ => Err(no_overload()),
    }
}

fn is_canonical<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let text = text(args)?;
    let address = parse_ip(text).map_err(EvalError::new)?;
    Ok(Val::Bool(address.to_string() == text))
}

fn contains_ip<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Cidr(cidr), Val::Ip(ip)] => Ok(Val::Bool(cidr.contains(*ip))),
        [Val::Cidr(cidr), Val::String(text)] => {
            // Upstream hides why the text is no address.
            Ok(Val::Bool(cidr.contains(parse_ip(text).map_err(|_| no_overload())?)))
        }
        _ => Err(no_overload()),
    }
}

fn contains_cidr<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let inside = |cidr: &Cidr, other: &Cidr| cidr.contains(other.address) && cidr.length <= other.length;
    match args {
        [Val::Cidr(cidr), Val::Cidr(other)] => Ok(Val::Bool(inside(cidr, other))),
        [Val::Cidr(cidr), Val::String(text)] => {
            let other = Cidr::parse(text).map_err(|_| no_overload())?;
            Ok(Val::Bool(inside(cidr, &other)))
        }
        _ => Err(no_overload()),
    }
}

fn is_link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Not what the name says: also private addresses, but not broadcast, loopback, multicast and link-local ones.
fn is_global_unicast(ip: &IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip))
}
