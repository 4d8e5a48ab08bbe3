//! Sets of field paths, and their FieldsV1 form in managedFields.

mod codec;
mod element;

use std::collections::BTreeMap;

pub use codec::FieldsError;
pub use element::{Path, PathElement};

/// A set of fields of an object.
///
/// A tree: `{.spec: {.replicas*, .template: {.spec*}}}` holds the paths `.spec.replicas` and
/// `.spec.template.spec`; only places marked `*` are in the set. A parent and its child can both be in it.
/// No branch is without a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    places: BTreeMap<PathElement, Place>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    /// Whether the path that ends here is in the set.
    member: bool,
    below: FieldSet,
}

impl Place {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a path. Its parents are not added, and the empty path, which is the whole object, is nobody's.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for parent in parents {
            set = &mut set.places.entry(parent.clone()).or_default().below;
        }
        set.places.entry(last.clone()).or_default().member = true;
    }

    /// Whether a path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.contains(rest)),
        }
    }

    /// Whether the path of this one element is in the set.
    pub(crate) fn has(&self, element: &PathElement) -> bool {
        self.places.get(element).is_some_and(|place| place.member)
    }

    /// The paths that continue below an element, if any.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.places.get(element).map(|place| &place.below).filter(|below| !below.is_empty())
    }

    /// The places of the first level: the element, whether it is a member, and what is below.
    pub(crate) fn first_level(&self) -> impl Iterator<Item = (&PathElement, bool, &FieldSet)> {
        self.places.iter().map(|(element, place)| (element, place.member, &place.below))
    }

    /// Builds a set from the places of its first level. Places that hold nothing are left out.
    pub(crate) fn from_first_level(places: impl IntoIterator<Item = (PathElement, bool, FieldSet)>) -> Self {
        let places = places.into_iter().map(|(element, member, below)| (element, Place { member, below }));
        Self { places: places.filter(|(_, place)| !place.is_empty()).collect() }
    }

    /// Every path, each level before the levels below it: the order in which conflicts are listed.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Path>) {
        for (element, _) in self.places.iter().filter(|(_, place)| place.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            paths.push(Path(path));
        }
        for (element, place) in &self.places {
            prefix.push(element.clone());
            place.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// What is in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, theirs) in &other.places {
            let ours = union.places.entry(element.clone()).or_default();
            ours.member |= theirs.member;
            ours.below = ours.below.union(&theirs.below);
        }
        union
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.filter_places(|element, ours| {
            let theirs = other.places.get(element)?;
            Some(Place {
                member: ours.member && theirs.member,
                below: ours.below.intersection(&theirs.below),
            })
        })
    }

    /// What is in this set and not in the other. Removing a parent leaves its children.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.filter_places(|element, ours| match other.places.get(element) {
            None => Some(ours.clone()),
            Some(theirs) => Some(Place {
                member: ours.member && !theirs.member,
                below: ours.below.difference(&theirs.below),
            }),
        })
    }

    /// As [`FieldSet::difference`], but removing a parent removes everything below it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.filter_places(|element, ours| match other.places.get(element) {
            None => Some(ours.clone()),
            Some(theirs) if theirs.member => None,
            Some(theirs) => {
                Some(Place { member: ours.member, below: ours.below.recursive_difference(&theirs.below) })
            }
        })
    }

    fn filter_places(&self, mut keep: impl FnMut(&PathElement, &Place) -> Option<Place>) -> Self {
        let places =
            self.places.iter().filter_map(|(element, ours)| Some((element.clone(), keep(element, ours)?)));
        Self { places: places.filter(|(_, place)| !place.is_empty()).collect() }
    }
}

impl<P: AsRef<[PathElement]>> FromIterator<P> for FieldSet {
    fn from_iter<I: IntoIterator<Item = P>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path.as_ref());
        }
        set
    }
}
