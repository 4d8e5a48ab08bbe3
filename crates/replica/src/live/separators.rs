use super::head::{common_prefix, head};

/// The keys that part the children of a branch, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Separators {
    /// So many bytes at the beginning of all keys are the same.
    common: usize,
    /// The head of each key.
    heads: Vec<u32>,
    keys: Vec<Box<[u8]>>,
}

impl Separators {
    pub(super) fn new(keys: Vec<Box<[u8]>>) -> Self {
        let common = match keys.as_slice() {
            [first, .., last] => common_prefix(first, last),
            _ => 0,
        };
        let heads = keys.iter().map(|key| head(key, common)).collect();
        Self { common, heads, keys }
    }

    pub(super) fn keys(&self) -> &[Box<[u8]>] {
        &self.keys
    }

    /// How many of them are not greater than `key`.
    pub(super) fn count_up_to(&self, key: &[u8]) -> usize {
        let Some(first) = self.keys.first() else { return 0 };
        if !key.starts_with(&first[..self.common]) {
            // It compares with all of them in the same way.
            return if key < first.as_ref() { 0 } else { self.keys.len() };
        }
        let head = head(key, self.common);
        let start = self.heads.partition_point(|other| *other < head);
        let alike = self.heads[start..].iter().take_while(|other| **other == head).count();
        start + self.keys[start..start + alike].partition_point(|other| other.as_ref() <= key)
    }
}
