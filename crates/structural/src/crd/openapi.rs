//! The rules about every node of a schema.

use concord_meta::field::{BadValue, Error, Path};

use super::{
    CelCompiler, Options,
    cel::{Costs, Scope},
    defaults, internal, rules, structural, topology,
};
use crate::{
    props::{Items, OrBool, Props},
    schema::Schema,
};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// What may stand at the root of a schema whose status is checked alone.
const AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// What is wrong with the schema in `validation`, which is at `path`.
pub(super) fn validate(
    validation: Option<Props<'_>>,
    has_status: bool,
    options: &Options<'_>,
    path: &Path,
    cel: &dyn CelCompiler,
) -> Vec<Error> {
    let Some(schema) = validation.and_then(|validation| validation.schema("openAPIV3Schema")) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if has_status {
        errors.extend(root_error(schema, path));
    }
    if schema.flag("nullable") {
        let detail = "nullable cannot be true at the root";
        errors.push(Error::forbidden(&path.child("openAPIV3Schema.nullable"), detail));
    }
    let path = path.child("openAPIV3Schema");
    let compiled = options.structural_schema.then(|| Schema::of(schema));
    let mut late = None;
    let mut scope = None;
    match &compiled {
        None => {}
        // Other errors say the same more clearly; this one is shown if there are none.
        Some(Err(error)) => late = Some(Error::invalid(&path, "", error.to_string())),
        Some(Ok(compiled)) => {
            let mut found = structural::validate(schema, &path);
            if found.is_empty() {
                found = defaults::validate(compiled, &path, options.pruned_defaults, cel);
            }
            if found.is_empty() {
                scope = Some(Scope::root(compiled.root()));
            }
            errors.extend(found);
        }
    }
    let mut walk =
        Walk { options, cel, errors: Vec::new(), rule_errors: Vec::new(), costs: Costs::default() };
    walk.node(schema, &path, &Context::default(), true, scope);
    errors.append(&mut walk.errors);
    errors.append(&mut walk.rule_errors);
    if errors.is_empty() {
        errors.extend(late);
    }
    errors.extend(walk.costs.errors(&path));
    errors
}

fn root_error(schema: Props<'_>, path: &Path) -> Option<Error> {
    let mut fields = internal::fields_of_schema(schema);
    fields.find_map(|name| match name {
        "Type" if schema.kind() == "object" => None,
        "Type" => {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource \
                          is enabled";
            Some(Error::invalid(&path.child("openAPIV3Schema.type"), schema.kind(), detail))
        }
        name if AT_ROOT.contains(&name) => None,
        _ => {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                AT_ROOT.join(" ")
            );
            let shown = BadValue::verbatim(internal::schema(schema));
            Some(Error::invalid(&path.child("openAPIV3Schema"), shown, detail))
        }
    })
}

pub(super) fn has_invalid_type(schema: Props<'_>) -> bool {
    !schema.kind().is_empty() && !TYPES.contains(&schema.kind())
}

/// What a node inherits from those above it.
#[derive(Clone, Default)]
pub(super) struct Context {
    /// Why there can be no defaults.
    no_defaults: Option<String>,
    inside_meta: bool,
    /// The first node above whose values cannot be told from old ones.
    pub(super) uncorrelatable: Option<Path>,
}

impl Context {
    fn without_defaults(&self, reason: String) -> Self {
        Self { no_defaults: Some(reason), ..self.clone() }
    }

    fn without_old_values(&self, path: &Path) -> Self {
        let uncorrelatable = Some(self.uncorrelatable.clone().unwrap_or_else(|| path.clone()));
        Self { uncorrelatable, ..self.clone() }
    }
}

pub(super) struct Walk<'a> {
    pub(super) options: &'a Options<'a>,
    pub(super) cel: &'a dyn CelCompiler,
    pub(super) errors: Vec<Error>,
    /// Errors about rules, which come after all others.
    pub(super) rule_errors: Vec<Error>,
    pub(super) costs: Costs,
}

impl<'a> Walk<'a> {
    fn node(
        &mut self,
        schema: Props<'a>,
        path: &Path,
        context: &Context,
        is_root: bool,
        scope: Option<Scope<'a>>,
    ) {
        let errors_before = self.errors.len();
        self.unsupported(schema, path, context);
        self.additional(schema, path, context, scope);
        self.properties(schema, path, context, is_root, scope);
        self.junctors(schema, path, context);
        self.items(schema, path, context, scope);
        for (name, dependency) in schema.named("dependencies") {
            self.node(dependency, &path.child("dependencies").key(name), context, false, None);
        }
        self.topology(schema, path);
        self.list_type(schema, path);
        if self.options.map_list_keys {
            self.errors.extend(topology::map_key_errors(schema, path));
        }
        self.errors.extend(rules::validate(schema, path, scope));
        if schema.has("x-kubernetes-validations")
            && self.errors.len() == errors_before
            && let Some(scope) = scope
        {
            self.compile_rules(schema, path, context, scope);
        }
    }

    fn unsupported(&mut self, schema: Props<'_>, path: &Path, context: &Context) {
        let kind = schema.kind();
        if self.options.valid_property_type && has_invalid_type(schema) {
            self.errors.push(Error::not_supported(&path.child("type"), kind, TYPES));
        }
        if schema.value("default").is_some()
            && let Some(reason) = &context.no_defaults
        {
            self.errors.push(Error::forbidden(&path.child("default"), format!("must not be set {reason}")));
        }
        let present = [
            ("id", schema.has("id")),
            ("additionalItems", schema.or_bool("additionalItems").is_some()),
            ("patternProperties", schema.has("patternProperties")),
            ("definitions", schema.has("definitions")),
            ("dependencies", schema.value("dependencies").is_some()),
            ("$ref", schema.optional_text("$ref").is_some()),
        ];
        for (name, _) in present.into_iter().filter(|(_, present)| *present) {
            self.errors.push(Error::forbidden(&path.child(name), format!("{name} is not supported")));
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.errors.push(Error::forbidden(&path.child("type"), detail));
        }
        if matches!(schema.items(), Some(Items::Many(schemas)) if !schemas.is_empty()) {
            let detail = "items must be a schema object and not an array";
            self.errors.push(Error::forbidden(&path.child("items"), detail));
        }
        if context.inside_meta && schema.flag("x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta";
            self.errors.push(Error::forbidden(&path.child("x-kubernetes-embedded-resource"), detail));
        }
        if schema.flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(Error::forbidden(&path.child("uniqueItems"), detail));
        }
    }

    fn additional(&mut self, schema: Props<'a>, path: &Path, context: &Context, scope: Option<Scope<'a>>) {
        let Some(additional) = schema.additional() else { return };
        let path = path.child("additionalProperties");
        if schema.has("properties") && !matches!(additional, OrBool::Bool(true)) {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.errors.push(Error::forbidden(&path, detail));
        }
        let Some(values) = additional.schema() else { return };
        let scope = scope.and_then(Scope::values);
        if context.inside_meta {
            let context =
                context.without_defaults("inside additionalProperties applying to object metadata".into());
            self.node(values, &path, &context, false, scope);
        } else {
            self.node(values, &path, context, false, scope);
        }
    }

    fn properties(
        &mut self,
        schema: Props<'a>,
        path: &Path,
        context: &Context,
        is_root: bool,
        scope: Option<Scope<'a>>,
    ) {
        let is_resource = is_root || schema.flag("x-kubernetes-embedded-resource");
        let map_type = schema.optional_text("x-kubernetes-map-type");
        let is_known = map_type.is_none_or(|map_type| matches!(map_type, "atomic" | "granular"));
        let below = if is_known { context.clone() } else { context.without_old_values(path) };
        let properties = path.child("properties");
        for (name, property) in schema.named("properties") {
            let path = properties.key(name);
            let scope = scope.and_then(|scope| scope.property(name));
            if is_resource && matches!(name, "metadata" | "kind" | "apiVersion") {
                let mut below = Context { inside_meta: true, ..below.clone() };
                if is_root {
                    below = below.without_defaults(format!("in top-level {name}"));
                }
                self.node(property, &path, &below, false, scope);
            } else {
                self.node(property, &path, &below, false, scope);
            }
        }
    }

    fn junctors(&mut self, schema: Props<'a>, path: &Path, context: &Context) {
        if let Some(not) = schema.schema("not") {
            self.node(not, &path.child("not"), context, false, None);
        }
        for junctor in ["allOf", "oneOf", "anyOf"] {
            let path = path.child(junctor);
            for (index, branch) in schema.schemas(junctor).enumerate() {
                self.node(branch, &path.index(index), context, false, None);
            }
        }
        for (name, definition) in schema.named("definitions") {
            self.node(definition, &path.child("definitions").key(name), context, false, None);
        }
    }

    fn items(&mut self, schema: Props<'a>, path: &Path, context: &Context, scope: Option<Scope<'a>>) {
        let Some(items) = schema.items() else { return };
        let is_map = schema.text("x-kubernetes-list-type") == "map";
        let context = if is_map { context.clone() } else { context.without_old_values(path) };
        let path = path.child("items");
        match items {
            Items::One(items) => self.node(items, &path, &context, false, scope.and_then(Scope::items)),
            Items::Many(schemas) => {
                for (index, items) in schemas.iter().filter_map(Props::of).enumerate() {
                    self.node(items, &path.index(index), &context, false, None);
                }
            }
        }
    }
}
