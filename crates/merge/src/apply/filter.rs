use std::collections::BTreeMap;

use crate::fields::{FieldSet, PathElement};

/// The fields an endpoint does not take from clients, by version: status on the main resource, everything else
/// on its status. Nobody comes to own them there.
#[derive(Clone, Debug, Default)]
pub struct ResetFields {
    filters: BTreeMap<String, Filter>,
}

#[derive(Clone, Debug)]
enum Filter {
    Exclude(FieldSet),
    Include(Vec<Vec<Option<PathElement>>>),
}

impl ResetFields {
    /// Nothing is reset.
    pub fn none() -> Self {
        Self::default()
    }

    /// In this version these fields, with all below them, are reset.
    #[must_use]
    pub fn excluding(mut self, api_version: impl Into<String>, fields: FieldSet) -> Self {
        self.filters.insert(api_version.into(), Filter::Exclude(fields));
        self
    }

    /// In this version everything is reset but what is at or below one of these paths; `None` in a path stands
    /// for any element.
    #[must_use]
    pub fn only(mut self, api_version: impl Into<String>, paths: Vec<Vec<Option<PathElement>>>) -> Self {
        self.filters.insert(api_version.into(), Filter::Include(paths));
        self
    }

    pub(super) fn filter(&self, api_version: &str, set: &FieldSet) -> FieldSet {
        match self.filters.get(api_version) {
            None => set.clone(),
            Some(Filter::Exclude(fields)) => set.recursive_difference(fields),
            Some(Filter::Include(paths)) => {
                include(set, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
        }
    }
}

fn include(set: &FieldSet, paths: &[&[Option<PathElement>]]) -> FieldSet {
    if paths.iter().any(|path| path.is_empty()) {
        return set.clone();
    }
    FieldSet::from_first_level(set.first_level().filter_map(|(element, member, below)| {
        let rest = paths.iter().filter_map(|path| match path.split_first() {
            Some((first, rest)) if first.as_ref().is_none_or(|first| first == element) => Some(rest),
            _ => None,
        });
        let rest: Vec<_> = rest.collect();
        (!rest.is_empty()).then(|| (element.clone(), member, include(below, &rest)))
    }))
}
