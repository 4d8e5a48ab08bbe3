use std::sync::Arc;

use concord_meta::{GroupResource, Status};

use crate::{
    Accept, RequestContext as _, RequestInfo, UserInfo,
    http::{Filter, Request, Response},
    respond_status,
};

/// What is known about the registration of storage versions.
pub trait StorageVersions: Send + Sync + 'static {
    /// Whether every built-in resource was registered once.
    fn is_completed(&self) -> bool;

    /// Whether a resource waits for its registration: if so, the error that was seen last.
    fn pending(&self, resource: &GroupResource) -> Option<Option<String>>;
}

/// Answers early and politely what could not be written anyway: while the version that this server stores a resource in
/// is not registered, changes are refused. What really keeps objects from being stored is the gate of the registry, which
/// sees internal writers too.
pub(crate) struct StorageVersionPrecondition<H> {
    pub(crate) inner: H,
    pub(crate) versions: Option<Arc<dyn StorageVersions>>,
}

impl<H: Filter> Filter for StorageVersionPrecondition<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let refused =
            self.versions.as_deref().and_then(|versions| refusal(versions, &request.info(), &request.user()));
        match refused {
            Some(status) => respond_status(&status, &Accept::of(&*request)),
            None => self.inner.call(request).await,
        }
    }
}

/// Upstream's table: the first line that matches decides.
fn refusal(versions: &dyn StorageVersions, info: &RequestInfo, user: &UserInfo) -> Option<Status> {
    let is = |group: &str, resource: &str| info.api_group == group && info.resource == resource;
    let is_server =
        || user.name == "system:apiserver" && user.groups.iter().any(|group| group == UserInfo::PRIVILEGED);
    let passes = versions.is_completed()
        || !info.is_resource_request
        || matches!(&*info.verb, "get" | "list" | "watch")
        || is("internal.apiserver.k8s.io", "storageversions")
        || (is("", "namespaces") && info.verb == "create" && is_server())
        || (is("coordination.k8s.io", "leases") && info.namespace == "kube-system");
    if passes {
        return None;
    }
    let resource = GroupResource::new(info.api_group.as_str(), info.resource.as_str());
    let error = versions.pending(&resource)?;
    Some(not_registered(&resource, error.as_deref()))
}

/// The answer to a change of a resource that is not registered.
pub fn not_registered(resource: &GroupResource, last_error: Option<&str>) -> Status {
    let error = last_error.unwrap_or("<nil>");
    let message = format!(
        "wait for storage version registration to complete for resource: {resource}, last seen error: {error}"
    );
    Status::service_unavailable(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{Echo, read, request};

    /// Nothing is registered but what is asked for as `done`; `broken` has failed before.
    struct Waiting;

    impl StorageVersions for Waiting {
        fn is_completed(&self) -> bool {
            false
        }

        fn pending(&self, resource: &GroupResource) -> Option<Option<String>> {
            match resource.resource.as_str() {
                "done" => None,
                "broken" => Some(Some("no store".to_owned())),
                _ => Some(None),
            }
        }
    }

    async fn ask(method: &str, uri: &str, user: &UserInfo) -> (u16, String) {
        let filter = StorageVersionPrecondition { inner: Echo, versions: Some(Arc::new(Waiting)) };
        let mut request = request(method, uri);
        request.extensions_mut().insert(Arc::new(user.clone()));
        let response = filter.call(request.into()).await;
        assert!(!response.headers().contains_key("retry-after"));
        read(response).await
    }

    fn user(name: &str, group: &str) -> UserInfo {
        UserInfo { name: name.to_owned(), groups: vec![group.to_owned()], ..UserInfo::default() }
    }

    #[tokio::test]
    async fn the_table_is_upstreams() {
        let (server, forged) = (user("system:apiserver", "system:masters"), user("system:apiserver", "x"));
        let other = user("alice", "system:masters");
        for (method, uri, user, passes) in [
            ("POST", "/healthz", &other, true),
            ("POST", "/apis/apps", &other, true),
            ("GET", "/api/v1/pods/x", &other, true),
            ("HEAD", "/api/v1/namespaces/a/pods/x", &other, true),
            ("GET", "/api/v1/pods?watch=1", &other, true),
            ("GET", "/api/v1/namespaces/a/pods/x/exec", &other, true),
            ("POST", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions", &other, true),
            ("PUT", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/x/status", &other, true),
            ("POST", "/api/v1/namespaces", &server, true),
            ("POST", "/api/v1/namespaces", &other, false),
            ("POST", "/api/v1/namespaces", &forged, false),
            ("PUT", "/api/v1/namespaces/a", &server, false),
            ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", &other, true),
            ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", &forged, true),
            ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", &server, false),
            ("POST", "/apis/example.com/v1/done", &other, true),
            ("POST", "/api/v1/namespaces/a/pods", &server, false),
            ("POST", "/api/v1/namespaces/a/pods/x/binding", &other, false),
            ("POST", "/api/v1/namespaces/a/pods/x/exec", &other, false),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/x/scale", &other, false),
            ("DELETE", "/api/v1/namespaces/a/pods", &other, false),
            ("DELETE", "/api/v1/namespaces/a/pods/x", &other, false),
            ("POST", "/api/v1/namespaces/a/pods?dryRun=All", &other, false),
            ("OPTIONS", "/api/v1/namespaces/a/pods", &other, false),
        ] {
            let status = ask(method, uri, user).await.0;
            assert_eq!(status, if passes { 200 } else { 503 }, "{method} {uri} by {}", user.name);
        }
    }

    #[tokio::test]
    async fn the_answer_is_upstreams() {
        let body = |resource: &str, error: &str| {
            let text = "wait for storage version registration to complete for resource: ";
            let start = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":""#;
            let end = r#"","reason":"ServiceUnavailable","code":503}"#;
            (503, format!("{start}{text}{resource}, last seen error: {error}{end}\n"))
        };
        let alice = user("alice", "x");
        assert_eq!(ask("POST", "/api/v1/namespaces/a/pods", &alice).await, body("pods", "\\u003cnil\\u003e"));
        let uri = "/apis/apps/v1/namespaces/a/broken/x/status";
        assert_eq!(ask("PUT", uri, &alice).await, body("broken.apps", "no store"));
    }
}
