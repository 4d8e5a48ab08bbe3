//! The tables that `kubectl get` shows.
//!
//! An API server renders the table, not the client: it answers with columns and with one row of cells
//! for each object. This crate knows the columns of every built-in kind and how its cells follow from an
//! object ([`printer`]), and puts rows together to a `Table` ([`Tables`]).
//!
//! The cells are kube-apiserver's, including its oddities, since people read them and scripts cut them
//! apart. Where upstream prints a field after defaulting, an absent field prints as its default. The
//! names, types, formats and priorities of columns are upstream's too; their descriptions are our own,
//! shorter words: clients show them to people or not at all.
//!
//! Everything here is a function of its arguments: the crate never looks at a clock, never does I/O and
//! never panics, whatever the object looks like. What has the wrong type counts as absent.
//!
//! Start with [`printer`], [`Printer`] and [`Tables`].

#[macro_use]
mod column;
mod duration;
mod fields;
mod format;
mod kinds;
mod printer;
mod table;

pub use column::{Column, ColumnType, Row, RowCondition};
pub use duration::{human_duration, short_human_duration};
pub use kinds::printer;
pub use printer::Printer;
pub use table::{IncludeObject, ListMeta, MetaVersion, TableOptions, Tables};
