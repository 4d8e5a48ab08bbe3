//! Values that a kube-apiserver stored, values that were tampered with, and configurations of every sort.

mod configuration;
mod kms;
mod values;
