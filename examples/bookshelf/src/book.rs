//! The kind: what a book is, and what may become of it.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use concord_codec::ListOrder;
use concord_endpoints::{ApiGroup, ApiSet, ApiVersion, Columns, Endpoint, Origin};
use concord_meta::{GroupResource, GroupVersion, field};
use concord_printers::{Column, Printer, Row};
use concord_registry::{
    Backing, Context, Form, Object, Part, Renaming, Resource, ResourceNames, Storage, Strategy, Subresource,
    SubresourceKind, Verb, metadata, metadata_mut,
};
use concord_structural::Schema;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The group and version that this server serves.
pub(crate) fn version() -> GroupVersion {
    GroupVersion::new("library.example.com", "v1")
}

/// What a book says, as a schema of OpenAPI: what clients are told, and what is checked.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "description": "A book that can be lent.",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "description": "What is written on it.",
                "required": ["title"],
                "properties": {
                    "title": {"type": "string", "minLength": 1, "description": "What it is called."},
                    "author": {"type": "string", "description": "Who wrote it."},
                    "pages": {"type": "integer", "minimum": 1, "description": "How long it is."},
                    "shelf": {
                        "type": "string", "enum": ["fiction", "history", "science"], "default": "fiction",
                        "description": "Where it stands.",
                    },
                },
            },
            "status": {
                "type": "object",
                "description": "What became of it.",
                "properties": {"lentTo": {"type": "string", "description": "Who has it now."}},
            },
        },
    })
}

/// How books behave.
struct Books(Arc<Schema>);

impl Strategy for Books {
    fn prepare_for_create(&self, _: &Context, book: &mut Object) {
        // A new book is on its shelf.
        book.remove("status");
        metadata_mut(book).insert("generation".to_owned(), 1.into());
    }

    fn prepare_for_update(&self, _: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
        // The book is written through one door, and who has it through another.
        let kept = if part == Part::Main { "status" } else { "spec" };
        match old.get(kept) {
            Some(value) => drop(new.insert(kept.to_owned(), value.clone())),
            None => drop(new.remove(kept)),
        }
        if new.get("spec") != old.get("spec") {
            let next = metadata(old).generation().saturating_add(1);
            metadata_mut(new).insert("generation".to_owned(), next.into());
        }
    }

    fn validate_create(&self, _: &Context, book: &Object) -> Vec<field::Error> {
        self.0.validate_create(book, None)
    }

    fn validate_update(&self, _: &Context, _: Part<'_>, new: &Object, old: &Object) -> Vec<field::Error> {
        let mut errors = self.0.validate_update(new, old, None);
        let title = |book: &Object| book.get("spec").and_then(|spec| spec.get("title")).cloned();
        if title(new) != title(old) {
            let path = field::Path::new("spec").child("title");
            errors.push(field::Error::forbidden(&path, "a book keeps its title"));
        }
        errors
    }
}

/// What `kubectl get books` shows.
struct BookColumns;

static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let name = concord_printers::printer("", "", "").columns()[0].clone();
    let told = |title: &'static str, description: &'static str| Column {
        name: title.into(),
        format: "".into(),
        description: description.into(),
        priority: 0,
        ..name.clone()
    };
    vec![name.clone(), told("Title", "What it is called."), told("Lent To", "Who has it now.")]
});

impl Printer for BookColumns {
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn row(&self, book: &Map<String, Value>, _: Timestamp) -> Row {
        let text = |part: &str, field: &str| {
            book.get(part).and_then(|part| part.get(field)).cloned().unwrap_or_else(|| "".into())
        };
        Row::new(vec![metadata(book).name().into(), text("spec", "title"), text("status", "lentTo")])
    }
}

/// Everything that this server serves.
///
/// # Errors
///
/// If the schema is not one; a test shows that it is.
pub(crate) fn set() -> anyhow::Result<ApiSet> {
    let schema = Arc::new(Schema::compile(&schema())?);
    let storage = Storage {
        resource: GroupResource::new(version().group, "books"),
        kind: "Book".to_owned(),
        version: version(),
        encoding: version(),
        namespaced: true,
        prefix: "/registry/books/".into(),
        strategy: Arc::new(Books(schema.clone())),
        converter: Arc::new(Renaming),
        forms: BTreeMap::from([(version().to_string(), Form::Custom(schema))]),
        formed_since: 0,
        lifetime: None,
    };
    let names = ResourceNames {
        plural: "books".to_owned(),
        singular: "book".to_owned(),
        kind: "Book".to_owned(),
        list_kind: "BookList".to_owned(),
        short_names: vec!["bk".to_owned()],
        categories: vec!["library".to_owned()],
    };
    let mut books = Resource::new(version(), names, Backing::Stored(Arc::new(storage)), Verb::ALL.to_vec());
    books.order = ListOrder::Sorted;
    books.subresources = vec![Subresource {
        name: "status".to_owned(),
        kind: books.kind(),
        verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
        behaviour: SubresourceKind::Part,
    }];
    let books = Endpoint { columns: Columns::Fixed(&BookColumns), ..Endpoint::from(Arc::new(books)) };
    let group = ApiGroup::new(version().group, 1000, Origin::Custom, [ApiVersion::new(version(), [books])]);
    Ok(ApiSet::new([Arc::new(group)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_complete() {
        let set = set().expect("the schema is one");
        assert_eq!(set.paths().len(), 4);
        assert_eq!(COLUMNS.len(), BookColumns.row(&Map::new(), Timestamp::UNIX_EPOCH).cells.len());
    }
}
