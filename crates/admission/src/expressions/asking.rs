//! The authorizer, as expressions ask it.

use std::borrow::Cow;

use concord_cel::{Authorizer, Check, CheckTarget, Decision, ResourceTarget};
use concord_meta::UserInfo;
use concord_registry::Attributes;
use concord_server::RequestInfo;
use futures_util::FutureExt as _;

use crate::request::Request;

/// Asks what the user of a request may do.
pub(crate) struct Asking<'a> {
    user: &'a UserInfo,
    authorizer: &'a dyn concord_server::Authorizer,
    /// What the request is about.
    pub(super) about: ResourceTarget,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(request: &Request<'a>) -> Self {
        let Attributes { context, subresource, name, .. } = *request.attributes;
        let about = ResourceTarget {
            group: request.resource.group.clone(),
            resource: request.resource.resource.clone(),
            subresource: subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: name.to_owned(),
            ..ResourceTarget::default()
        };
        Self { user: &context.user, authorizer: &*request.shared.authorizer, about }
    }
}

impl Authorizer for Asking<'_> {
    fn authorize(&self, check: &Check) -> Decision {
        let account =
            check.service_account.as_ref().map(|(namespace, name)| service_account(namespace, name));
        let request = question(check);
        let attributes =
            concord_server::Attributes { user: account.as_ref().unwrap_or(self.user), request: &request };
        // Expressions are not asynchronous. Neither are authorizers that decide by what this server knows; one that
        // had to ask somebody else would be an error here, and not a stall.
        match self.authorizer.explain(&attributes).now_or_never() {
            Some((decision, reason)) => Decision { allowed: decision.is_allowed(), reason, error: None },
            None => {
                Decision { error: Some("the authorizer has no answer yet".to_owned()), ..Decision::default() }
            }
        }
    }
}

fn service_account(namespace: &str, name: &str) -> UserInfo {
    UserInfo {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            UserInfo::AUTHENTICATED.to_owned(),
        ],
        ..UserInfo::default()
    }
}

fn question(check: &Check) -> RequestInfo {
    let verb = Cow::Owned(check.verb.clone());
    match &check.target {
        CheckTarget::Path(path) => RequestInfo { verb, path: path.clone(), ..RequestInfo::default() },
        CheckTarget::Resource(target) => {
            let ResourceTarget {
                group,
                resource,
                subresource,
                namespace,
                name,
                field_selector,
                label_selector,
            } = target.clone();
            RequestInfo {
                is_resource_request: true,
                verb,
                api_group: group,
                api_version: "*".to_owned(),
                namespace,
                resource,
                subresource,
                name,
                field_selector,
                label_selector,
                ..RequestInfo::default()
            }
        }
    }
}
