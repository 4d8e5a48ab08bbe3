//! `Content-Type` as Go's `mime.ParseMediaType` reads it.

/// The media type in lower case, or nothing when the header is malformed.
pub(super) fn media_type(header: &str) -> Option<String> {
    let (base, parameters) = header.split_at(header.find(';').unwrap_or(header.len()));
    let media_type = base.trim().to_lowercase();
    let (kind, subtype) = match media_type.split_once('/') {
        Some((kind, subtype)) => (kind, Some(subtype)),
        None => (media_type.as_str(), None),
    };
    if !is_token(kind) || !subtype.is_none_or(is_token) {
        return None;
    }
    check_parameters(parameters)?;
    Some(media_type)
}

/// Nothing when a parameter is malformed or given twice; their values do not matter here.
fn check_parameters(mut rest: &str) -> Option<()> {
    let mut names = Vec::new();
    loop {
        rest = rest.trim_start();
        // A lone semicolon at the end is forgiven.
        if rest.is_empty() || rest.trim_end() == ";" {
            return Some(());
        }
        let (name, value) = rest.strip_prefix(';')?.trim_start().split_once('=')?;
        let name = name.to_lowercase();
        if !is_token(&name) || names.contains(&name) || names.len() >= 32 {
            return None;
        }
        names.push(name);
        rest = after_value(value)?;
    }
}

fn after_value(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut escaped = false;
        let end = quoted.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        return quoted.get(end + 1..);
    }
    let end = text.find(|c: char| !is_token_character(c)).unwrap_or(text.len());
    (end > 0).then(|| &text[end..])
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token_character)
}

fn is_token_character(c: char) -> bool {
    c.is_ascii_graphic() && !r#"()<>@,;:\"/[]?="#.contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_read_as_go_reads_them() {
        let cases = [
            ("application/json", Some("application/json")),
            (" Application/JSON ; charset=utf-8", Some("application/json")),
            ("application/json;", Some("application/json")),
            ("application/json; ; ", None),
            (r#"application/json; a="x;\"y"; b=c"#, Some("application/json")),
            (r#"application/json; a="x"#, None),
            ("application/json; a=1; A=2", None),
            ("application/json; a", None),
            ("application/json; a=", None),
            ("application/json/x", None),
            ("application/", None),
            ("json", Some("json")),
            ("", None),
            ("a b/c", None),
        ];
        for (header, expected) in cases {
            assert_eq!(media_type(header).as_deref(), expected, "{header}");
        }
    }
}
