//! What the caller knows about its variables: types, sizes, and how lists compare.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::Type;

/// A declared type: the type itself, and the bounds that a schema puts on values of it.
#[derive(Debug, Clone)]
pub struct Decl {
    /// What it is.
    pub kind: DeclKind,
    /// The most characters, bytes, items or entries a value can have.
    pub max_elements: u64,
    /// The fewest bytes that a value takes in JSON.
    pub min_serialized_size: u64,
}

/// The kind of a declared type.
#[derive(Debug, Clone)]
pub enum DeclKind {
    /// A type without parts.
    Simple(Type),
    /// A list.
    List(Arc<Decl>, ListSemantics),
    /// A map from strings.
    Map(Arc<Decl>),
    /// An object.
    Object(Arc<ObjectDecl>),
    /// An optional value, as `oldSelf` of a rule with `optionalOldSelf`.
    Optional(Arc<Decl>),
}

/// How two lists are compared and added (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListSemantics {
    /// In order.
    #[default]
    Atomic,
    /// As sets of scalars.
    Set,
    /// By the values of these keys.
    Map(Vec<String>),
}

/// An object type with its fields. Two objects are of the same type when their names are equal.
#[derive(Debug, Clone)]
pub struct ObjectDecl {
    /// The name, as messages show it.
    pub name: String,
    /// The fields by the names that expressions use: see [`crate::escape`].
    pub fields: BTreeMap<String, FieldDecl>,
}

impl ObjectDecl {
    /// A field by the name that an expression uses. A word of the language that is a name to the parser, like
    /// `namespace`, may stand for its escaped form.
    pub(crate) fn field(&self, name: &str) -> Option<&FieldDecl> {
        self.fields.get(name).or_else(|| {
            let escaped = crate::escape(name).filter(|escaped| escaped.starts_with("__"))?;
            self.fields.get(&escaped)
        })
    }
}

/// A field of an object.
#[derive(Debug, Clone)]
pub struct FieldDecl {
    /// Its type.
    pub decl: Arc<Decl>,
    /// The name of the property in JSON.
    pub property: String,
}

/// The bound of lists and maps without one.
const NO_MAX_LENGTH: u64 = i64::MAX as u64;

impl Decl {
    /// A type without bounds. Its size counts as zero, as upstream's does.
    pub fn simple(simple: Type) -> Self {
        Self { kind: DeclKind::Simple(simple), max_elements: 0, min_serialized_size: 1 }
    }

    /// Anything.
    pub fn dynamic() -> Self {
        Self::simple(Type::Dyn)
    }

    /// An object of this name with these fields.
    pub fn object(name: &str, fields: impl IntoIterator<Item = (String, Decl)>) -> Self {
        let field =
            |(name, decl): (String, Decl)| (name.clone(), FieldDecl { decl: Arc::new(decl), property: name });
        let object = ObjectDecl { name: name.to_owned(), fields: fields.into_iter().map(field).collect() };
        Self { kind: DeclKind::Object(Arc::new(object)), max_elements: 0, min_serialized_size: 2 }
    }

    /// A list of this element type.
    pub fn list(element: Decl) -> Self {
        Self {
            kind: DeclKind::List(Arc::new(element), ListSemantics::Atomic),
            max_elements: NO_MAX_LENGTH,
            min_serialized_size: 2,
        }
    }

    /// A map from strings to this type.
    pub fn map(value: Decl) -> Self {
        Self { kind: DeclKind::Map(Arc::new(value)), max_elements: NO_MAX_LENGTH, min_serialized_size: 2 }
    }

    /// The same type, optional.
    pub fn optional(self) -> Self {
        let max_elements = self.max_elements;
        Self { kind: DeclKind::Optional(Arc::new(self)), max_elements, min_serialized_size: 0 }
    }

    /// The type as the checker sees it.
    pub fn to_type(&self) -> Type {
        match &self.kind {
            DeclKind::Simple(simple) => simple.clone(),
            DeclKind::List(element, _) => Type::list(element.to_type()),
            DeclKind::Map(value) => Type::map(Type::String, value.to_type()),
            DeclKind::Object(object) => Type::Object(Arc::clone(object)),
            DeclKind::Optional(inner) => Type::optional(inner.to_type()),
        }
    }

    /// The declaration at a step of a path: a field, `@items`, `@values` or `@keys`.
    pub(crate) fn step(&self, step: &str) -> Option<&Decl> {
        match (&self.kind, step) {
            (DeclKind::List(element, _), "@items" | "@values")
            | (DeclKind::Map(element), "@items" | "@values") => Some(element),
            (DeclKind::Map(_), "@keys") => Some(string_key()),
            (DeclKind::Object(object), field) => object.fields.get(field).map(|field| &*field.decl),
            (DeclKind::Optional(inner), step) => inner.step(step),
            _ => None,
        }
    }
}

/// The keys of maps. Upstream gives them no size.
fn string_key() -> &'static Decl {
    static KEY: Decl = Decl { kind: DeclKind::Simple(Type::String), max_elements: 0, min_serialized_size: 2 };
    &KEY
}

/// A declaration that says nothing, for what is inside of dynamic values.
pub(crate) fn dynamic() -> &'static Decl {
    static DYNAMIC: Decl =
        Decl { kind: DeclKind::Simple(Type::Dyn), max_elements: 0, min_serialized_size: 1 };
    &DYNAMIC
}
