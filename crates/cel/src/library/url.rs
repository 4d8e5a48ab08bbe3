//! URLs, as Go's `net/url` reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::{Key, MapValue, Text, Val};

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    host: String,
    /// The path as written.
    path: String,
    query: String,
    fragment: String,
}

type Answer<'a> = Result<Val<'a>, EvalError>;

/// Checks an absolute URL or an absolute path, as Go's `ParseRequestURI`.
pub(super) fn check_request_uri(text: &str) -> Result<(), String> {
    parse(text, false).map(|_| ()).map_err(|why| format!("parse {}: {why}", concord_meta::go::quote(text)))
}

fn parse(text: &str, with_fragment: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() {
        return Err("empty url".to_owned());
    }
    let (text, fragment) = match text.split_once('#').filter(|_| with_fragment) {
        Some((text, fragment)) => (text, fragment),
        None => (text, ""),
    };
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
        fragment: fragment.to_owned(),
    };
    if rest == "*" && scheme.is_empty() {
        url.path = rest.to_owned();
        return Ok(url);
    }
    if !rest.starts_with('/') {
        // What follows a scheme without a slash is opaque: it is no path.
        return if scheme.is_empty() { Err("invalid URI for request".to_owned()) } else { Ok(url) };
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            url.host = host(&after[..end])?;
            &after[end..]
        }
        None => rest,
    };
    unescape(path)?;
    url.path = path.to_owned();
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The host and port of an authority, without the user.
fn host(authority: &str) -> Result<String, String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let valid_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(valid_user) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user)?;
    let port = match host.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((_, port)) => port,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => host.rfind(':').map_or("", |colon| &host[colon..]),
    };
    let valid_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !valid_port {
        return Err(format!("invalid port {} after host", concord_meta::go::quote(port)));
    }
    let refused = |c: &char| matches!(c, ' ' | '\\' | '^' | '`' | '{' | '|' | '}' | '<' | '>');
    if let Some(c) = host.chars().find(refused) {
        let shown = concord_meta::go::quote(&c.to_string());
        return Err(format!("invalid character {shown} in host name"));
    }
    unescape(host)
}

/// Replaces `%41` by the character.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] != b'%' {
            out.push(bytes[i]);
            i += 1;
            continue;
        }
        let digits = text.get(i + 1..i + 3).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            let wrong: String = text[i..].chars().take(3).collect();
            return Err(format!("invalid URL escape {}", concord_meta::go::quote(&wrong)));
        };
        out.push(byte);
        i += 3;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

impl Url {
    /// The host without its port and without the brackets of an IPv6 address.
    fn hostname(&self) -> &str {
        let (host, _) = self.split_host();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    fn split_host(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (&self.host, ""),
        }
    }

    /// The path as it has to be written: what must be escaped is.
    fn escaped_path(&self) -> String {
        let plain = |c: u8| c.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*[]%".contains(&c);
        if self.path.bytes().all(plain) {
            return self.path.clone();
        }
        let unescaped = unescape(&self.path).unwrap_or_default();
        let kept = |c: u8| c.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&c);
        unescaped
            .bytes()
            .map(|c| if kept(c) { char::from(c).to_string() } else { format!("%{c:02X}") })
            .collect()
    }

    /// The values of each key; pairs that cannot be read are left out.
    fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| unescape(&text.replace('+', " "));
            if let (Ok(key), Ok(value)) = (decode(key), decode(value)) {
                values.entry(key).or_default().push(value);
            }
        }
        values
    }
}

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "url" => url,
        "isURL" => is_url,
        "getScheme" => |args, _| read(args, |url| Val::text(url.scheme.as_str())),
        "getHost" => |args, _| read(args, |url| Val::text(url.host.as_str())),
        "getHostname" => |args, _| read(args, |url| Val::text(url.hostname())),
        "getPort" => |args, _| read(args, |url| Val::text(url.split_host().1)),
        "getEscapedPath" => |args, _| read(args, |url| Val::text(url.escaped_path())),
        "getQuery" => |args, _| read(args, query),
        _ => return None,
    })
}

fn url<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let [Val::String(text)] = args else { return Err(no_overload()) };
    let fail = |why: String| EvalError::new(format!("URL parse error during conversion from string: {why}"));
    check_request_uri(text).map_err(fail)?;
    let parsed =
        parse(text, true).map_err(|why| fail(format!("parse {}: {why}", concord_meta::go::quote(text))))?;
    Ok(Val::Url(Arc::new(parsed)))
}

fn is_url<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text)] => Ok(Val::Bool(check_request_uri(text).is_ok())),
        _ => Err(no_overload()),
    }
}

fn read<'a>(args: &[Val<'a>], with: fn(&Url) -> Val<'static>) -> Answer<'a> {
    match args {
        [Val::Url(url)] => Ok(with(url)),
        _ => Err(no_overload()),
    }
}

fn query(url: &Url) -> Val<'static> {
    let entry = |(key, values): (String, Vec<String>)| {
        let values = values.into_iter().map(Val::text).collect();
        (Key::String(Text::from(key)), Val::list(values))
    };
    Val::Map(MapValue::Owned(Arc::new(url.query().into_iter().map(entry).collect())))
}
