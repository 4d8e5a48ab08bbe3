//! What built-in kinds have where a client says nothing.
