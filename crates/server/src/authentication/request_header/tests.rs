use rcgen::DnType;

use super::{
    super::{
        PeerCertificates,
        signer::{Signer, name},
    },
    *,
};
use crate::http::testing::request;

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn standard() -> RequestHeaderNames {
    RequestHeaderNames {
        username: list(&["X-Remote-User"]),
        uid: list(&["X-Remote-Uid"]),
        group: list(&["X-Remote-Group"]),
        extra_prefix: list(&["X-Remote-Extra-"]),
    }
}

fn proxies(signer: &Signer, allowed: &[&str], names: &RequestHeaderNames) -> RequestHeader {
    RequestHeader::new(Arc::new(signer.authorities()), list(allowed), names).expect("good names")
}

/// Asks with the certificate of `signer` in the name of `proxy`, if any.
async fn ask(
    proxies: &RequestHeader,
    certificate: Option<(&Signer, &str)>,
    headers: &[(&'static str, &str)],
) -> Authenticated {
    let mut parts = request("GET", "/").into_parts().0;
    if let Some((signer, common_name)) = certificate {
        let subject = name(&[(DnType::CommonName, common_name)]);
        let certificate = signer.sign(|params| params.distinguished_name = subject);
        parts.extensions.insert(PeerCertificates::new(&[certificate]));
    }
    for (name, value) in headers {
        parts.headers.append(*name, value.parse().expect("a header value"));
    }
    proxies.authenticate(&mut parts).await
}

#[tokio::test]
async fn a_proxy_says_who_its_client_is() {
    let signer = Signer::new("front", None);
    let headers = [
        ("x-remote-user", "alice"),
        ("x-remote-user", "ignored"),
        ("x-remote-uid", "u-1"),
        ("x-remote-group", "devs"),
        ("x-remote-group", ""),
        ("x-remote-group", "ops"),
        ("x-remote-extra-acme.com%2fscope", "a"),
        ("x-remote-extra-acme.com%2fscope", "b"),
        ("x-remote-extra-odd%zz", "c"),
    ];
    for allowed in [&["proxy"][..], &[], &["other", "proxy"]] {
        let proxies = proxies(&signer, allowed, &standard());
        let user = ask(&proxies, Some((&signer, "proxy")), &headers).await.expect("valid").expect("a user");
        assert_eq!((&*user.name, &*user.uid), ("alice", "u-1"));
        assert_eq!(user.groups, ["devs", "ops"]);
        let expected = [("acme.com/scope", list(&["a", "b"])), ("odd%zz", list(&["c"]))];
        assert_eq!(user.extra, expected.map(|(key, values)| (key.to_owned(), values)).into());
    }
    let proxies = proxies(&signer, &[], &standard());
    let silent = ask(&proxies, Some((&signer, "proxy")), &[("x-remote-group", "system:masters")]).await;
    assert_eq!(silent, Ok(None), "without a user there is nobody");
}

#[tokio::test]
async fn nobody_else_is_believed() {
    let (signer, stranger) = (Signer::new("front", None), Signer::new("front", None));
    let proxies = proxies(&signer, &["proxy"], &standard());
    let forged = [("x-remote-user", "root"), ("x-remote-group", "system:masters")];
    assert_eq!(ask(&proxies, None, &forged).await, Ok(None));
    let error = ask(&proxies, Some((&signer, "alice")), &forged).await.expect_err("not a proxy");
    assert_eq!(error.to_string(), "x509: subject with cn=alice is not in the allowed list");
    let error = ask(&proxies, Some((&stranger, "proxy")), &forged).await.expect_err("a stranger");
    assert!(error.to_string().starts_with("verifying certificate SN="), "{error}");
}

#[tokio::test]
async fn the_first_header_that_says_something_counts() {
    let signer = Signer::new("front", None);
    let names = RequestHeaderNames {
        username: list(&["X-First", "x-second"]),
        group: list(&["x-a", "X-B"]),
        extra_prefix: list(&["x-one-", "X-Two-"]),
        ..RequestHeaderNames::default()
    };
    let proxies = proxies(&signer, &[], &names);
    let headers = [
        ("x-first", ""),
        ("x-second", "bob"),
        ("x-b", "1"),
        ("x-a", "2"),
        ("x-two-k", "v"),
        ("x-one-k", "w"),
    ];
    let user = ask(&proxies, Some((&signer, "any")), &headers).await.expect("valid").expect("a user");
    assert_eq!((&*user.name, &*user.uid, &user.groups[..]), ("bob", "", &list(&["2", "1"])[..]));
    assert_eq!(user.extra["k"], ["w", "v"]);
}

#[test]
fn nobody_further_in_sees_the_headers() {
    let signer = Signer::new("front", None);
    let names = RequestHeaderNames {
        username: list(&["X-Mine"]),
        extra_prefix: list(&["X-Mine-Extra-"]),
        ..RequestHeaderNames::default()
    };
    let proxies = proxies(&signer, &[], &names);
    let kept = |identity: &IdentityHeaders| {
        let mut headers = HeaderMap::new();
        for name in [
            "x-remote-user",
            "x-remote-uid",
            "x-remote-group",
            "x-remote-extra-a",
            "x-mine",
            "x-mine-extra-a",
            "accept",
        ] {
            headers.append(name, HeaderValue::from_static("1"));
            headers.append(name, HeaderValue::from_static("2"));
        }
        identity.strip(&mut headers);
        let mut names: Vec<_> = headers.keys().map(|name| name.as_str().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(kept(&IdentityHeaders::new(Some(&proxies))), ["accept"]);
    assert_eq!(kept(&IdentityHeaders::new(None)), ["accept", "x-mine", "x-mine-extra-a"]);
}

#[test]
fn names_that_no_header_can_have_are_refused() {
    let refused = |names: RequestHeaderNames| {
        let authorities = Arc::new(Signer::new("front", None).authorities());
        RequestHeader::new(authorities, Vec::new(), &names).err().expect("refused").to_string()
    };
    for bad in [" ", "", "a b", "x:y"] {
        let names = RequestHeaderNames { group: list(&[bad]), ..standard() };
        assert!(refused(names).contains("cannot be the name of a header"), "{bad:?}");
    }
    let names = RequestHeaderNames { uid: list(&["x-uid"]), ..standard() };
    assert!(refused(names).contains("X-Remote-Uid"));
}
