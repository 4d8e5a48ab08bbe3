use std::{sync::Arc, time::Instant};

use concord_meta::{RequestAttributes, Status};
use http::{HeaderValue, header::X_CONTENT_TYPE_OPTIONS};

use crate::{
    Accept, Attributes, Authorizer, Decision, RequestContext as _,
    http::{Filter, Request, Response},
    metrics::Metrics,
    respond_status,
};

/// Refuses what the user may not do. Who has no opinion does not allow anything.
pub(crate) struct Authorization<H> {
    pub(crate) inner: H,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) metrics: Arc<Metrics>,
}

impl<H: Filter> Filter for Authorization<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let (user, info) = (request.user(), request.info());
        let attributes = Attributes { user: &user, request: &info };
        let begun = Instant::now();
        let decision = match request.audit() {
            None => self.authorizer.authorize(&attributes).await,
            // Who writes down what happens writes down why.
            Some(audit) => {
                let (decision, reason) = self.authorizer.explain(&attributes).await;
                let word = if decision.is_allowed() { "allow" } else { "forbid" };
                audit.annotate("authorization.k8s.io/decision", word);
                audit.annotate("authorization.k8s.io/reason", &reason);
                decision
            }
        };
        self.metrics.access().authorization(&decision, begun.elapsed());
        match decision {
            Decision::Allow => self.inner.call(request).await,
            Decision::Deny(reason) | Decision::NoOpinion(reason) => {
                tracing::debug!(user = user.name, uri = %request.uri(), reason, "Forbidden.");
                let status = Status::not_authorized(&describe(&attributes), &reason);
                let mut response = respond_status(&status, &Accept::of(&*request));
                let no_sniff = HeaderValue::from_static("nosniff");
                response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, no_sniff);
                response
            }
        }
    }
}

/// What an answer says about a request that is forbidden.
pub(super) fn describe<'a>(attributes: &Attributes<'a>) -> RequestAttributes<'a> {
    let (user, info) = (attributes.user, attributes.request);
    RequestAttributes {
        user: &user.name,
        verb: &info.verb,
        group: &info.api_group,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
        name: &info.name,
        path: &info.path,
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::http::testing::{Echo, read, request};

    struct Says(Decision);

    #[async_trait]
    impl Authorizer for Says {
        async fn authorize(&self, _: &Attributes<'_>) -> Decision {
            self.0.clone()
        }
    }

    async fn ask(decision: Decision, uri: &str) -> (u16, String) {
        let authorizer = Arc::new(Says(decision));
        let filter = Authorization { inner: Echo, authorizer, metrics: Arc::new(Metrics::new()) };
        let response = filter.call(request("GET", uri).into()).await;
        if response.status() == 403 {
            assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
        read(response).await
    }

    #[tokio::test]
    async fn only_what_is_allowed_gets_through() {
        let deny = |reason: &str| Decision::Deny(reason.to_owned());
        let unknown = || Decision::NoOpinion(String::new());
        assert_eq!(ask(Decision::Allow, "/x").await, (200, "/x".to_owned()));
        for (decision, uri, message) in [
            (
                unknown(),
                "/api/v1/namespaces/a/pods/b/log",
                r#"pods \"b\" is forbidden: User \"system:anonymous\" cannot get resource \"pods/log\" in API group \"\" in the namespace \"a\"""#,
            ),
            (
                deny("no"),
                "/apis/apps/v1/deployments",
                r#"deployments.apps is forbidden: User \"system:anonymous\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope: no""#,
            ),
            (
                unknown(),
                "/a%3Cb",
                r#"forbidden: User \"system:anonymous\" cannot get path \"/a\u0026lt;b\"""#,
            ),
        ] {
            let (status, body) = ask(decision, uri).await;
            assert_eq!(status, 403);
            assert!(body.contains(&format!(r#""message":"{message}"#)), "{body}\nshould have\n{message}");
        }
    }
}
