//! URLs as Go's `url.Parse` reads them, with its texts.

use concord_meta::go;

/// The parts of a URL that somebody asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    pub(crate) scheme: String,
    /// What stands before the `@`.
    pub(crate) user: Option<&'a str>,
    pub(crate) host: &'a str,
    pub(crate) query: &'a str,
    pub(crate) fragment: &'a str,
}

/// A URL, which may be relative and have a fragment.
///
/// # Errors
///
/// Go's text.
pub(crate) fn parse(text: &str) -> Result<Url<'_>, String> {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let located = |error: String| format!("parse {}: {error}", go::quote(before));
    let url = parse_parts(before, false).map_err(located)?;
    check_escapes(fragment).map_err(|error| format!("parse {}: {error}", go::quote(text)))?;
    Ok(Url { fragment, ..url })
}

/// What a request line may have: an absolute URL or an absolute path, without a fragment.
///
/// # Errors
///
/// Go's text.
pub(crate) fn parse_request_uri(text: &str) -> Result<Url<'_>, String> {
    parse_parts(text, true).map_err(|error| format!("parse {}: {error}", go::quote(text)))
}

fn parse_parts(text: &str, of_request: bool) -> Result<Url<'_>, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && of_request {
        return Err("empty url".to_owned());
    }
    if text == "*" {
        return Ok(Url::default());
    }
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let url = Url { scheme: scheme.to_lowercase(), query, ..Url::default() };
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if of_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let relative = !of_request && !rest.starts_with("///");
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() || relative => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        _ => ("", rest),
    };
    let (user, host) = parse_authority(authority)?;
    check_escapes(path)?;
    Ok(Url { user, host, ..url })
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str) -> Result<(Option<&str>, &str), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    check_host(host)?;
    let Some(user) = user else { return Ok((None, host)) };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    check_escapes(user)?;
    Ok((Some(user), host))
}

fn check_host(host: &str) -> Result<(), String> {
    let port = match host.strip_prefix('[') {
        Some(_) => &host[host.rfind(']').ok_or("missing ']' in host")? + 1..],
        None => host.rfind(':').map_or("", |at| &host[at..]),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let is_port = port.is_empty() || (port.starts_with(':') && digits.bytes().all(|b| b.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {} after host", go::quote(port)));
    }
    let allowed =
        |c: char| c.is_ascii_alphanumeric() || !c.is_ascii() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    if let Some(bad) = host.chars().find(|c| !allowed(*c)) {
        return Err(format!("invalid character {} in host name", go::quote(&bad.to_string())));
    }
    check_escapes(host)?;
    // ASCII cannot be escaped in a host, except for the percent sign before a zone.
    let escaped = host.match_indices('%').map(|(at, _)| &host[at..at + 3]);
    match escaped.filter(|escape| *escape != "%25").find(|escape| escape.as_bytes()[1] < b'8') {
        Some(escape) => Err(bad_escape(escape)),
        None => Ok(()),
    }
}

fn bad_escape(escape: &str) -> String {
    format!("invalid URL escape {}", go::quote(escape))
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let after = text.as_bytes().get(at + 1..at + 3);
        if !after.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            let mut end = text.len().min(at + 3);
            while !text.is_char_boundary(end) {
                end += 1;
            }
            return Err(bad_escape(&text[at..end]));
        }
    }
    Ok(())
}
