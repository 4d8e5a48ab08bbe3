//! Schemas and facts to lines of text.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    fmt::Write,
};

use serde_json::{Map, Value};

use crate::{
    fact::{Facts, FieldFacts, Struct},
    fields::presence,
    kinds::Kinds,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The two types that the reader's table begins with.
const FIRST: usize = 2;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

pub(crate) fn compile(kinds: Kinds, facts: &Facts) -> Result<String> {
    let roots = kinds.kinds.iter().map(|kind| kind.definition.clone()).collect();
    let mut compiler =
        Compiler { definitions: kinds.definitions, roots, facts, lines: Vec::new(), ids: HashMap::new() };
    let mut index = String::new();
    for kind in &kinds.kinds {
        let id = compiler.definition(&kind.definition, false)?;
        writeln!(index, "{}\t{}\t{}\t{id}", kind.group, kind.version, kind.kind)?;
    }
    Ok(format!("{index}\n{}\n", compiler.lines.join("\n")))
}

struct Compiler<'a> {
    definitions: Map<String, Value>,
    /// The definitions of whole objects.
    roots: HashSet<String>,
    facts: &'a Facts,
    lines: Vec<String>,
    ids: HashMap<String, usize>,
}

/// A type in the text, and Go's name of it.
struct Compiled {
    id: usize,
    go: String,
}

impl Compiler<'_> {
    /// The number of a line, which is added unless it is there.
    fn line(&mut self, line: String) -> usize {
        if let Some(id) = self.ids.get(&line) {
            return *id;
        }
        let id = FIRST + self.lines.len();
        self.ids.insert(line.clone(), id);
        self.lines.push(line);
        id
    }

    fn definition(&mut self, name: &str, atomic: bool) -> Result<usize> {
        if let Some(scalar) = scalar_definition(name) {
            return Ok(self.line(format!("s\t{name}\t{scalar}")));
        }
        if let Some(other) = name.strip_prefix(SCHEMA).filter(|other| !other.is_empty()) {
            return self.either(name, other);
        }
        let schema = self.definitions.get(name).ok_or_else(|| format!("{name} is not defined"))?.clone();
        let structure = structure(name)?;
        let atomic = atomic || self.facts.is_atomic(structure);
        let key = format!("{name}\t{atomic}");
        if let Some(id) = self.ids.get(&key) {
            return Ok(*id);
        }
        // The place is taken before the fields are looked at: some types contain themselves.
        let id = FIRST + self.lines.len();
        self.ids.insert(key, id);
        self.lines.push(String::new());
        let mut line = format!("t\t{name}\t{}", if atomic { "a" } else { "" });
        let empty = Map::new();
        for (field, property) in schema["properties"].as_object().unwrap_or(&empty) {
            let required = lists(&schema["required"], field);
            line.push_str(&self.field(structure, field, property, required)?);
            if self.roots.contains(name) && matches!(&**field, "kind" | "apiVersion") {
                line.push_str(" in=TypeMeta");
            }
        }
        self.lines[id - FIRST] = line;
        Ok(id)
    }

    /// A schema, or what may stand in its place.
    fn either(&mut self, name: &str, other: &str) -> Result<usize> {
        let object = self.definition(SCHEMA, false)?;
        let list = match other {
            "OrArray" => Some(self.line(format!("l\t[]v1.JSONSchemaProps\t{object}\t"))),
            "OrStringArray" => {
                let string = self.line("s\tstring\tstring".to_owned());
                Some(self.line(format!("l\t[]string\t{string}\t")))
            }
            _ => None,
        };
        let list = list.map(|id| id.to_string()).unwrap_or_default();
        let boolean = if other == "OrBool" { "b" } else { "" };
        Ok(self.line(format!("e\t{name}\t{object}\t{list}\t{boolean}")))
    }

    /// A tab and the field: see the reader for its parts.
    fn field(&mut self, of: Struct<'_>, name: &str, schema: &Value, required: bool) -> Result<String> {
        let facts = self.facts.field(of, name);
        let ty = self.ty(of, schema, &facts)?;
        let is_struct = self.lines[ty.id - FIRST].is_empty() || self.lines[ty.id - FIRST].starts_with("t\t");
        let presence = facts.presence.unwrap_or_else(|| presence(name, schema, required, is_struct));
        let mut field = format!("\t{name}:{}{presence}", ty.id);
        // The crate has metadata in every object and calls it required, which upstream does for few.
        if facts.required.unwrap_or(required && name != "metadata") {
            field.push_str(" required=");
        }
        if let Some(embedded) = &facts.embedded {
            write!(field, " in={embedded}")?;
        }
        if let Some(strategy) = &facts.strategy {
            write!(field, " {strategy}={}", facts.merge_key.as_deref().unwrap_or_default())?;
        }
        if facts.retain_keys {
            field.push_str(" retain=");
        }
        if let Some(since) = &facts.since {
            write!(field, " since={since}")?;
        }
        if let Some(until) = &facts.until {
            write!(field, " until={until}")?;
        }
        if let Some(gate) = &facts.gate {
            write!(field, " gate={gate}")?;
        }
        if let Some(default) = &facts.default {
            write!(field, " default=\"{default}\"")?;
        } else if required && presence == 'a' && self.facts.is_key(name) {
            write!(field, " default={}", if schema["type"] == "integer" { "0" } else { "\"\"" })?;
        }
        Ok(field)
    }

    fn ty(&mut self, of: Struct<'_>, schema: &Value, facts: &FieldFacts) -> Result<Compiled> {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or(reference);
            return Ok(Compiled { id: self.definition(name, facts.atomic)?, go: go_name(name)? });
        }
        let go = |kind: Named| go_type(of, facts, kind);
        match (schema["type"].as_str(), schema["format"].as_str()) {
            (Some("array"), _) => {
                let items = self.ty(of, &schema["items"], facts)?;
                let go = go(Named::List).unwrap_or_else(|| format!("[]{}", items.go));
                let list = facts.list.as_deref().unwrap_or_default();
                Ok(Compiled { id: self.line(format!("l\t{go}\t{}\t{list}", items.id)), go })
            }
            (Some("object"), _) => {
                let values = self.ty(of, &schema["additionalProperties"], facts)?;
                let key = go(Named::Key).unwrap_or_else(|| "string".to_owned());
                let go = go(Named::Map).unwrap_or_else(|| format!("map[{key}]{}", values.go));
                let atomic = if facts.atomic { "a" } else { "" };
                Ok(Compiled { id: self.line(format!("m\t{go}\t{}\t{atomic}", values.id)), go })
            }
            (ty, format) => {
                let (scalar, plain) = scalar(ty, format).ok_or_else(|| format!("no type: {schema}"))?;
                let go = go(Named::Scalar).unwrap_or_else(|| plain.to_owned());
                Ok(Compiled { id: self.line(format!("s\t{go}\t{scalar}")), go })
            }
        }
    }
}

pub(crate) fn lists(required: &Value, field: &str) -> bool {
    required.as_array().is_some_and(|required| required.iter().any(|name| name == field))
}

/// The code of a scalar and Go's name of it, by OpenAPI type and format.
fn scalar(ty: Option<&str>, format: Option<&str>) -> Option<(&'static str, &'static str)> {
    Some(match (ty?, format) {
        ("string", Some("byte")) => ("bytes", "[]uint8"),
        ("string", _) => ("string", "string"),
        ("boolean", _) => ("bool", "bool"),
        ("integer", Some("int32")) => ("int32", "int32"),
        ("integer", Some("int64")) => ("int64", "int64"),
        ("number", _) => ("float64", "float64"),
        _ => return None,
    })
}

/// Types that Go reads by hand.
pub(crate) fn scalar_definition(name: &str) -> Option<&'static str> {
    if let Some(meta) = name.strip_prefix(META) {
        return match meta {
            "Time" => Some("time"),
            "MicroTime" => Some("micro-time"),
            "FieldsV1" => Some("fields-v1"),
            _ => None,
        };
    }
    match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Some("quantity"),
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Some("int-or-string"),
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => Some("raw"),
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON" => Some("free-form"),
        _ => None,
    }
}

/// What a name in `facts/go-types.txt` names.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Named {
    Scalar,
    List,
    Map,
    Key,
}

pub(crate) fn go_type(of: Struct<'_>, facts: &FieldFacts, wanted: Named) -> Option<String> {
    let name = facts.go_types.iter().find_map(|name| {
        let (kind, name) = match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(key) => (Named::Key, key),
            None => match (name.strip_suffix("[]"), name.strip_suffix("{}")) {
                (Some(list), _) => (Named::List, list),
                (_, Some(map)) => (Named::Map, map),
                (None, None) => (Named::Scalar, name.as_str()),
            },
        };
        (kind == wanted).then_some(name)
    })?;
    Some(if name.contains('.') { name.to_owned() } else { format!("{}.{name}", of.version) })
}

/// `v1.PodSpec`, of `io.k8s.api.core.v1.PodSpec`.
fn go_name(definition: &str) -> Result<String> {
    let mut parts = definition.rsplit('.');
    match (parts.next(), parts.next()) {
        (Some(name), Some(package)) => Ok(format!("{package}.{name}")),
        _ => Err(format!("not a definition: {definition}").into()),
    }
}

pub(crate) fn structure(definition: &str) -> Result<Struct<'_>> {
    let mut parts = definition.rsplit('.');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(version), Some(group)) => Ok(Struct { group, version, name }),
        _ => Err(format!("not a definition: {definition}").into()),
    }
}
