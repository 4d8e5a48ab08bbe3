//! Who may be whom.
//!
//! There are several ways to be allowed to, and any of them will do. The constrained ones (KEP-5284) let a user do only
//! some things as somebody else: they need the verb `impersonate-on:<mode>:<verb>` on what is asked for, and
//! `impersonate:<mode>` on whom the user wants to be. The old one needs `impersonate` on whom the user wants to be, and
//! then everything can be done. Each mode but the old one is for some kind of user only.

use std::borrow::Cow;

use concord_meta::{Status, UserInfo, field, go, names};

use super::super::authorization::describe;
use crate::{Attributes, Authorizer, RequestInfo};

const AUTHENTICATION: &str = "authentication.k8s.io";
const NODES: &str = "system:nodes";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// From so many on, it is first asked whether all are allowed at once.
const MANY: usize = 4;

/// Whether a mode is for this user, who wants to be that one.
type Applies = fn(&UserInfo, &UserInfo) -> bool;

/// The modes in the order they are tried. Whoever fits none may still be allowed in the old way.
const CONSTRAINED: [(&str, Applies); 4] = [
    ("associated-node", |user, wanted| only_name(wanted) && is_own_node(user, &wanted.name)),
    ("arbitrary-node", |_, wanted| only_name(wanted) && node_name(&wanted.name).is_some()),
    ("serviceaccount", |_, wanted| only_name(wanted) && service_account(&wanted.name).is_some()),
    ("user-info", |_, wanted| node_name(&wanted.name).is_none() && service_account(&wanted.name).is_none()),
];

/// The user that the request is made as, and the verb that allows only some things as that user, or nothing.
///
/// # Errors
///
/// What the first mode that applies says.
pub(super) async fn impersonated(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
    wanted: &UserInfo,
) -> Result<(UserInfo, String), Status> {
    let mut refused = None;
    for (mode, applies) in CONSTRAINED {
        if !applies(attributes.user, wanted) {
            continue;
        }
        match constrained(authorizer, attributes, wanted, mode).await {
            Ok(user) => return Ok((user, format!("impersonate:{mode}"))),
            Err(status) => drop(refused.get_or_insert(status)),
        }
    }
    let old = Check { authorizer, user: attributes.user, verb: "impersonate".to_owned(), mode: None };
    let user = old.all(wanted).await.map_err(|status| refused.unwrap_or(status))?;
    Ok((user, String::new()))
}

async fn constrained(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
    wanted: &UserInfo,
    mode: &'static str,
) -> Result<UserInfo, Status> {
    // On a node of one's own, authorizers see only that there is one: it must not matter which.
    let anonymous_node;
    let user = match mode {
        "associated-node" => {
            let keys = attributes.user.extra.keys().cloned().collect();
            let key = "authentication.kubernetes.io/associated-node-keys".to_owned();
            anonymous_node = UserInfo { extra: [(key, keys)].into(), ..attributes.user.clone() };
            &anonymous_node
        }
        _ => attributes.user,
    };
    let mut on = attributes.request.clone();
    on.verb = Cow::Owned(format!("impersonate-on:{mode}:{}", attributes.request.verb));
    ask(authorizer, user, &on).await?;
    Check { authorizer, user, verb: format!("impersonate:{mode}"), mode: Some(mode) }.all(wanted).await
}

/// Whether `user` may be somebody, in one mode.
struct Check<'a> {
    authorizer: &'a dyn Authorizer,
    user: &'a UserInfo,
    verb: String,
    /// None is the old way.
    mode: Option<&'static str>,
}

impl Check<'_> {
    /// Asks about every part of whom the user wants to be.
    async fn all(&self, wanted: &UserInfo) -> Result<UserInfo, Status> {
        let mut actual = wanted.clone();
        self.name(wanted, &mut actual).await?;
        if !wanted.uid.is_empty() {
            self.ask(&self.about(AUTHENTICATION, "uids", &wanted.uid)).await?;
        }
        self.groups(&wanted.groups).await?;
        self.extra(wanted).await?;
        let group = match actual.name == UserInfo::ANONYMOUS {
            true => UserInfo::UNAUTHENTICATED,
            false => UserInfo::AUTHENTICATED,
        };
        if !actual.is_in(group) && !actual.is_in(UserInfo::UNAUTHENTICATED) {
            actual.groups.push(group.to_owned());
        }
        Ok(actual)
    }

    async fn name(&self, wanted: &UserInfo, actual: &mut UserInfo) -> Result<(), Status> {
        let mut about = self.about(self.group_of_names(), "users", &wanted.name);
        if let (Some(mode), Some(node)) = (self.mode, node_name(&wanted.name)) {
            about = self.about(AUTHENTICATION, "nodes", if mode == "associated-node" { "*" } else { node });
            if !wanted.groups.is_empty() {
                return Err(self.refuse(&about, &no_groups("a node", &wanted.groups)));
            }
            actual.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = service_account(&wanted.name) {
            about = self.about(self.group_of_names(), "serviceaccounts", name);
            namespace.clone_into(&mut about.namespace);
            if self.mode.is_some() && !wanted.groups.is_empty() {
                return Err(self.refuse(&about, &no_groups("a service account", &wanted.groups)));
            }
            if wanted.groups.is_empty() {
                actual.groups =
                    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            }
        }
        self.ask(&about).await
    }

    async fn groups(&self, groups: &[String]) -> Result<(), Status> {
        let about = |name: &str| self.about(self.group_of_names(), "groups", name);
        if self.mode.is_some() {
            if groups.iter().any(String::is_empty) {
                return Err(self.refuse(&about(""), "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == UserInfo::PRIVILEGED) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refuse(&about(UserInfo::PRIVILEGED), why));
            }
            if groups.len() >= MANY && self.ask(&about("*")).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.ask(&about(group)).await?;
        }
        Ok(())
    }

    async fn extra(&self, wanted: &UserInfo) -> Result<(), Status> {
        let about = |key: &str, value: &str| {
            let mut about = self.about(AUTHENTICATION, "userextras", value);
            key.clone_into(&mut about.subresource);
            about
        };
        let pairs: Vec<(&String, &String)> = wanted
            .extra
            .iter()
            .flat_map(|(key, values)| values.iter().map(move |value| (key, value)))
            .collect();
        if self.mode.is_some() && !pairs.is_empty() {
            if let Some(why) = wanted.extra.iter().find_map(|(key, values)| wrong_extra(key, values)) {
                return Err(self.refuse(&about("", ""), &why));
            }
            if pairs.len() >= MANY && self.ask(&about("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, value) in pairs {
            self.ask(&about(key, value)).await?;
        }
        Ok(())
    }

    /// Names were in the core group when there was only the old way.
    fn group_of_names(&self) -> &'static str {
        if self.mode.is_some() { AUTHENTICATION } else { "" }
    }

    fn about(&self, group: &str, resource: &str, name: &str) -> RequestInfo {
        RequestInfo {
            is_resource_request: true,
            verb: Cow::Owned(self.verb.clone()),
            api_group: group.to_owned(),
            api_version: "v1".to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..RequestInfo::default()
        }
    }

    async fn ask(&self, request: &RequestInfo) -> Result<(), Status> {
        ask(self.authorizer, self.user, request).await
    }

    fn refuse(&self, request: &RequestInfo, reason: &str) -> Status {
        Status::not_authorized(&describe(&Attributes { user: self.user, request }), reason)
    }
}

async fn ask(authorizer: &dyn Authorizer, user: &UserInfo, request: &RequestInfo) -> Result<(), Status> {
    let attributes = Attributes { user, request };
    let decision = authorizer.authorize(&attributes).await;
    match decision.is_allowed() {
        true => Ok(()),
        false => Err(Status::not_authorized(&describe(&attributes), decision.reason())),
    }
}

fn no_groups(whom: &str, groups: &[String]) -> String {
    format!("when impersonating {whom}, cannot impersonate groups {}", go::quote_slice(groups))
}

fn only_name(wanted: &UserInfo) -> bool {
    wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty()
}

/// The node that a user name stands for.
fn node_name(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    names::dns1123_subdomain(name).is_empty().then_some(name)
}

/// The namespace and the name of the service account that a user name stands for.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let good = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    good.then_some((namespace, name))
}

/// Whether the user is a service account whose token is bound to this node.
fn is_own_node(user: &UserInfo, wanted: &str) -> bool {
    let Some([own]) = user.extra.get(NODE_NAME).map(Vec::as_slice) else { return false };
    service_account(&user.name).is_some() && node_name(wanted) == Some(own)
}

/// Why nobody can have this among what else is known about a user.
fn wrong_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let errors = domain_prefixed_path(key);
    if !errors.is_empty() {
        let errors = field::aggregate(&errors);
        return Some(format!("impersonating an invalid key in extra is not allowed: {errors}"));
    }
    if key.chars().any(char::is_uppercase) {
        let key = go::quote(key);
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key}"));
    }
    let empty = values.iter().any(String::is_empty);
    empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

fn domain_prefixed_path(key: &str) -> Vec<field::Error> {
    let path = field::Path::new("extra").child("key");
    let (host, rest) = match key.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return vec![field::Error::invalid(&path, key, why)];
        }
    };
    let problems = names::dns1123_subdomain(host);
    let mut errors: Vec<_> =
        problems.into_iter().map(|problem| field::Error::invalid(&path, host, problem)).collect();
    let is_good = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !rest.chars().all(is_good) {
        let why = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(field::Error::invalid(&path, rest, why));
    }
    errors
}
