//! The formats that values are checked for, as upstream checks them (in places more, in places less than the standards).

mod address;
mod mail;
mod numbers;
mod time;
pub(crate) mod url;

use std::sync::LazyLock;

use regex::Regex;

use crate::schema::Kind;

/// What a format demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    /// Nothing: formats that upstream does not know, or not for the declared type.
    Unknown,
    Int32,
    Int64,
    Float,
    Double,
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

/// The formats of strings, without dashes: upstream ignores those.
const STRINGS: [(&str, Format); 26] = [
    ("bsonobjectid", Format::BsonObjectId),
    ("byte", Format::Byte),
    ("cidr", Format::Cidr),
    ("creditcard", Format::CreditCard),
    ("date", Format::Date),
    ("datetime", Format::DateTime),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("hexcolor", Format::HexColor),
    ("hostname", Format::Hostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("isbn", Format::Isbn),
    ("isbn10", Format::Isbn10),
    ("isbn13", Format::Isbn13),
    ("k8slongname", Format::LongName),
    ("k8sshortname", Format::ShortName),
    ("mac", Format::Mac),
    ("password", Format::Password),
    ("rgbcolor", Format::RgbColor),
    ("ssn", Format::Ssn),
    ("uri", Format::Uri),
    ("uuid", Format::Uuid),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
];

impl Format {
    /// What a format means for values of a type.
    pub(crate) fn parse(kind: Kind, text: &str) -> Self {
        match (kind, text) {
            (Kind::Integer, "int32") => Self::Int32,
            (Kind::Integer, "int64") => Self::Int64,
            (Kind::Number, "float") => Self::Float,
            (Kind::Number, "double") => Self::Double,
            (Kind::Any | Kind::String, text) => {
                let plain = text.replace('-', "");
                let known = STRINGS.iter().find(|(name, _)| *name == plain);
                known.map_or(Self::Unknown, |(_, format)| *format)
            }
            _ => Self::Unknown,
        }
    }

    /// The minor version of Kubernetes that has it first; none is older than the first one.
    pub(crate) fn since(self) -> u16 {
        match self {
            Self::ShortName | Self::LongName => 34,
            _ => 0,
        }
    }

    /// Whether a text has the format.
    pub(crate) fn holds(self, text: &str) -> bool {
        match self {
            Self::Unknown | Self::Int32 | Self::Int64 | Self::Float | Self::Double | Self::Password => true,
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Uri => url::parse_request_uri(text).is_ok(),
            Self::Email => mail::is_address(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.contains('.') && address::parse_ip_sloppy(text).is_some(),
            Self::Ipv6 => text.contains(':') && address::parse_ip(text).is_some(),
            Self::Cidr => address::is_cidr_sloppy(text),
            Self::Mac => address::is_mac(text),
            Self::Uuid => is_uuid(text, None, false),
            Self::Uuid3 => is_uuid(text, Some(b'3'), false),
            Self::Uuid4 => is_uuid(text, Some(b'4'), true),
            Self::Uuid5 => is_uuid(text, Some(b'5'), true),
            Self::Isbn => numbers::is_isbn10(text) || numbers::is_isbn13(text),
            Self::Isbn10 => numbers::is_isbn10(text),
            Self::Isbn13 => numbers::is_isbn13(text),
            Self::CreditCard => numbers::is_credit_card(text),
            Self::Ssn => text.len() == 11 && matches(&SSN, text),
            Self::HexColor => is_hex_color(text),
            Self::RgbColor => matches(&RGB, text),
            Self::Byte => is_base64(text),
            Self::Date => time::is_date(text),
            Self::Duration => time::is_duration(text),
            Self::DateTime => time::is_date_time(text),
            Self::ShortName => text.len() <= 63 && is_name(text),
            Self::LongName => text.len() <= 253 && text.split('.').all(is_name),
        }
    }
}

type Compiled = LazyLock<Option<Regex>>;

static SSN: Compiled = LazyLock::new(|| Regex::new(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());

static RGB: Compiled = LazyLock::new(|| {
    let byte = r"[\t\n\x0c\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0c\r ]*";
    Regex::new(&format!(r"^rgb\({byte},{byte},{byte}\)$")).ok()
});

/// Letters and symbols of all scripts; in the last of several labels letters only.
static HOSTNAME: Compiled = LazyLock::new(|| {
    let any = r"a-zA-Z0-9\p{S}\p{L}";
    let single = format!("[{any}](?:-?[{any}]{{0,62}})?");
    let several = format!(r"(?:[{any}](?:[{any}-]{{0,61}}[{any}])?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
    Regex::new(&format!("^(?:{single}|{several})$")).ok()
});

fn matches(regex: &Compiled, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && matches(&HOSTNAME, text)
}

/// Groups of 8, 4, 4, 4 and 12 hexadecimal digits; every dash may be left out.
fn is_uuid(text: &str, version: Option<u8>, rfc: bool) -> bool {
    let mut rest = text.as_bytes();
    for (at, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(len) else { return false };
        let variant = group[0].to_ascii_lowercase();
        let bad = !group.iter().all(u8::is_ascii_hexdigit)
            || (at == 2 && version.is_some_and(|version| group[0] != version))
            || (at == 3 && rfc && !b"89ab".contains(&variant));
        if bad {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whole groups of four, not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/".contains(&b));
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && plain
}

fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().last()];
    ends.into_iter().all(|b| b.is_some_and(plain)) && text.bytes().all(|b| plain(b) || b == b'-')
}

#[cfg(test)]
mod tests;
