//! Which headers are passed on, which are not, and which are set.
//!
//! Order matters: what a client may say is looked at first, and who it is and how far the request has come is written last,
//! so that nothing a client sends can remove or add to it.

use std::net::IpAddr;

use concord_server::UserInfo;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        AUTHORIZATION, CONNECTION, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
};

use crate::ForwardError;

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA_PREFIX: &str = "x-remote-extra-";
const IMPERSONATE_PREFIX: &str = "impersonate-";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// What concerns one connection and not the one behind it.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// How many headers are set, at most, besides groups and extras: room for them, no more.
const OURS: usize = 6;

/// What only the server that a browser talks to can say.
const CORS_PREFIX: &str = "access-control-";

/// Whether a request asks for another protocol on its connection.
pub fn is_upgrade(headers: &HeaderMap) -> bool {
    let says_so = |value: &HeaderValue| {
        value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("upgrade"))
    };
    headers.contains_key(UPGRADE) && headers.get_all(CONNECTION).iter().any(says_so)
}

/// The headers of the request to another server, of those of a client's request.
pub(crate) fn outward(
    original: &HeaderMap,
    user: &UserInfo,
    client: Option<IpAddr>,
    marks: &[(HeaderName, HeaderValue)],
) -> Result<HeaderMap, ForwardError> {
    let named = named_by_connection(original);
    let mut headers = HeaderMap::with_capacity(original.len() + user.groups.len() + OURS);
    for (name, value) in original {
        if !is_for_this_server(name) && !named.contains(name) {
            headers.append(name, value.clone());
        }
    }
    if is_upgrade(original) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.extend(original.get(UPGRADE).cloned().map(|protocol| (UPGRADE, protocol)));
    }
    append_client(&mut headers, client);
    identify(&mut headers, user)?;
    for (name, value) in marks {
        headers.insert(name, value.clone());
    }
    Ok(headers)
}

/// What a client's request says to another server: all of it but where it came from. Whatever is the same in two requests for
/// the same path is answered alike.
///
/// # Errors
///
/// [`ForwardError::Identity`], if the user cannot be named.
pub fn said(original: &HeaderMap, user: &UserInfo) -> Result<HeaderMap, ForwardError> {
    let mut headers = outward(original, user, None, &[])?;
    headers.remove(FORWARDED_FOR);
    Ok(headers)
}

/// What a client tells this server and nobody behind it: what concerns its connection, its credentials, and who it would like
/// to be, or to be taken for.
fn is_for_this_server(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
        || [AUTHORIZATION, HOST, USER, UID, GROUP].contains(name)
        || [IMPERSONATE_PREFIX, EXTRA_PREFIX].iter().any(|prefix| name.as_str().starts_with(prefix))
}

/// Makes the headers of another server's answer those of the answer to the client.
pub(crate) fn inward(headers: &mut HeaderMap) {
    let named = named_by_connection(headers);
    let is_gone = |name: &&HeaderName| {
        HOP_BY_HOP.contains(name) || named.contains(name) || name.as_str().starts_with(CORS_PREFIX)
    };
    let gone: Vec<HeaderName> = headers.keys().filter(is_gone).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

/// The headers that `Connection` says are about the connection.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect()
}

/// Where the request came from, after the places it came through before.
fn append_client(headers: &mut HeaderMap, client: Option<IpAddr>) {
    let Some(client) = client else { return };
    let before = headers.get_all(&FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let all: Vec<String> = before.map(str::to_owned).chain([client.to_string()]).collect();
    if let Ok(value) = HeaderValue::try_from(all.join(", ")) {
        headers.insert(FORWARDED_FOR, value);
    }
}

/// Who asks, in the headers of a front proxy.
fn identify(headers: &mut HeaderMap, user: &UserInfo) -> Result<(), ForwardError> {
    headers.insert(USER, carried(&user.name)?);
    if !user.uid.is_empty() {
        headers.insert(UID, carried(&user.uid)?);
    }
    for group in &user.groups {
        headers.append(GROUP, carried(group)?);
    }
    for (key, values) in &user.extra {
        let name = HeaderName::try_from(format!("{EXTRA_PREFIX}{}", escape_extra_key(key)));
        let name = name.map_err(|_| ForwardError::Identity)?;
        for value in values {
            headers.append(&name, carried(value)?);
        }
    }
    Ok(())
}

/// A text as a header's value, which cannot have control characters.
fn carried(text: &str) -> Result<HeaderValue, ForwardError> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| ForwardError::Identity)
}

/// A key as a part of a header's name: what no name may have, and the sign of escaping itself, in hexadecimal.
fn escape_extra_key(key: &str) -> String {
    let mut escaped = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'%' => escaped.push_str("%25"),
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|'
            | b'~' => {
                escaped.push(char::from(byte));
            }
            byte if byte.is_ascii_alphanumeric() => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().expect("a name"), value.parse::<HeaderValue>().expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    fn user() -> UserInfo {
        UserInfo {
            name: "ann".into(),
            uid: "7".into(),
            groups: vec!["a".into(), "b".into()],
            extra: BTreeMap::from([("example.org/x%y".into(), vec!["1".into(), "2".into()])]),
        }
    }

    fn sent(pairs: &[(&str, &str)]) -> HeaderMap {
        let mark = (HeaderName::from_static("x-mark"), HeaderValue::from_static("true"));
        let client = Some("10.0.0.1".parse().expect("an address"));
        outward(&headers(pairs), &user(), client, &[mark]).expect("a user that can be named")
    }

    fn all<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
        headers.get_all(name).iter().map(|value| value.to_str().expect("text")).collect()
    }

    #[test]
    fn who_asks_is_said_and_nobody_else_can_say_it() {
        let sent = sent(&[
            ("X-Remote-User", "root"),
            ("x-remote-group", "system:masters"),
            ("X-REMOTE-UID", "0"),
            ("x-remote-extra-other", "3"),
            ("impersonate-user", "root"),
            ("impersonate-extra-a", "b"),
            ("authorization", "Bearer secret"),
            ("accept", "application/json"),
        ]);
        assert_eq!(all(&sent, "x-remote-user"), ["ann"]);
        assert_eq!(all(&sent, "x-remote-uid"), ["7"]);
        assert_eq!(all(&sent, "x-remote-group"), ["a", "b"]);
        assert_eq!(all(&sent, "x-remote-extra-example.org%2fx%25y"), ["1", "2"]);
        assert_eq!(all(&sent, "accept"), ["application/json"]);
        for gone in ["x-remote-extra-other", "impersonate-user", "impersonate-extra-a", "authorization"] {
            assert!(!sent.contains_key(gone), "{gone}");
        }
    }

    #[test]
    fn the_connection_header_removes_neither_identity_nor_marks() {
        let sent = sent(&[
            ("connection", "x-mark, X-Remote-User, x-remote-group , close, x-private"),
            ("x-mark", "false"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
        ]);
        assert_eq!(all(&sent, "x-mark"), ["true"]);
        assert_eq!(all(&sent, "x-remote-user"), ["ann"]);
        for gone in ["connection", "x-private", "keep-alive", "te", "transfer-encoding"] {
            assert!(!sent.contains_key(gone), "{gone}");
        }
    }

    #[test]
    fn upgrades_are_asked_for_again() {
        let sent = sent(&[("connection", "keep-alive, Upgrade"), ("upgrade", "SPDY/3.1")]);
        assert_eq!((all(&sent, "connection"), all(&sent, "upgrade")), (vec!["Upgrade"], vec!["SPDY/3.1"]));
        for (pairs, asks) in [
            (&[("connection", "Upgrade"), ("upgrade", "websocket")][..], true),
            (&[("connection", "keep-alive"), ("connection", "upgrade"), ("upgrade", "x")], true),
            (&[("upgrade", "h2c")], false),
            (&[("connection", "upgrade")], false),
        ] {
            assert_eq!(is_upgrade(&headers(pairs)), asks, "{pairs:?}");
        }
    }

    #[test]
    fn the_way_of_a_request_is_told() {
        let sent = sent(&[("x-forwarded-for", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "3.3.3.3")]);
        assert_eq!(all(&sent, "x-forwarded-for"), ["1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1"]);
    }

    #[test]
    fn requests_say_the_same_wherever_they_come_from() {
        let of = |pairs: &[(&str, &str)], user: &UserInfo| said(&headers(pairs), user).expect("a user");
        let plain = of(&[("accept", "a")], &user());
        for same in [
            &[("accept", "a"), ("x-forwarded-for", "1.1.1.1")][..],
            &[("accept", "a"), ("authorization", "Bearer secret")],
            &[("accept", "a"), ("impersonate-user", "ann")],
            &[("accept", "a"), ("connection", "x-private"), ("x-private", "1")],
        ] {
            assert_eq!(of(same, &user()), plain, "{same:?}");
        }
        for other in [&[("accept", "b")][..], &[], &[("accept", "a"), ("x-private", "1")]] {
            assert_ne!(of(other, &user()), plain, "{other:?}");
        }
        for somebody in [
            UserInfo { name: "bob".into(), ..user() },
            UserInfo { uid: "8".into(), ..user() },
            UserInfo { groups: vec!["b".into(), "a".into()], ..user() },
            UserInfo { extra: BTreeMap::new(), ..user() },
        ] {
            assert_ne!(of(&[("accept", "a")], &somebody), plain, "{somebody:?}");
        }
    }

    #[test]
    fn answers_lose_what_concerned_the_connection() {
        let mut answer = headers(&[
            ("connection", "close"),
            ("access-control-allow-origin", "*"),
            ("content-type", "application/json"),
            ("audit-id", "1"),
        ]);
        inward(&mut answer);
        let mut left: Vec<&str> = answer.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["audit-id", "content-type"]);
    }

    #[test]
    fn a_user_whom_no_header_can_name_is_not_sent_as_somebody_else() {
        for unnameable in [
            UserInfo { name: "a\nb".into(), ..user() },
            UserInfo { groups: vec!["a\0".into()], ..user() },
            UserInfo { extra: BTreeMap::from([("a".into(), vec!["\r".into()])]), ..user() },
        ] {
            let refused = identify(&mut headers(&[]), &unnameable);
            assert!(matches!(refused, Err(ForwardError::Identity)), "{unnameable:?}");
        }
    }
}
