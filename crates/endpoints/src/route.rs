//! Which path and method means what.

use concord_registry::{Resource, Subresource, SubresourceKind, Verb};
use concord_server::RequestInfo;
use http::Method;

use crate::set::{ApiSet, Endpoint, Origin};

/// What a request for a resource is about.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) subresource: Option<&'a Subresource>,
    pub(crate) action: Action,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    /// A list, or a watch if the parameters say so.
    List,
    /// A watch that the path asks for.
    WatchPath,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A connection to what the object stands for.
    Connect,
}

/// Why a request is about nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Miss {
    /// Nobody knows the path.
    Path,
    /// The group is known, the resource is not.
    Resource,
    /// The resource is known, the method is not for it.
    Method,
    /// The custom resource is known, the subresource is not.
    CustomSubresource,
    /// The custom resource does not have the verb.
    CustomVerb,
    /// It has, but the path does not say of which object.
    CustomName,
}

/// Finds out what a request is about.
pub(crate) fn route<'a>(set: &'a ApiSet, info: &RequestInfo, method: &Method) -> Result<Route<'a>, Miss> {
    let group = set.group(&info.api_group).filter(|_| prefix_fits(info)).ok_or(Miss::Path)?;
    let unknown = match group.origin() {
        Origin::BuiltIn => Miss::Resource,
        Origin::Custom => Miss::Path,
    };
    let version = group.version(&info.api_version);
    let endpoint =
        version.and_then(|version| version.resource(&info.resource)).ok_or_else(|| unknown.clone())?;
    if !scope_fits(&endpoint.resource, info) {
        return Err(unknown);
    }
    match group.origin() {
        Origin::BuiltIn => built_in(endpoint, info, method),
        Origin::Custom => custom(endpoint, info),
    }
}

/// The core group is below `/api`, all others are below `/apis`; nothing is below `//`.
fn prefix_fits(info: &RequestInfo) -> bool {
    (info.api_prefix == "api") == info.api_group.is_empty() && !info.path.starts_with("//")
}

/// Whether there can be such a path, whatever its method.
fn scope_fits(resource: &Resource, info: &RequestInfo) -> bool {
    if resource.namespaced {
        // Across namespaces there are only collections.
        return !info.namespace.is_empty() || info.parts.len() == 1;
    }
    // The path of a namespace object looks as if it were in that namespace.
    let is_namespace = resource.names.plural == "namespaces" && info.namespace == info.name;
    info.namespace.is_empty() || is_namespace
}

/// The methods of a path, the verb each needs, and what it does.
type Methods = [(Verb, Method, Action)];

const COLLECTION: &Methods = &[
    (Verb::List, Method::GET, Action::List),
    (Verb::Create, Method::POST, Action::Create),
    (Verb::DeleteCollection, Method::DELETE, Action::DeleteCollection),
];
const COLLECTION_EVERYWHERE: &Methods = &[(Verb::List, Method::GET, Action::List)];
const OBJECT: &Methods = &[
    (Verb::Get, Method::GET, Action::Get),
    (Verb::Update, Method::PUT, Action::Update),
    (Verb::Patch, Method::PATCH, Action::Patch),
    (Verb::Delete, Method::DELETE, Action::Delete),
];
const SUBRESOURCE: &Methods = &[
    (Verb::Get, Method::GET, Action::Get),
    (Verb::Create, Method::POST, Action::Create),
    (Verb::Update, Method::PUT, Action::Update),
    (Verb::Patch, Method::PATCH, Action::Patch),
    (Verb::Delete, Method::DELETE, Action::Delete),
];
const WATCH_PATH: &Methods = &[(Verb::Watch, Method::GET, Action::WatchPath)];

/// What a method does on a path; a path that has no method at all does not exist.
fn find(methods: &Methods, verbs: &[Verb], method: &Method) -> Result<Action, Miss> {
    let allowed = || methods.iter().filter(|(verb, ..)| verbs.contains(verb));
    let found = allowed().find(|(_, candidate, _)| candidate == method);
    let miss = || if allowed().next().is_some() { Miss::Method } else { Miss::Resource };
    found.map(|(_, _, action)| *action).ok_or_else(miss)
}

fn built_in<'a>(endpoint: &'a Endpoint, info: &RequestInfo, method: &Method) -> Result<Route<'a>, Miss> {
    let resource = &*endpoint.resource;
    let of_resource = |methods| {
        let action = find(methods, &resource.verbs, method)?;
        Ok(Route { endpoint, subresource: None, action })
    };
    match info.parts.len() {
        _ if info.verb == "proxy" => Err(Miss::Resource),
        1 | 2 if is_watch_path(info) => of_resource(WATCH_PATH),
        _ if is_watch_path(info) => Err(Miss::Resource),
        1 if resource.namespaced && info.namespace.is_empty() => of_resource(COLLECTION_EVERYWHERE),
        1 => of_resource(COLLECTION),
        2 => of_resource(OBJECT),
        length => {
            let found = resource.subresource(&info.subresource);
            let found = found.filter(|found| length == 3 || takes_a_path(found)).ok_or(Miss::Resource)?;
            let action = find(SUBRESOURCE, &found.verbs, method)?;
            let connects = matches!(found.behaviour, SubresourceKind::Unreachable(_));
            let action = if connects { Action::Connect } else { action };
            Ok(Route { endpoint, subresource: Some(found), action })
        }
    }
}

/// Whether the path itself asks for a watch, as the deprecated ones do.
fn is_watch_path(info: &RequestInfo) -> bool {
    let at = if info.api_prefix == "api" { 2 } else { 3 };
    info.verb == "watch" && info.path.trim_start_matches('/').split('/').nth(at) == Some("watch")
}

/// What is below a proxied object is the object's business.
fn takes_a_path(subresource: &Subresource) -> bool {
    matches!(subresource.behaviour, SubresourceKind::Unreachable(_)) && subresource.name == "proxy"
}

/// Custom resources have no table of paths: whatever follows the subresource is ignored, HEAD is a GET, and what
/// they cannot do is told with the verb.
fn custom<'a>(endpoint: &'a Endpoint, info: &RequestInfo) -> Result<Route<'a>, Miss> {
    let resource = &*endpoint.resource;
    let subresource = match info.subresource.as_str() {
        "" => None,
        name => Some(resource.subresource(name).ok_or(Miss::CustomSubresource)?),
    };
    let (verb, action) = match &*info.verb {
        "get" => (Verb::Get, Action::Get),
        "list" => (Verb::List, Action::List),
        "watch" if is_watch_path(info) => (Verb::Watch, Action::WatchPath),
        "watch" => (Verb::Watch, Action::List),
        "create" => (Verb::Create, Action::Create),
        "update" => (Verb::Update, Action::Update),
        "patch" => (Verb::Patch, Action::Patch),
        "delete" => (Verb::Delete, Action::Delete),
        "deletecollection" => (Verb::DeleteCollection, Action::DeleteCollection),
        _ => return Err(Miss::CustomVerb),
    };
    let across = matches!(action, Action::List | Action::WatchPath);
    if resource.namespaced && info.namespace.is_empty() && !across {
        return Err(Miss::Path);
    }
    let verbs = subresource.map_or(&resource.verbs, |subresource| &subresource.verbs);
    if !verbs.contains(&verb) {
        return Err(Miss::CustomVerb);
    }
    if info.parts.len() == 1 && matches!(action, Action::Update | Action::Patch) {
        return Err(Miss::CustomName);
    }
    Ok(Route { endpoint, subresource, action })
}
