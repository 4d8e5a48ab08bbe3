//! Regular expressions with Go's grammar and meaning.
