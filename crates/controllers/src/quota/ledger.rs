//! What is used in a namespace, counted.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use concord_meta::{GroupResource, Quantity, QuantityFormat, Status};
use concord_plugins::amounts::{self, Amounts};
use concord_registry::{Item, Object, Resource, Resources, metadata};
use concord_replica::Snapshot;
use concord_store::KeyRange;
use serde_json::{Value, json};

use super::{at, scope, usage::Measure};

/// The quotas, and how to count what they limit.
pub(super) struct Ledger {
    pub(super) quotas: Arc<Resource>,
    pub(super) resources: Weak<dyn Resources>,
}

/// The amounts that a quota allows and that are used of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Balance {
    pub(super) hard: Amounts,
    pub(super) used: Amounts,
}

impl Balance {
    /// What a quota says about itself, if that is about what it allows now.
    pub(super) fn of(quota: &Object) -> Option<Self> {
        let (spec, hard) = (at(quota, &["spec", "hard"]), at(quota, &["status", "hard"]));
        let (wanted, hard) = (amounts::amounts(spec), amounts::amounts(hard));
        let used = at(quota, &["status", "used"]).map(|used| amounts::amounts(Some(used)));
        let used = used.filter(|_| wanted == hard)?;
        // Of what nobody serves, nothing is used, and nothing is known.
        Some(Self { hard, used })
    }

    /// Writes it into the status of a quota.
    pub(super) fn write(&self, quota: &mut Object) {
        let list = |amounts: &Amounts| -> Value {
            amounts
                .iter()
                .map(|(name, amount)| (name.clone(), Value::from(amount.to_string())))
                .collect::<Object>()
                .into()
        };
        quota.insert("status".to_owned(), json!({"hard": list(&self.hard), "used": list(&self.used)}));
    }
}

impl Ledger {
    /// Counts everything that a quota limits, in one state.
    ///
    /// # Errors
    ///
    /// 500 if something cannot be read, or the server is ending.
    pub(super) fn count(&self, quota: &Object, snapshot: &Snapshot, now: i64) -> Result<Balance, Status> {
        let resources = self.resources.upgrade();
        let resources = resources.ok_or_else(|| Status::internal_error("the server is ending"))?;
        let hard = amounts::amounts(at(quota, &["spec", "hard"]));
        let mut used = Amounts::new();
        let all = resources.all().into_iter().filter(|resource| resource.namespaced);
        let by_name: BTreeMap<(String, String), Arc<Resource>> = all
            .map(|resource| ((resource.version.group.clone(), resource.names.plural.clone()), resource))
            .collect();
        for resource in by_name.values() {
            let about = resource.group_resource();
            let measure = Measure::of(&about);
            let names: Vec<&String> = hard.keys().filter(|name| measure.counts(&about, name)).collect();
            if names.is_empty() || is_ignored(&about) {
                continue;
            }
            let total = self.total(quota, resource, snapshot, now)?;
            let zero = || Quantity::new(0, QuantityFormat::DecimalSi);
            used.extend(
                names.into_iter().map(|name| (name.clone(), total.get(name).cloned().unwrap_or_else(zero))),
            );
        }
        // What nobody here serves, another server of the fleet may have counted.
        let before = amounts::amounts(at(quota, &["status", "used"]));
        for (name, amount) in before.into_iter().filter(|(name, _)| hard.contains_key(name)) {
            used.entry(name).or_insert(amount);
        }
        Ok(Balance { hard, used })
    }

    fn total(
        &self,
        quota: &Object,
        resource: &Resource,
        snapshot: &Snapshot,
        now: i64,
    ) -> Result<Amounts, Status> {
        let about = resource.group_resource();
        let measure = Measure::of(&about);
        let Some(storage) = resource.storage() else { return Ok(Amounts::new()) };
        let range = KeyRange::prefix(storage.key_prefix(Some(metadata(quota).namespace())));
        let mut total = Amounts::new();
        for entry in snapshot.scan(&range) {
            // What is only counted need not be read.
            let object = match measure {
                Measure::Count => Object::new(),
                _ => storage.object(&Item::from(entry))?,
            };
            if scope::matches(quota, measure, &object) {
                amounts::add(&mut total, &measure.usage(&about, &object, now));
            }
        }
        Ok(total)
    }
}

/// What is never limited.
pub(super) fn is_ignored(resource: &GroupResource) -> bool {
    resource.resource == "events" && ["", "events.k8s.io"].contains(&resource.group.as_str())
}
