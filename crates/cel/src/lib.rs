//! The Common Expression Language with the libraries and cost limits of Kubernetes.
