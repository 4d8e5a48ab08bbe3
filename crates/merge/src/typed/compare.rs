use std::collections::BTreeMap;

use serde_json::Value;

use super::{Kind, ListKind, MapKind, Type, ValidationErrors, items::element_of, list_of, map_of};
use crate::{
    fields::{FieldSet, PathElement},
    values,
};

/// How one object differs from another. No field is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What only the old one has.
    pub removed: FieldSet,
    /// What both have with different values.
    pub modified: FieldSet,
    /// What only the new one has.
    pub added: FieldSet,
}

impl Comparison {
    /// The comparison with a filter on each set.
    #[must_use]
    pub(crate) fn filtered(&self, filter: impl Fn(&FieldSet) -> FieldSet) -> Self {
        Self { removed: filter(&self.removed), modified: filter(&self.modified), added: filter(&self.added) }
    }

    /// What the new object sets: modified and added.
    pub(crate) fn changed(&self) -> FieldSet {
        self.modified.union(&self.added)
    }
}

/// Compares two values of one type.
pub fn compare<T: Type>(old: &Value, new: &Value, ty: &T) -> Result<Comparison, ValidationErrors> {
    let mut walker = Walker { path: Vec::new(), comparison: Comparison::default() };
    walker.walk(Some(old), Some(new), ty)?;
    Ok(walker.comparison)
}

type Side<'a> = Option<&'a Value>;
type Result<T, E = ValidationErrors> = std::result::Result<T, E>;

struct Walker {
    path: Vec<PathElement>,
    comparison: Comparison,
}

impl Walker {
    fn walk<T: Type>(&mut self, old: Side<'_>, new: Side<'_>, ty: &T) -> Result<()> {
        if old.is_some() && old == new {
            return Ok(());
        }
        let kinds = ty.kinds();
        let (Some(before), Some(after)) = (kinds.deduce(old), kinds.deduce(new)) else {
            return Err(ValidationErrors::no_type());
        };
        let is_leaf = if new.is_none() {
            self.visit(before.kind, old, new, ty)?
        } else {
            // A value that changed its kind is compared as both: the old one goes, the new one comes.
            if old.is_some() && before != after {
                self.visit(before.kind, old, new, ty)?;
            }
            self.visit(after.kind, old, new, ty)?
        };
        if !is_leaf {
            self.note_presence(old, new);
        }
        Ok(())
    }

    fn note_presence(&mut self, old: Side<'_>, new: Side<'_>) {
        if old.is_none() {
            self.comparison.added.insert(&self.path);
        } else if new.is_none() {
            self.comparison.removed.insert(&self.path);
        }
    }

    /// Returns whether the place was compared as a whole.
    fn visit<T: Type>(&mut self, kind: Kind, old: Side<'_>, new: Side<'_>, ty: &T) -> Result<bool> {
        let kinds = ty.kinds();
        let whole = match kind {
            Kind::Scalar => true,
            Kind::Map => {
                let empty = |side| map_of(side).is_none_or(serde_json::Map::is_empty);
                kinds.map == Some(MapKind::Atomic) || (empty(old) && empty(new))
            }
            Kind::List => {
                let empty = |side| list_of(side).is_none_or(Vec::is_empty);
                matches!(kinds.list, None | Some(ListKind::Atomic)) || (empty(old) && empty(new))
            }
        };
        match (kind, kinds.list) {
            _ if whole => self.leaf(old, new),
            (Kind::List, Some(list)) => self.items(old, new, ty, list)?,
            _ => self.fields(old, new, ty)?,
        }
        Ok(whole)
    }

    fn leaf(&mut self, old: Side<'_>, new: Side<'_>) {
        match (old, new) {
            (Some(old), Some(new)) if values::equal(old, new) => {}
            (Some(_), Some(_)) => self.comparison.modified.insert(&self.path),
            _ => self.note_presence(old, new),
        }
    }

    fn fields<T: Type>(&mut self, old: Side<'_>, new: Side<'_>, ty: &T) -> Result<()> {
        let (old, new) = (map_of(old), map_of(new));
        let only_new = |name: &&String| old.is_none_or(|old| !old.contains_key(*name));
        let names = old.into_iter().flat_map(serde_json::Map::keys);
        for name in names.chain(new.into_iter().flat_map(serde_json::Map::keys).filter(only_new)) {
            let field = super::field_type(ty, name).ok_or_else(ValidationErrors::no_type)?;
            let (old, new) = (old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)));
            self.below(PathElement::field(name), old, new, &field)?;
        }
        Ok(())
    }

    fn items<T: Type>(&mut self, old: Side<'_>, new: Side<'_>, ty: &T, list: ListKind<'_>) -> Result<()> {
        let item_type = ty.items().ok_or_else(ValidationErrors::no_type)?;
        let old = by_element(list_of(old), ty, list)?;
        let new = by_element(list_of(new), ty, list)?;
        let none = Vec::new();
        let elements = old.keys().chain(new.keys().filter(|element| !old.contains_key(*element)));
        for element in elements {
            let (old, new) = (old.get(element).unwrap_or(&none), new.get(element).unwrap_or(&none));
            self.item(element, old, new, &item_type)?;
        }
        Ok(())
    }

    /// Compares the items of one identity. Several of them count as one atomic item.
    fn item<T: Type>(&mut self, element: &PathElement, old: &[&Value], new: &[&Value], ty: &T) -> Result<()> {
        let path = [self.path.as_slice(), std::slice::from_ref(element)].concat();
        match (old, new) {
            ([] | [_], [] | [_]) => {
                self.below(element.clone(), old.first().copied(), new.first().copied(), ty)?
            }
            ([_, _, ..], [_, _, ..]) => {
                let equal =
                    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| values::equal(old, new));
                if !equal {
                    self.comparison.modified.insert(&path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.below(element.clone(), None, Some(new), ty)?;
                }
                self.comparison.removed.insert(&path);
            }
            (_, [_, _, ..]) => {
                if let Some(old) = old.first() {
                    self.below(element.clone(), Some(old), None, ty)?;
                }
                self.comparison.added.insert(&path);
            }
        }
        Ok(())
    }

    fn below<T: Type>(&mut self, element: PathElement, old: Side<'_>, new: Side<'_>, ty: &T) -> Result<()> {
        self.path.push(element);
        let result = self.walk(old, new, ty);
        let element = self.path.pop();
        result.map_err(|errors| errors.below(element.expect("pushed above")))
    }
}

fn by_element<'a, T: Type>(
    items: Option<&'a Vec<Value>>,
    ty: &T,
    list: ListKind<'_>,
) -> Result<BTreeMap<PathElement, Vec<&'a Value>>> {
    let mut found: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for (index, item) in items.into_iter().flatten().enumerate() {
        let element = element_of(ty, list, item)
            .map_err(|why| ValidationErrors::one(format!("element {index}: {why}")))?;
        found.entry(element).or_default().push(item);
    }
    Ok(found)
}
