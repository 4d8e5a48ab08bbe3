use std::{collections::BTreeMap, ops::Bound};

use bytes::Bytes;

/// A map from prefixes that finds all prefixes of a key in a few lookups, however many there are.
#[derive(Debug)]
pub(crate) struct PrefixMap<T>(BTreeMap<Bytes, T>);

impl<T> Default for PrefixMap<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> PrefixMap<T> {
    pub(crate) fn get(&self, prefix: &[u8]) -> Option<&T> {
        self.0.get(prefix)
    }

    pub(crate) fn get_or_insert_with(&mut self, prefix: &Bytes, new: impl FnOnce() -> T) -> &mut T {
        self.0.entry(prefix.clone()).or_insert_with(new)
    }

    pub(crate) fn remove(&mut self, prefix: &[u8]) -> Option<T> {
        self.0.remove(prefix)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.0).into_values()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Calls `found` for each prefix of `key`, longest first.
    ///
    /// The prefixes of a key are never greater than the key, so the search goes down from it. A
    /// candidate that is no prefix of the key first differs from it at some length `n`, in a smaller
    /// byte; every prefix of the key longer than `n` is therefore greater than the candidate and has
    /// been ruled out already, and the search goes on at the first `n` bytes of the key.
    pub(crate) fn each_prefix_of(&mut self, key: &[u8], mut found: impl FnMut(&mut T)) {
        let mut bound = Bound::Included(key);
        while let Some((candidate, value)) =
            self.0.range_mut::<[u8], _>((Bound::Unbounded, bound)).next_back()
        {
            let common = common_prefix(candidate, key);
            if common == candidate.len() {
                found(value);
                bound = Bound::Excluded(&key[..common]);
            } else {
                bound = Bound::Included(&key[..common]);
            }
        }
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(prefixes: &[Vec<u8>], key: &[u8]) -> Vec<Vec<u8>> {
        let mut map = PrefixMap::default();
        for prefix in prefixes {
            map.get_or_insert_with(&Bytes::copy_from_slice(prefix), || prefix.clone());
        }
        let mut found = Vec::new();
        map.each_prefix_of(key, |prefix| found.push(prefix.clone()));
        found
    }

    proptest! {
        #[test]
        fn finds_exactly_the_prefixes_of_a_key(
            prefixes in prop::collection::btree_set(prop::collection::vec(prop::sample::select(vec![0, 1, 0xfe, 0xff]), 0..6), 0..40),
            key in prop::collection::vec(prop::sample::select(vec![0, 1, 0xfe, 0xff]), 0..8),
        ) {
            let prefixes: Vec<Vec<u8>> = prefixes.into_iter().collect();
            let mut expected: Vec<Vec<u8>> =
                prefixes.iter().filter(|prefix| key.starts_with(prefix)).cloned().collect();
            expected.reverse();
            prop_assert_eq!(found(&prefixes, &key), expected);
        }
    }
}
