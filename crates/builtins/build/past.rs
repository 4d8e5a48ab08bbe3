//! Kinds that only earlier releases have: see `facts/past.txt` for what they are made of.

use std::error::Error;

use serde_json::{Map, Value, json};

use crate::kinds::{Kind, Kinds};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TABLE: &str = include_str!("../facts/past.txt");

/// Adds the kinds of the table.
pub(crate) fn add(kinds: &mut Kinds) -> Result<()> {
    let mut version: Option<Version> = None;
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            version = Some(Version::begin(heading, &mut kinds.definitions)?);
            continue;
        }
        let version = version.as_ref().ok_or("a line before any version")?;
        if let Some(line) = line.strip_prefix("  ") {
            version.change(line, &mut kinds.definitions)?;
        } else {
            let definition = format!("{}{line}", version.package);
            kinds.kinds.push(Kind { group: version.group, version: version.version, kind: line, definition });
        }
    }
    Ok(())
}

/// A version that is made of another.
struct Version {
    group: &'static str,
    version: &'static str,
    /// What the names of its definitions begin with.
    package: String,
}

impl Version {
    /// Takes over the definitions of the other version.
    fn begin(heading: &'static str, definitions: &mut Map<String, Value>) -> Result<Self> {
        let (of, from) = heading.split_once(" of ").ok_or("a heading without its source")?;
        let (group, version) = of.split_once('/').ok_or("a heading without a version")?;
        let short = group.split('.').next().unwrap_or(group);
        let package = format!("io.k8s.api.{short}.{version}.");
        let source = format!("io.k8s.api.{short}.{from}.");
        let taken: Vec<(String, Value)> = definitions
            .iter()
            .filter_map(|(name, schema)| Some((name.strip_prefix(&source)?, schema)))
            .map(|(name, schema)| (format!("{package}{name}"), schema.clone()))
            .collect();
        for (name, mut schema) in taken {
            rename(&mut schema, &source, &package);
            definitions.entry(name).or_insert(schema);
        }
        Ok(Self { group, version, package })
    }

    /// Changes a type, as a line of the table says.
    fn change(&self, line: &str, definitions: &mut Map<String, Value>) -> Result<()> {
        let (name, words) = line.split_once(": ").ok_or_else(|| format!("no colon: {line}"))?;
        let (new, words) = words.strip_prefix("new ").map_or((false, words), |words| (true, words));
        let schema = definitions.entry(format!("{}{name}", self.package)).or_insert(Value::Null);
        if new {
            *schema = json!({"type": "object", "properties": {}, "required": []});
        }
        for word in words.split(' ') {
            if let Some(field) = word.strip_prefix('-') {
                let properties = schema["properties"].as_object_mut().ok_or("not a struct")?;
                properties.remove(field).ok_or_else(|| format!("{name} has no {field}"))?;
                require(schema, field, false);
            } else {
                let (field, ty) = word.split_once('=').ok_or_else(|| format!("no type: {word}"))?;
                let (ty, required) = ty.strip_suffix('!').map_or((ty, false), |ty| (ty, true));
                schema["properties"][field] = self.ty(ty);
                require(schema, field, required);
            }
        }
        Ok(())
    }

    fn ty(&self, name: &str) -> Value {
        let reference = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
        if let Some(items) = name.strip_prefix("[]") {
            return json!({"type": "array", "items": self.ty(items)});
        }
        if let Some(values) = name.strip_prefix("{}") {
            return json!({"type": "object", "additionalProperties": self.ty(values)});
        }
        match name {
            "string" => json!({"type": "string"}),
            "Quantity" => reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
            "Time" => reference("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
            name => reference(&format!("{}{name}", self.package)),
        }
    }
}

fn require(schema: &mut Value, field: &str, required: bool) {
    if !schema["required"].is_array() {
        schema["required"] = json!([]);
    }
    if let Some(names) = schema["required"].as_array_mut() {
        names.retain(|name| name != field);
        if required {
            names.push(field.into());
        }
    }
}

/// Lets the references in a schema refer to the other version.
fn rename(schema: &mut Value, from: &str, to: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                *reference = reference.replace(from, to);
            }
            members.values_mut().for_each(|member| rename(member, from, to));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        _ => {}
    }
}
