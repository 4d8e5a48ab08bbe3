//! The expressions of admission: what match conditions of webhooks and the expressions of policies can use.

use std::sync::Arc;

use crate::authorizer::{AuthorizerValue, ResourceTarget};
use crate::decl::{Decl, DeclKind};
use crate::message;
use crate::program::{CompileError, Env, Program};
use crate::types::Type;
use crate::version::Version;

/// Which variables there are besides those that there always are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Optional {
    /// The parameters of a policy.
    pub params: bool,
    /// Whom to ask who may do what.
    pub authorizer: bool,
}

/// The objects, the request, the namespace, and what else is asked for.
pub fn environment(with: Optional) -> Env {
    let mut env = Env::new(Version::CURRENT)
        .variable("object", Decl::dynamic())
        .variable("oldObject", Decl::dynamic())
        .variable("namespaceObject", namespace())
        .variable("request", request());
    if with.params {
        env = env.variable("params", Decl::dynamic());
    }
    if with.authorizer {
        let resource = AuthorizerValue::request_resource(ResourceTarget::default());
        env = env
            .variable("authorizer", AuthorizerValue::new().declaration())
            .variable("authorizer.requestResource", resource.declaration());
    }
    env
}

/// What the expression of an `applyConfiguration` has to be of.
pub fn apply_configuration() -> Type {
    Type::Opaque(Arc::from(message::OBJECT), Vec::new())
}

/// What the expression of a `jsonPatch` has to be of.
pub fn json_patch() -> Type {
    Type::list(Type::Opaque(Arc::from(message::JSON_PATCH), Vec::new()))
}

fn text() -> Decl {
    Decl::simple(Type::String)
}

fn object<const N: usize>(name: &str, fields: [(&str, Decl); N]) -> Decl {
    Decl::object(name, fields.map(|(name, decl)| (name.to_owned(), decl)))
}

fn request() -> Decl {
    let kind =
        || object("kubernetes.GroupVersionKind", [("group", text()), ("version", text()), ("kind", text())]);
    let resource = || {
        let fields = [("group", text()), ("version", text()), ("resource", text())];
        object("kubernetes.GroupVersionResource", fields)
    };
    let user = object(
        "kubernetes.UserInfo",
        [
            ("username", text()),
            ("uid", text()),
            ("groups", Decl::list(text())),
            ("extra", Decl::map(Decl::list(text()))),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind()),
            ("resource", resource()),
            ("subResource", text()),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Decl::simple(Type::Bool)),
            ("options", Decl::dynamic()),
        ],
    )
}

fn namespace() -> Decl {
    let time = || Decl::simple(Type::Timestamp);
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", time()),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", Decl::map(text())),
            ("annotations", Decl::map(text())),
            // Upstream's spelling, by which nobody finds it.
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", Decl::simple(Type::Int)),
            ("deletionTimestamp", time()),
            ("generation", Decl::simple(Type::Int)),
            ("resourceVersion", text()),
            ("finalizers", Decl::list(text())),
        ],
    );
    let spec = object("kubernetes.NamespaceSpec", [("finalizers", Decl::list(text()))]);
    let status =
        object("kubernetes.NamespaceStatus", [("conditions", Decl::list(condition)), ("phase", text())]);
    object("kubernetes.Namespace", [("metadata", metadata), ("spec", spec), ("status", status)])
}

/// Compiles an expression that has to be of one of these types; of any, if there are none. The error is upstream's text.
pub fn compile(env: &Env, source: &str, types: &[Type]) -> Result<Program, String> {
    let program = env.compile(source).map_err(|error| match error {
        CompileError::Issues(issues) => format!("compilation failed: {issues}"),
        CompileError::Instantiation(text) => format!("program instantiation failed: {text}"),
    })?;
    let found = program.output_type();
    if types.is_empty() || types.contains(found) {
        return Ok(program);
    }
    let (names, found): (Vec<String>, String) = (types.iter().map(name).collect(), name(found));
    Err(match names.as_slice() {
        [one] => format!("must evaluate to {one} but got {found}"),
        several => format!("must evaluate to one of [{}] but got {found}", several.join(" ")),
    })
}

/// What upstream calls a type here; elsewhere it says `null`.
fn name(of: &Type) -> String {
    if *of == Type::Null { "null_type".to_owned() } else { of.to_string() }
}

/// What upstream calls the type that the variables of a policy are fields of.
const VARIABLES: &str = "kubernetes.variables";

/// The types of the variables of a policy. Each expression sees the variables before it.
#[derive(Debug, Clone, Default)]
pub struct Composition {
    fields: Vec<(String, Decl)>,
}

impl Composition {
    /// Compiles the expression of the next variable, and declares it for those that follow. One that does not compile is of
    /// any type.
    pub fn declare(&mut self, env: &Env, name: &str, source: &str) -> Result<Program, String> {
        let program = compile(&self.extend(env.clone()), source, &[]);
        let decl = program.as_ref().map_or_else(|_| Decl::dynamic(), |program| decl(program.output_type()));
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), decl));
        program
    }

    /// The environment with the variables.
    pub fn extend(&self, env: Env) -> Env {
        env.variable("variables", Decl::object(VARIABLES, self.fields.iter().cloned()))
    }
}

/// The declaration of a variable, from the type of its expression.
fn decl(of: &Type) -> Decl {
    match of {
        Type::List(element) => Decl::list(decl(element)),
        Type::Map(_, value) => Decl::map(decl(value)),
        Type::Object(object) => {
            Decl { kind: DeclKind::Object(Arc::clone(object)), max_elements: 0, min_serialized_size: 2 }
        }
        other => Decl::simple(other.clone()),
    }
}
