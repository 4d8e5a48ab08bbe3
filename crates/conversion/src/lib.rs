//! The versions of one built-in kind, each made from another without loss.
