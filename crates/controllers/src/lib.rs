//! What the server itself keeps true: default objects and the life of namespaces.
