use std::collections::BTreeMap;

use async_trait::async_trait;

/// Objects that are in namespaces but not in the log: those of servers behind this one.
#[async_trait]
pub trait Elsewhere: std::fmt::Debug + Send + Sync + 'static {
    /// Has everything deleted that a namespace has there, and says what is left of it.
    async fn empty(&self, namespace: &str) -> Left;
}

/// What is left of a namespace elsewhere. It is gone only when nothing is left and everything is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// How many objects there are, by `plural.group`.
    pub objects: BTreeMap<String, usize>,
    /// How many objects each finalizer is on.
    pub finalizers: BTreeMap<String, usize>,
    /// The versions of which it is not known what there is, and why.
    pub undiscovered: BTreeMap<String, String>,
    /// What went wrong, by `plural.group`.
    pub failures: BTreeMap<String, String>,
}

impl Left {
    /// Whether it is known that nothing is left.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.undiscovered.is_empty() && self.failures.is_empty()
    }
}
