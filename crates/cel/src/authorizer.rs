//! Authorization checks inside of expressions.

use std::fmt;
use std::sync::Arc;

use concord_meta::names;

use crate::decl::Decl;
use crate::error::EvalError;
use crate::eval::Context;
use crate::library::{Run, no_overload};
use crate::types::Type;
use crate::value::Val;

/// Who decides. The caller implements it; it is asked with the identity of the request unless the check says that it
/// is for a service account.
pub trait Authorizer {
    /// Decides one check.
    fn authorize(&self, check: &Check) -> Decision;
}

/// One question to the authorizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The service account that is asked for, as namespace and name; otherwise the user of the request.
    pub service_account: Option<(String, String)>,
    /// What is to be done.
    pub verb: String,
    /// With what.
    pub target: CheckTarget,
}

/// What a check is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// A path that is no resource.
    Path(String),
    /// A resource.
    Resource(ResourceTarget),
}

/// A resource that is checked; what is empty is not restricted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceTarget {
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// A field selector as written.
    pub field_selector: String,
    /// A label selector as written.
    pub label_selector: String,
}

/// The answer to a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

/// The variable `authorizer`, and what its methods make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizerValue {
    service_account: Option<Arc<(String, String)>>,
    step: Step,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Authorizer,
    Path(Arc<str>),
    Group(Arc<str>),
    Resource(Arc<ResourceTarget>),
    Decision(Arc<Decision>),
}

impl AuthorizerValue {
    /// The value of the variable `authorizer`.
    pub fn new() -> Self {
        Self { service_account: None, step: Step::Authorizer }
    }

    /// The value of `authorizer.requestResource`.
    pub fn request_resource(target: ResourceTarget) -> Self {
        Self { service_account: None, step: Step::Resource(Arc::new(target)) }
    }

    /// The declaration of a variable with this value.
    pub fn declaration(&self) -> Decl {
        Decl::simple(Type::Opaque(Arc::from(self.type_name()), Vec::new()))
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.step {
            Step::Authorizer => "kubernetes.authorization.Authorizer",
            Step::Path(_) => "kubernetes.authorization.PathCheck",
            Step::Group(_) => "kubernetes.authorization.GroupCheck",
            Step::Resource(_) => "kubernetes.authorization.ResourceCheck",
            Step::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn then<'a>(&self, step: Step) -> Result<Val<'a>, EvalError> {
        Ok(Val::Authorizer(Self { service_account: self.service_account.clone(), step }))
    }
}

impl Default for AuthorizerValue {
    fn default() -> Self {
        Self::new()
    }
}

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(crate) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "path" => path,
        "group" => group,
        "serviceAccount" => service_account,
        "resource" => resource,
        "subresource" => |args, _| narrow(args, |target, text| target.subresource = text),
        "namespace" => |args, _| narrow(args, |target, text| target.namespace = text),
        "name" => |args, _| narrow(args, |target, text| target.name = text),
        "fieldSelector" => |args, _| narrow(args, |target, text| target.field_selector = text),
        "labelSelector" => |args, _| narrow(args, |target, text| target.label_selector = text),
        "check" => check,
        "allowed" => |args, _| decision(args, |decision| Val::Bool(decision.allowed)),
        "reason" => |args, _| decision(args, |decision| Val::text(decision.reason.as_str())),
        "errored" => |args, _| decision(args, |decision| Val::Bool(decision.error.is_some())),
        "error" => {
            |args, _| decision(args, |decision| Val::text(decision.error.as_deref().unwrap_or_default()))
        }
        _ => return None,
    })
}

fn path<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Authorizer(value @ AuthorizerValue { step: Step::Authorizer, .. }), Val::String(path)] => {
            if path.trim().is_empty() {
                return Err(EvalError::new("path must not be empty"));
            }
            value.then(Step::Path(Arc::from(&**path)))
        }
        _ => Err(no_overload()),
    }
}

fn group<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Authorizer(value @ AuthorizerValue { step: Step::Authorizer, .. }), Val::String(group)] => {
            value.then(Step::Group(Arc::from(&**group)))
        }
        _ => Err(no_overload()),
    }
}

fn service_account<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let [Val::Authorizer(value), Val::String(namespace), Val::String(name)] = args else {
        return Err(no_overload());
    };
    if value.step != Step::Authorizer {
        return Err(no_overload());
    }
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(EvalError::new("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(EvalError::new("Invalid service account namespace"));
    }
    let account = Arc::new((namespace.to_string(), name.to_string()));
    Ok(Val::Authorizer(AuthorizerValue { service_account: Some(account), step: Step::Authorizer }))
}

fn resource<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Authorizer(value), Val::String(resource)] => {
            let Step::Group(group) = &value.step else { return Err(no_overload()) };
            if resource.trim().is_empty() {
                return Err(EvalError::new("resource must not be empty"));
            }
            let target = ResourceTarget {
                group: group.to_string(),
                resource: resource.to_string(),
                ..ResourceTarget::default()
            };
            value.then(Step::Resource(Arc::new(target)))
        }
        _ => Err(no_overload()),
    }
}

fn narrow<'a>(args: &[Val<'a>], set: fn(&mut ResourceTarget, String)) -> Answer<'a> {
    match args {
        [Val::Authorizer(value), Val::String(text)] => {
            let Step::Resource(target) = &value.step else { return Err(no_overload()) };
            let mut target = (**target).clone();
            set(&mut target, text.to_string());
            value.then(Step::Resource(Arc::new(target)))
        }
        _ => Err(no_overload()),
    }
}

fn check<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::Authorizer(value), Val::String(verb)] = args else { return Err(no_overload()) };
    let target = match &value.step {
        Step::Path(path) => CheckTarget::Path(path.to_string()),
        Step::Resource(target) => CheckTarget::Resource((**target).clone()),
        _ => return Err(no_overload()),
    };
    let Some(authorizer) = context.authorizer else {
        return Err(EvalError::new("no authorizer"));
    };
    let service_account = value.service_account.as_deref().cloned();
    let decision = authorizer.authorize(&Check { service_account, verb: verb.to_string(), target });
    value.then(Step::Decision(Arc::new(decision)))
}

fn decision<'a>(args: &[Val<'a>], read: fn(&Decision) -> Val<'static>) -> Answer<'a> {
    match args {
        [Val::Authorizer(AuthorizerValue { step: Step::Decision(decision), .. })] => Ok(read(decision)),
        _ => Err(no_overload()),
    }
}

impl fmt::Debug for dyn Authorizer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorizer")
    }
}
