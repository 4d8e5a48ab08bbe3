//! Ownership of `.spec.replicas` through the scale subresource.

use std::collections::BTreeMap;

use super::managed::{Managed, ManagerId, Owned};
use crate::fields::{FieldSet, Path};

const SCALE: &str = "autoscaling/v1";

/// Where each version of a resource keeps its replicas. A write to scale is tracked on the Scale object with
/// what [`ScalePaths::to_subresource`] gives, and [`ScalePaths::to_parent`] brings the outcome back.
#[derive(Clone, Debug)]
pub struct ScalePaths {
    /// The version of the request on the resource.
    pub api_version: String,
    /// The path in each version; `None` for a version without scale.
    pub paths: BTreeMap<String, Option<Path>>,
}

impl ScalePaths {
    fn path(&self, api_version: &str) -> Option<&Path> {
        self.paths.get(api_version)?.as_ref()
    }

    /// The managers of the replicas, as managers of a Scale.
    pub fn to_subresource(&self, parent: &Managed) -> Managed {
        let owners = parent.managers.iter().filter(|(_, owned)| self.owns_replicas(owned));
        let owners = owners.map(|(id, owned)| {
            let owned =
                Owned { fields: replicas_in_scale(), api_version: SCALE.to_owned(), time: owned.time };
            (id.clone(), owned)
        });
        Managed { managers: owners.collect() }
    }

    fn owns_replicas(&self, owned: &Owned) -> bool {
        self.path(&owned.api_version).is_some_and(|path| owned.fields.contains(&path.0))
    }

    /// The managers of the resource after a write to its scale. Versions that are not in the table are dropped.
    pub fn to_parent(&self, parent: &Managed, mut scale: Managed) -> Managed {
        let mut managers = BTreeMap::new();
        for (id, owned) in
            parent.managers.iter().filter(|(_, owned)| self.paths.contains_key(&owned.api_version))
        {
            let mut owned = owned.clone();
            if self.owns_replicas(&owned) && scale.managers.remove(id).is_none() {
                let replicas = self.path(&owned.api_version).into_iter().collect();
                owned.fields = owned.fields.difference(&replicas);
            }
            if !owned.fields.is_empty() {
                managers.insert(id.clone(), owned);
            }
        }
        let replicas: FieldSet = self.path(&self.api_version).into_iter().collect();
        let taken = scale.managers.into_iter().filter(|(_, owned)| owned.fields == replicas_in_scale());
        for (id, _) in taken {
            let api_version =
                if id.api_version.is_empty() { String::new() } else { self.api_version.clone() };
            // Upstream records no time for what came through scale.
            let owned = Owned { fields: replicas.clone(), api_version: self.api_version.clone(), time: None };
            managers.insert(ManagerId { api_version, ..id }, owned);
        }
        Managed { managers }
    }
}

fn replicas_in_scale() -> FieldSet {
    [Path::of_fields(["spec", "replicas"])].into_iter().collect()
}
