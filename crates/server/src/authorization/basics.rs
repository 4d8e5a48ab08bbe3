use async_trait::async_trait;

use super::{Attributes, Authorizer, Decision};
use crate::{RequestInfo, UserInfo};

/// Everybody may see whether the server is well and what it is.
const PUBLIC: [&str; 5] = ["/livez", "/readyz", "/healthz", "/version", "/version/"];
/// Health checks have paths of their own below these; what is there says no more than `?verbose`.
const PUBLIC_BELOW: [&str; 3] = ["/livez/", "/readyz/", "/healthz/"];
/// Clients that are known may see what APIs there are: exactly these, and everything below them.
const DISCOVERY: [&str; 3] = ["/api", "/apis", "/openapi"];
/// And may ask about themselves.
const SELF_REVIEWS: [(&str, &str); 3] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// What upstream's default roles allow everybody: `system:public-info-viewer`, and for authenticated users
/// `system:discovery` and `system:basic-user`.
pub struct Basics;

fn is_public(request: &RequestInfo) -> bool {
    !request.is_resource_request
        && request.verb == "get"
        && (PUBLIC.contains(&&*request.path)
            || PUBLIC_BELOW.iter().any(|prefix| request.path.starts_with(prefix)))
}

fn is_discovery(request: &RequestInfo) -> bool {
    let below = |root: &&str| {
        request.path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !request.is_resource_request && request.verb == "get" && DISCOVERY.iter().any(below)
}

fn is_self_review(request: &RequestInfo) -> bool {
    request.is_resource_request
        && request.verb == "create"
        && request.subresource.is_empty()
        && SELF_REVIEWS.contains(&(&request.api_group, &request.resource))
}

#[async_trait]
impl Authorizer for Basics {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let Attributes { user, request } = *attributes;
        let known = user.is_in(UserInfo::AUTHENTICATED);
        let public = known || user.is_in(UserInfo::UNAUTHENTICATED);
        if public && is_public(request) || known && (is_discovery(request) || is_self_review(request)) {
            Decision::Allow
        } else {
            Decision::NoOpinion(String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    async fn allows(user: &UserInfo, method: Method, uri: &str) -> bool {
        let request = RequestInfo::new(&method, &uri.parse().expect("a URI")).expect("readable");
        Basics.authorize(&Attributes { user, request: &request }).await == Decision::Allow
    }

    #[tokio::test]
    async fn everybody_may_do_what_upstreams_default_roles_say() {
        let (everybody, known, nobody) = ((true, true), (false, true), (false, false));
        for (method, uri, expected) in [
            (Method::GET, "/healthz", everybody),
            (Method::GET, "/livez?verbose", everybody),
            (Method::GET, "/readyz/etcd", everybody),
            (Method::GET, "/version", everybody),
            (Method::GET, "/version/", everybody),
            (Method::POST, "/version", nobody),
            (Method::GET, "/versions", nobody),
            (Method::GET, "/metrics", nobody),
            (Method::GET, "/", nobody),
            (Method::GET, "/api", known),
            (Method::GET, "/apis/apps/v1", known),
            (Method::GET, "/openapi/v3", known),
            (Method::GET, "/apiserver", nobody),
            (Method::POST, "/api", nobody),
            (Method::GET, "/api/v1/pods", nobody),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", known),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", known),
            (Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews", known),
            (Method::GET, "/apis/authentication.k8s.io/v1/selfsubjectreviews", nobody),
            (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", nobody),
            (Method::POST, "/apis/example.com/v1/selfsubjectreviews", nobody),
        ] {
            let alice = UserInfo { name: "alice".to_owned(), ..UserInfo::default() }.authenticated();
            let anonymous = allows(&UserInfo::anonymous(), method.clone(), uri).await;
            let alice = allows(&alice, method.clone(), uri).await;
            assert_eq!((anonymous, alice), expected, "{method} {uri}");
        }
    }
}
