//! The HTTP face of a registry: verbs, discovery, watches, tables.
