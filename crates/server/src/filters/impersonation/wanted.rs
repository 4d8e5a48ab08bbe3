use concord_meta::{Status, UserInfo, go};
use http::{HeaderMap, HeaderName};

use crate::authentication::unescape_extra_key;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// Takes from the headers whom the client wants to be, if anybody.
pub(super) fn take(headers: &mut HeaderMap) -> Result<Option<UserInfo>, Status> {
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut wanted = UserInfo { name: first(USER), uid: first(UID), ..UserInfo::default() };
    wanted.groups = headers.get_all(GROUP).iter().map(text).collect();
    for (name, value) in headers.iter() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            wanted.extra.entry(unescape_extra_key(key)).or_default().push(text(value));
        }
    }
    if wanted.name.is_empty() {
        let asks = !wanted.uid.is_empty() || !wanted.groups.is_empty() || !wanted.extra.is_empty();
        return match asks {
            true => Err(nobody(&wanted)),
            false => Ok(None),
        };
    }
    strip(headers);
    Ok(Some(wanted))
}

/// Whoever handles the request must not act on the headers a second time.
fn strip(headers: &mut HeaderMap) {
    for name in [USER, UID, GROUP] {
        headers.remove(name);
    }
    let is_extra = |name: &&HeaderName| name.as_str().starts_with(EXTRA_PREFIX);
    let extra: Vec<HeaderName> = headers.keys().filter(is_extra).cloned().collect();
    for name in extra {
        headers.remove(name);
    }
}

fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Upstream prints its own structure here.
fn nobody(wanted: &UserInfo) -> Status {
    let list = |items: &[String], kind: &str| match items {
        [] => format!("{kind}(nil)"),
        items => go::string_slice(items),
    };
    let extra = match wanted.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let entry = |(key, values): (&String, &Vec<String>)| {
                format!("{}:{}", go::quote(key), go::string_slice(values))
            };
            let entries: Vec<String> = wanted.extra.iter().map(entry).collect();
            format!("map[string][]string{{{}}}", entries.join(", "))
        }
    };
    Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:{}, Extra:{extra}}} without impersonating a user name",
        go::quote(&wanted.uid),
        list(&wanted.groups, "[]string"),
    ))
}
