//! What a table consists of: columns and rows.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

/// The type of a column's cells, in OpenAPI's words. Some of upstream's columns lie: the cells of a
/// `string` may be numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A point in time.
    Date,
}

/// A `TableColumnDefinition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// What stands above the column; kubectl writes it in capitals.
    pub name: Cow<'static, str>,
    /// What its cells are.
    #[serde(rename = "type")]
    pub data_type: ColumnType,
    /// A refinement of the type; `name` marks the column that names the object.
    pub format: Cow<'static, str>,
    /// What the column tells.
    pub description: Cow<'static, str>,
    /// 0 for what is always shown, 1 for what `-o wide` adds.
    pub priority: i32,
}

impl Column {
    const fn new(
        name: &'static str,
        data_type: ColumnType,
        format: &'static str,
        description: &'static str,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            data_type,
            format: Cow::Borrowed(format),
            description: Cow::Borrowed(description),
            priority: 0,
        }
    }

    /// A column that names the object.
    pub(crate) const fn naming(name: &'static str, description: &'static str) -> Self {
        Self::new(name, ColumnType::String, "name", description)
    }

    pub(crate) const fn string(name: &'static str, description: &'static str) -> Self {
        Self::new(name, ColumnType::String, "", description)
    }

    pub(crate) const fn integer(name: &'static str, description: &'static str) -> Self {
        Self::new(name, ColumnType::Integer, "", description)
    }

    pub(crate) const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self::new(name, ColumnType::Boolean, "", description)
    }

    pub(crate) const fn date(name: &'static str, description: &'static str) -> Self {
        Self::new(name, ColumnType::Date, "", description)
    }

    /// A column that only `-o wide` shows.
    pub(crate) const fn wide(name: &'static str, description: &'static str) -> Self {
        Self::string(name, description).with_priority(1)
    }

    pub(crate) const fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

/// The first column of nearly every kind.
pub(crate) const NAME: Column = Column::naming("Name", "Name of the object.");

/// How long the object exists.
pub(crate) const AGE: Column = Column::string("Age", "Time since the object was created.");

pub(crate) const CONTAINERS: Column = Column::wide("Containers", "Names of the template's containers.");

pub(crate) const IMAGES: Column = Column::wide("Images", "Images of the template's containers.");

/// What a table tells about one object, without the object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// One cell for each column; see the docs of a printer for the exception.
    pub cells: Vec<Value>,
    /// What else a client should know about the row.
    #[serde(skip_serializing_if = "<[RowCondition]>::is_empty")]
    pub conditions: &'static [RowCondition],
}

impl Row {
    /// A row without conditions.
    #[must_use]
    pub fn new(cells: Vec<Value>) -> Self {
        Self { cells, conditions: &[] }
    }
}

/// A `TableRowCondition`. The only type upstream knows is `Completed`: kubectl may dim or hide the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowCondition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub condition_type: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Why, in a word for programs.
    pub reason: &'static str,
    /// Why, in words for people.
    pub message: &'static str,
}

/// The cells of a row.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => { $crate::Row::new(vec![$(serde_json::Value::from($cell)),+]) };
}
