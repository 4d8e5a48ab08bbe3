//! From JSONSchemaProps to the table.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    ALLOWED, Data, Extra, FORBIDDEN, Junctors, Kind, Limits, ListType, Member, NO_EXTRA, NO_FORMAT, NONE,
    Name, NamedFormat, NodeId, Pattern, Schema, flag,
};
use crate::{
    formats::Format,
    props::{Items, OrBool, Props},
    rules::Rule,
};

/// A schema that cannot be structural.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It uses a field of JSON schemas that is never supported.
    #[error("OpenAPIV3Schema '{0}' is not supported")]
    Unsupported(&'static str),
    /// It has a schema for each item of a list.
    #[error("OpenAPIV3Schema 'items' must be a schema, but is an array")]
    ItemsAreAnArray,
    /// It says that unknown fields are not preserved, which is what happens without a word.
    #[error("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")]
    PreservesNothing,
    /// It has more nodes or texts than can be numbered.
    #[error("the schema is too large")]
    TooLarge,
}

pub(super) fn compile(props: Props<'_>) -> Result<Schema> {
    let mut compiler = Compiler::default();
    let root = compiler.reserve()?;
    compiler.node(root, props, 0, false)?;
    Ok(Schema {
        nodes: compiler.nodes.into(),
        members: compiler.members.into(),
        extras: compiler.extras.into(),
        limits: compiler.limits.into(),
        names: compiler.text.into(),
        formats: compiler.formats.into(),
        patterns: compiler.patterns.into(),
        preserves_all: false,
    })
}

impl Default for Data {
    fn default() -> Self {
        Self {
            kind: Kind::Any,
            list_type: ListType::Unset,
            flags: 0,
            format: NO_FORMAT,
            members: (0, 0),
            items: NONE,
            additional: NONE,
            extra: NO_EXTRA,
        }
    }
}

#[derive(Default)]
struct Compiler<'a> {
    nodes: Vec<Data>,
    members: Vec<Member>,
    extras: Vec<Extra>,
    limits: Vec<Limits>,
    text: String,
    names: HashMap<&'a str, Name>,
    formats: Vec<NamedFormat>,
    format_numbers: HashMap<(&'a str, Format), u16>,
    patterns: Vec<Pattern>,
    pattern_numbers: HashMap<&'a str, u32>,
}

type Result<T> = std::result::Result<T, CompileError>;

impl<'a> Compiler<'a> {
    fn reserve(&mut self) -> Result<NodeId> {
        let id = u32::try_from(self.nodes.len()).ok().filter(|id| *id < FORBIDDEN.0);
        self.nodes.push(Data::default());
        id.map(NodeId).ok_or(CompileError::TooLarge)
    }

    /// Compiles a schema into a node of its own.
    fn add(&mut self, props: Props<'a>, inherited: u16, nested: bool) -> Result<(NodeId, u16)> {
        let id = self.reserve()?;
        let below = self.node(id, props, inherited, nested)?;
        Ok((id, below))
    }

    /// Fills a node and answers what it and those below it have. `nested` nodes are inside of a junctor: they only
    /// check values.
    fn node(&mut self, id: NodeId, props: Props<'a>, inherited: u16, nested: bool) -> Result<u16> {
        refuse_unsupported(props)?;
        let mut data = Data { kind: Kind::parse(props.kind()), ..Data::default() };
        data.flags = inherited | own_flags(props)?;
        data.list_type = list_type(props.optional_text("x-kubernetes-list-type"));
        data.format = self.format(props)?;
        let preserved = data.flags & (flag::PRESERVE | flag::INSIDE_PRESERVED) != 0;
        let inherited = if preserved { flag::INSIDE_PRESERVED } else { 0 };
        let mut below = 0;
        match props.items() {
            Some(Items::One(items)) => (data.items, below) = self.add(items, inherited, nested)?,
            Some(Items::Many(schemas)) if !schemas.is_empty() => return Err(CompileError::ItemsAreAnArray),
            _ => {}
        }
        let mut members = Vec::new();
        for (name, property) in props.named("properties") {
            let (node, has) = self.add(property, inherited, nested)?;
            below |= has;
            members.push(Member { name: self.name(name)?, node });
        }
        data.members = self.keep(members)?;
        match props.additional() {
            None => {}
            Some(OrBool::Bool(allows)) => data.additional = if allows { ALLOWED } else { FORBIDDEN },
            Some(OrBool::Schema(schema)) => {
                let (node, has) = self.add(schema, inherited, nested)?;
                data.additional = node;
                below |= has;
            }
        }
        let extra = self.extra(props, nested)?;
        below |= own_below(&data, &extra);
        data.flags |= below;
        if !extra.is_empty() {
            data.extra = shared(&mut self.extras, extra)?;
        }
        self.nodes[id.0 as usize] = data;
        Ok(below)
    }

    fn keep(&mut self, members: Vec<Member>) -> Result<(u32, u32)> {
        let start = u32::try_from(self.members.len()).map_err(|_| CompileError::TooLarge)?;
        self.members.extend(members);
        let end = u32::try_from(self.members.len()).map_err(|_| CompileError::TooLarge)?;
        Ok((start, end))
    }

    fn name(&mut self, text: &'a str) -> Result<Name> {
        if let Some(name) = self.names.get(text) {
            return Ok(*name);
        }
        let start = u32::try_from(self.text.len()).map_err(|_| CompileError::TooLarge)?;
        self.text.push_str(text);
        let end = u32::try_from(self.text.len()).map_err(|_| CompileError::TooLarge)?;
        let name = Name { start, end };
        self.names.insert(text, name);
        Ok(name)
    }

    fn format(&mut self, props: Props<'a>) -> Result<u16> {
        let text = props.text("format");
        if text.is_empty() {
            return Ok(NO_FORMAT);
        }
        let kind =
            if props.flag("x-kubernetes-int-or-string") { Kind::Any } else { Kind::parse(props.kind()) };
        let format = Format::parse(kind, text);
        if let Some(number) = self.format_numbers.get(&(text, format)) {
            return Ok(*number);
        }
        let name = self.name(text)?;
        let number = u16::try_from(self.formats.len()).ok().filter(|number| *number != NO_FORMAT);
        let number = number.ok_or(CompileError::TooLarge)?;
        self.formats.push(NamedFormat { name, format });
        self.format_numbers.insert((text, format), number);
        Ok(number)
    }

    fn pattern(&mut self, text: &'a str) -> Result<Option<u32>> {
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(number) = self.pattern_numbers.get(text) {
            return Ok(Some(*number));
        }
        let number = u32::try_from(self.patterns.len()).map_err(|_| CompileError::TooLarge)?;
        self.patterns.push(Pattern::new(text));
        self.pattern_numbers.insert(text, number);
        Ok(Some(number))
    }

    fn extra(&mut self, props: Props<'a>, nested: bool) -> Result<Extra> {
        let limits = limits(props).map(|limits| shared(&mut self.limits, limits)).transpose()?;
        let required = props.texts("required").map(|name| self.name(name)).collect::<Result<_>>()?;
        Ok(Extra {
            default: props.value("default").filter(|_| !nested).cloned().map(Box::new),
            limits,
            junctors: self.junctors(props)?,
            enumeration: props.list("enum").into(),
            required,
            map_keys: props.texts("x-kubernetes-list-map-keys").map(str::to_owned).collect(),
            rules: if nested { Box::default() } else { rules(props) },
            pattern: self.pattern(props.text("pattern"))?,
        })
    }

    fn junctors(&mut self, props: Props<'a>) -> Result<Option<Box<Junctors>>> {
        let mut each = |name: &str| -> Result<Box<[NodeId]>> {
            props.schemas(name).map(|props| self.add(props, 0, true).map(|(id, _)| id)).collect()
        };
        let (all_of, any_of, one_of) = (each("allOf")?, each("anyOf")?, each("oneOf")?);
        let not = props.schema("not").map(|props| self.add(props, 0, true)).transpose()?;
        let none = all_of.is_empty() && any_of.is_empty() && one_of.is_empty() && not.is_none();
        let not = not.map(|(id, _)| id);
        Ok((!none).then(|| Box::new(Junctors { all_of, any_of, one_of, not })))
    }
}

impl Extra {
    fn is_empty(&self) -> bool {
        self.default.is_none()
            && self.limits.is_none()
            && self.junctors.is_none()
            && self.enumeration.is_empty()
            && self.required.is_empty()
            && self.map_keys.is_empty()
            && self.rules.is_empty()
            && self.pattern.is_none()
    }
}

fn refuse_unsupported(props: Props<'_>) -> Result<()> {
    let fields = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
    ];
    if let Some((_, name)) = fields.into_iter().find(|(field, _)| props.has(field)) {
        return Err(CompileError::Unsupported(name));
    }
    if props.or_bool("additionalItems").is_some() {
        return Err(CompileError::Unsupported("additionalItems"));
    }
    if props.has("definitions") {
        return Err(CompileError::Unsupported("definitions"));
    }
    Ok(())
}

fn own_flags(props: Props<'_>) -> Result<u16> {
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if props.optional_flag(preserve) == Some(false) {
        return Err(CompileError::PreservesNothing);
    }
    let flags = [
        ("nullable", flag::NULLABLE),
        (preserve, flag::PRESERVE),
        ("x-kubernetes-embedded-resource", flag::EMBEDDED),
        ("x-kubernetes-int-or-string", flag::INT_OR_STRING),
        ("exclusiveMinimum", flag::EXCLUSIVE_MINIMUM),
        ("exclusiveMaximum", flag::EXCLUSIVE_MAXIMUM),
        ("uniqueItems", flag::UNIQUE),
    ];
    let set = flags.into_iter().filter(|(name, _)| props.flag(name));
    let flags = set.fold(0, |flags, (_, flag)| flags | flag);
    let atomic = props.text("x-kubernetes-map-type") == "atomic";
    Ok(if atomic { flags | flag::ATOMIC_MAP } else { flags })
}

fn own_below(data: &Data, extra: &Extra) -> u16 {
    let mut below = 0;
    if extra.default.is_some() {
        below |= flag::DEFAULTS_BELOW;
    }
    if data.flags & flag::EMBEDDED != 0 {
        below |= flag::EMBEDDED_BELOW;
    }
    if matches!(data.list_type, ListType::Set | ListType::Map) {
        below |= flag::LISTS_BELOW;
    }
    if !extra.rules.is_empty() {
        below |= flag::RULES_BELOW;
    }
    below
}

fn list_type(text: Option<&str>) -> ListType {
    match text {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map,
        Some(_) => ListType::Atomic,
        None => ListType::Unset,
    }
}

fn limits(props: Props<'_>) -> Option<Limits> {
    let float = |name: &str| props.0.get(name).and_then(Value::as_f64);
    let limits = Limits {
        maximum: float("maximum"),
        minimum: float("minimum"),
        multiple_of: float("multipleOf"),
        max_length: props.integer("maxLength"),
        min_length: props.integer("minLength"),
        max_items: props.integer("maxItems"),
        min_items: props.integer("minItems"),
        max_properties: props.integer("maxProperties"),
        min_properties: props.integer("minProperties"),
    };
    (limits != Limits::default()).then_some(limits)
}

/// The number of something in its table, where it may stand already.
///
/// Only the last few are looked at: fields that are alike stand near each other, and a schema of nothing but
/// differences must not take time that grows with its square.
fn shared<T: PartialEq>(table: &mut Vec<T>, item: T) -> Result<u32> {
    const LAST: usize = 32;
    let first = table.len().saturating_sub(LAST);
    let known = table[first..].iter().position(|other| *other == item).map(|found| first + found);
    let number = known.unwrap_or_else(|| {
        table.push(item);
        table.len() - 1
    });
    u32::try_from(number).ok().filter(|number| *number != NO_EXTRA).ok_or(CompileError::TooLarge)
}

fn rules(props: Props<'_>) -> Box<[Rule]> {
    props.schemas("x-kubernetes-validations").map(Rule::of).collect()
}
