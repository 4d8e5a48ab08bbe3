//! The tables that kubectl shows for built-in kinds.
