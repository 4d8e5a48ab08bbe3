//! Named formats.

use concord_meta::names::{self, NameRule};

use super::{Run, base64, no_overload, time, url};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::{Timestamp, Val};

/// A format that text can be checked against.
#[derive(Debug)]
pub struct Format {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The name of its function after `format.`.
    function: &'static str,
    /// The length of a pattern that would check the same, for the cost.
    pub(crate) max_regex_size: u64,
    /// What is wrong with a text.
    check: fn(&str) -> Vec<String>,
}

type Answer<'a> = Result<Val<'a>, EvalError>;

const fn format(
    function: &'static str,
    name: &'static str,
    max_regex_size: u64,
    check: fn(&str) -> Vec<String>,
) -> Format {
    Format { name, function, max_regex_size, check }
}

static FORMATS: &[Format] = &[
    format("dns1123Label", "DNS1123Label", 30, names::dns1123_label),
    format("dns1123Subdomain", "DNS1123Subdomain", 60, names::dns1123_subdomain),
    format("dns1035Label", "DNS1035Label", 30, names::dns1035_label),
    format("qualifiedName", "QualifiedName", 60, names::qualified_name),
    format("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text| NameRule::Dns1123Label.check_prefix(text)),
    format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |text| {
        NameRule::Dns1123Subdomain.check_prefix(text)
    }),
    format("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text| NameRule::Dns1035Label.check_prefix(text)),
    format("labelValue", "LabelValue", 40, names::label_value),
    format("uri", "URI", URI_SIZE, check_uri),
    format("uuid", "uuid", UUID_SIZE, |text| unless(is_uuid(text), "does not match the UUID format")),
    format("byte", "byte", BYTE_SIZE, |text| unless(is_base64(text), "invalid base64")),
    format("date", "date", DATE_TIME_SIZE, |text| unless(is_date(text), "invalid date")),
    format("datetime", "datetime", DATE_TIME_SIZE, |text| {
        unless(Timestamp::parse(text).is_some(), "invalid datetime")
    }),
];

// The lengths of the patterns that upstream takes for these formats.
const URI_SIZE: u64 = 1104;
const UUID_SIZE: u64 = 72;
const BYTE_SIZE: u64 = 84;
const DATE_TIME_SIZE: u64 = 72;

fn unless(valid: bool, message: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![message.to_owned()] }
}

fn check_uri(text: &str) -> Vec<String> {
    url::check_request_uri(text).err().into_iter().collect()
}

fn is_base64(text: &str) -> bool {
    base64::decode(text).is_some_and(|bytes| !bytes.is_empty())
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && time::parse_date_or_timestamp(text).is_some()
}

/// Hexadecimal digits with or without the dashes.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = match text.len() {
        36 => text.split('-').collect(),
        32 => return text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        _ => return false,
    };
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "validate" => validate,
        "format.named" => named,
        "format.dns1123Label" => |_, _| Ok(Val::Format(&FORMATS[0])),
        "format.dns1123Subdomain" => |_, _| Ok(Val::Format(&FORMATS[1])),
        "format.dns1035Label" => |_, _| Ok(Val::Format(&FORMATS[2])),
        "format.qualifiedName" => |_, _| Ok(Val::Format(&FORMATS[3])),
        "format.dns1123LabelPrefix" => |_, _| Ok(Val::Format(&FORMATS[4])),
        "format.dns1123SubdomainPrefix" => |_, _| Ok(Val::Format(&FORMATS[5])),
        "format.dns1035LabelPrefix" => |_, _| Ok(Val::Format(&FORMATS[6])),
        "format.labelValue" => |_, _| Ok(Val::Format(&FORMATS[7])),
        "format.uri" => |_, _| Ok(Val::Format(&FORMATS[8])),
        "format.uuid" => |_, _| Ok(Val::Format(&FORMATS[9])),
        "format.byte" => |_, _| Ok(Val::Format(&FORMATS[10])),
        "format.date" => |_, _| Ok(Val::Format(&FORMATS[11])),
        "format.datetime" => |_, _| Ok(Val::Format(&FORMATS[12])),
        _ => return None,
    })
}

fn named<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let [Val::String(name)] = args else { return Err(no_overload()) };
    let found = FORMATS.iter().find(|format| format.function == &**name);
    Ok(found.map_or(Val::NONE, |format| Val::some(Val::Format(format))))
}

fn validate<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let [Val::Format(format), Val::String(text)] = args else { return Err(no_overload()) };
    let problems = (format.check)(text);
    if problems.is_empty() {
        return Ok(Val::NONE);
    }
    Ok(Val::some(Val::list(problems.into_iter().map(Val::text).collect())))
}
