//! Kubernetes objects in protobuf, by tables of field numbers.
