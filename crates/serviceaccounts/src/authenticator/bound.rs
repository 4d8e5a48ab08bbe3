//! Tokens of a TokenRequest.

use std::collections::BTreeMap;

use concord_meta::UserInfo;
use concord_registry::{Object, ObjectName, metadata};
use concord_replica::Snapshot;

use crate::{
    Objects,
    claims::{Bound, Claims, LEEWAY, Reference, username},
    objects::Kind,
};

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

const INVALIDATED: &str = "service account token has been invalidated";

/// The objects that must be there. The node of a pod is only told: it may go, the pod goes with it.
fn bindings(bound: &Bound) -> impl Iterator<Item = (Kind, &Reference)> {
    let node = bound.node.as_ref().filter(|_| bound.pod.is_none());
    let found = [(Kind::Secret, bound.secret.as_ref()), (Kind::Pod, bound.pod.as_ref()), (Kind::Node, node)];
    found.into_iter().filter_map(|(kind, reference)| Some((kind, reference?)))
}

fn name<'a>(bound: &'a Bound, kind: Kind, reference: &'a Reference) -> ObjectName<'a> {
    let namespace = if kind == Kind::Node { "" } else { bound.namespace.as_str() };
    ObjectName { namespace, name: &reference.name }
}

/// Everything that the token depends on.
pub(super) fn references(bound: &Bound) -> Vec<(Kind, ObjectName<'_>)> {
    let account = [(Kind::ServiceAccount, &bound.account)];
    let all = account.into_iter().chain(bindings(bound));
    all.map(|(kind, reference)| (kind, name(bound, kind, reference))).collect()
}

/// Whether the account and all else is there and the same as when the token was made. Answers until when that holds if
/// nobody changes anything: objects that are being deleted count for a little longer.
pub(super) fn check(
    objects: &Objects,
    bound: &Bound,
    snapshot: &Snapshot,
    now: i64,
) -> Result<Option<i64>, String> {
    let Bound { namespace, account, .. } = bound;
    let found = objects.get(snapshot, Kind::ServiceAccount, name(bound, Kind::ServiceAccount, account));
    let found = found.map_err(|status| status.message)?;
    let uid = metadata(&found).uid();
    if uid != account.uid {
        return Err(format!("service account UID ({uid}) does not match claim ({})", account.uid));
    }
    let mut until = end(&found);
    if until.is_some_and(|until| now > until) {
        return Err(format!("service account {namespace}/{} has been deleted", account.name));
    }
    for (kind, reference) in bindings(bound) {
        let found = objects.get(snapshot, kind, name(bound, kind, reference));
        let found = found.map_err(|_| INVALIDATED.to_owned())?;
        let uid = metadata(&found).uid();
        if uid != reference.uid {
            let (kind, said) = (kind_name(kind), &reference.uid);
            return Err(format!(
                "{kind} UID ({uid}) does not match service account {kind} ref claim ({said})"
            ));
        }
        let end = end(&found);
        if end.is_some_and(|end| now > end) {
            return Err(INVALIDATED.to_owned());
        }
        until = until.into_iter().chain(end).min();
    }
    Ok(until)
}

/// Until when an object counts that is being deleted.
fn end(object: &Object) -> Option<i64> {
    let deleted = metadata(object).deletion_timestamp()?;
    Some(deleted.unix.saturating_add(LEEWAY))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Pod => "pod",
        Kind::Secret => "secret",
        Kind::Namespace | Kind::ServiceAccount => "object",
    }
}

/// The user that the token stands for.
pub(super) fn user(bound: &Bound, claims: &Claims) -> UserInfo {
    let mut extra = BTreeMap::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if let Some(Reference { name, uid }) =
        bound.pod.as_ref().filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty())
    {
        add(POD_NAME, name);
        add(POD_UID, uid);
    }
    if !claims.id.is_empty() {
        add(UserInfo::CREDENTIAL_ID, &claims.credential_id());
    }
    if let Some(Reference { name, uid }) = bound.node.as_ref().filter(|node| !node.name.is_empty()) {
        add(NODE_NAME, name);
        add(NODE_UID, uid);
    }
    UserInfo { extra, ..account_user(&bound.namespace, &bound.account) }
}

/// A service account as a user.
pub(super) fn account_user(namespace: &str, account: &Reference) -> UserInfo {
    UserInfo {
        name: username(namespace, &account.name),
        uid: account.uid.clone(),
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        extra: BTreeMap::new(),
    }
}
