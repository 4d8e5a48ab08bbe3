use async_trait::async_trait;
use http::{HeaderName, StatusCode};

use super::*;
use crate::{
    Decision, UserInfo,
    http::{
        Handler,
        testing::{read, request},
        text,
    },
};

/// Allows what is in the list: `verb group/resource[/subresource] [namespace/]name`.
struct Only(&'static [&'static str]);

#[async_trait]
impl Authorizer for Only {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let info = attributes.request;
        let mut resource = format!("{}/{}", info.api_group, info.resource);
        if !info.subresource.is_empty() {
            resource = format!("{resource}/{}", info.subresource);
        }
        let namespace = match &*info.namespace {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        let asked = format!("{} {resource} {namespace}{}", info.verb, info.name);
        match self.0.contains(&asked.as_str()) {
            true => Decision::Allow,
            false => Decision::NoOpinion(String::new()),
        }
    }
}

/// Answers with the user, and the headers that are left.
struct Tells;

#[async_trait]
impl Handler for Tells {
    async fn handle(&self, request: Request) -> Response {
        let UserInfo { name, uid, groups, extra } = &*request.user();
        let left: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        text(StatusCode::OK, format!("{name} {uid} {groups:?} {extra:?} {left:?}"))
    }
}

async fn ask(allowed: &'static [&'static str], headers: &[(&'static str, &'static str)]) -> (u16, String) {
    let filter = Impersonation { inner: Tells, authorizer: Arc::new(Only(allowed)), metrics: Arc::default() };
    let mut request = request("GET", "/api/v1/namespaces/a/pods/b");
    let node = ("authentication.kubernetes.io/node-name".to_owned(), vec!["n1".to_owned()]);
    let user = UserInfo {
        name: "system:serviceaccount:a:agent".to_owned(),
        extra: [node].into(),
        ..UserInfo::default()
    };
    request.extensions_mut().insert(Arc::new(user));
    for (name, value) in headers {
        request.headers_mut().append(*name, HeaderValue::from_static(value));
    }
    read(filter.call(request.into()).await).await
}

const ME: &str = r#"User \"system:serviceaccount:a:agent\" cannot"#;

#[tokio::test]
async fn who_may_be_whom() {
    let user = ("impersonate-user", "bob");
    let masters = ("impersonate-group", "system:masters");
    let account = ("impersonate-user", "system:serviceaccount:b:robot");
    let node = ("impersonate-user", "system:node:n1");
    let other_node = ("impersonate-user", "system:node:n2");
    let bob_in = r#"bob  ["system:authenticated"] {} []"#;
    for (allowed, headers, status, body) in [
        (
            &[][..],
            &[][..],
            200,
            r#"system:serviceaccount:a:agent  [] {"authentication.kubernetes.io/node-name": ["n1"]} []"#,
        ),
        // The old way.
        (&["impersonate /users bob"], &[user], 200, bob_in),
        (&["impersonate /users eve"], &[user], 403, "impersonate-on:user-info:get"),
        (&["impersonate /users bob"], &[user, masters], 403, "impersonate-on:user-info:get"),
        (
            &["impersonate /users bob", "impersonate /groups system:masters"],
            &[user, masters],
            200,
            r#"bob  ["system:masters", "system:authenticated"]"#,
        ),
        (
            &[
                "impersonate /users bob",
                "impersonate authentication.k8s.io/uids 7",
                "impersonate authentication.k8s.io/userextras/a/b c",
            ],
            &[user, ("impersonate-uid", "7"), ("impersonate-extra-a%2fb", "c")],
            200,
            r#"bob 7 ["system:authenticated"] {"a/b": ["c"]} []"#,
        ),
        (
            &["impersonate /users system:anonymous"],
            &[("impersonate-user", "system:anonymous")],
            200,
            r#"system:anonymous  ["system:unauthenticated"]"#,
        ),
        (
            &["impersonate /serviceaccounts b/robot"],
            &[account],
            200,
            r#"["system:serviceaccounts", "system:serviceaccounts:b", "system:authenticated"]"#,
        ),
        (
            &["impersonate /users system:serviceaccount:b:robot"],
            &[account],
            403,
            "impersonate-on:serviceaccount:get",
        ),
        // Constrained.
        (
            &[
                "impersonate-on:user-info:get /pods a/b",
                "impersonate:user-info authentication.k8s.io/users bob",
            ],
            &[user],
            200,
            bob_in,
        ),
        (
            &[
                "impersonate-on:user-info:list /pods a/b",
                "impersonate:user-info authentication.k8s.io/users bob",
            ],
            &[user],
            403,
            "impersonate-on:user-info:get",
        ),
        (
            &["impersonate-on:user-info:get /pods a/b"],
            &[user],
            403,
            r#"users.authentication.k8s.io \"bob\" is forbidden"#,
        ),
        (
            &[
                "impersonate-on:user-info:get /pods a/b",
                "impersonate:user-info authentication.k8s.io/users bob",
                "impersonate:user-info authentication.k8s.io/groups system:masters",
            ],
            &[user, masters],
            403,
            "impersonating the system:masters group is not allowed",
        ),
        (
            &[
                "impersonate-on:user-info:get /pods a/b",
                "impersonate:user-info authentication.k8s.io/users bob",
            ],
            &[user, ("impersonate-extra-scopes", "x")],
            403,
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value",
        ),
        (
            &[
                "impersonate-on:serviceaccount:get /pods a/b",
                "impersonate:serviceaccount authentication.k8s.io/serviceaccounts b/robot",
            ],
            &[account],
            200,
            r#"["system:serviceaccounts", "system:serviceaccounts:b", "system:authenticated"]"#,
        ),
        (
            &[
                "impersonate-on:associated-node:get /pods a/b",
                "impersonate:associated-node authentication.k8s.io/nodes *",
            ],
            &[node],
            200,
            r#"system:node:n1  ["system:nodes", "system:authenticated"]"#,
        ),
        (
            &[
                "impersonate-on:associated-node:get /pods a/b",
                "impersonate:associated-node authentication.k8s.io/nodes *",
            ],
            &[other_node],
            403,
            "impersonate-on:arbitrary-node:get",
        ),
        (
            &[
                "impersonate-on:arbitrary-node:get /pods a/b",
                "impersonate:arbitrary-node authentication.k8s.io/nodes n2",
            ],
            &[other_node],
            200,
            r#"system:node:n2  ["system:nodes", "system:authenticated"]"#,
        ),
    ] {
        let answer = ask(allowed, headers).await;
        assert_eq!(answer.0, status, "{headers:?}: {answer:?}");
        assert!(answer.1.contains(body), "{headers:?}\n{}\nshould have\n{body}", answer.1);
        assert_eq!(status == 403, answer.1.contains(ME), "{answer:?}");
    }
}

#[tokio::test]
async fn nobody_can_be_only_a_group() {
    for (headers, structure) in [
        (
            &[("impersonate-group", "a"), ("impersonate-group", "b")][..],
            r#"{Name:"", UID:"", Groups:[]string{"a", "b"}, Extra:map[string][]string(nil)}"#,
        ),
        (
            &[("impersonate-uid", "7"), ("impersonate-extra-k", "v")],
            r#"{Name:"", UID:"7", Groups:[]string(nil), Extra:map[string][]string{"k":[]string{"v"}}}"#,
        ),
    ] {
        let (status, body) = ask(&[], headers).await;
        let message = format!("requested &user.DefaultInfo{structure} without impersonating a user name");
        let status_object: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!((status, status_object["message"].as_str()), (400, Some(message.as_str())));
    }
}
