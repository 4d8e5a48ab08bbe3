//! What one request takes of one quota.

use concord_meta::{Quantity, QuantityFormat, Status};
use concord_plugins::amounts::{self, Amounts};
use concord_registry::{Attributes, Object, Operation, metadata};
use concord_replica::Snapshot;

use super::{
    ledger::{Balance, Ledger},
    scope,
    usage::Measure,
};

/// A request that uses something.
pub(super) struct Charge<'a> {
    pub(super) attributes: &'a Attributes<'a>,
    pub(super) measure: Measure,
    pub(super) object: &'a Object,
    pub(super) ledger: &'a Ledger,
    pub(super) snapshot: &'a Snapshot,
}

impl Charge<'_> {
    /// The quota with what the request takes of it; nothing if it takes nothing.
    ///
    /// # Errors
    ///
    /// 403 if there is not enough left.
    pub(super) fn apply(&self, mut quota: Object) -> Result<Option<Object>, Status> {
        if !scope::matches(&quota, self.measure, self.object) {
            return Ok(None);
        }
        let about = self.attributes.resource.group_resource();
        let is_counted = |balance: &Balance| {
            let mut limited = balance.hard.keys().filter(|name| self.measure.counts(&about, name));
            limited.all(|name| balance.used.contains_key(name))
        };
        let mut balance = match Balance::of(&quota).filter(is_counted) {
            Some(balance) => balance,
            // Nobody has counted yet, or something else is limited now, or who counted is of a release without the kind.
            None => self.ledger.count(&quota, self.snapshot, self.now())?,
        };
        let name = metadata(&quota).name().to_owned();
        let limited =
            || balance.hard.keys().map(String::as_str).filter(|name| self.measure.counts(&about, name));
        if limited().next().is_none() {
            return Ok(None);
        }
        self.measure
            .constraints(limited(), self.object)
            .map_err(|why| self.refused(&format!("failed quota: {name}: {why}")))?;
        if limited().any(|resource| !balance.used.contains_key(resource)) {
            let names: Vec<&str> = limited().collect();
            return Err(
                self.refused(&format!("status unknown for quota: {name}, resources: {}", names.join(",")))
            );
        }
        let requested = self.requested(&quota, &balance)?;
        if requested.is_empty() {
            return Ok(None);
        }
        self.check(&name, &balance, &requested)?;
        amounts::add(&mut balance.used, &requested);
        balance.write(&mut quota);
        Ok(Some(quota))
    }

    fn now(&self) -> i64 {
        self.attributes.context.now.unix
    }

    /// What is used more than before, of what the quota limits.
    fn requested(&self, quota: &Object, balance: &Balance) -> Result<Amounts, Status> {
        let about = self.attributes.resource.group_resource();
        let usage = |object: &Object| self.measure.usage(&about, object, self.now());
        let mut usage_now = usage(self.object);
        let zero = Quantity::new(0, QuantityFormat::DecimalSi);
        let negative: Vec<&str> =
            usage_now.iter().filter(|(_, amount)| **amount < zero).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            let why = format!("quota usage is negative for resource(s): {}", negative.join(","));
            return Err(self.refused(&why));
        }
        let updated = self.attributes.old.filter(|_| self.attributes.operation == Operation::Update);
        if let Some(old) = updated.filter(|old| scope::matches(quota, self.measure, old)) {
            for (name, before) in usage(old) {
                if let Some(amount) = usage_now.get_mut(&name) {
                    *amount -= &before;
                }
            }
        }
        usage_now.retain(|name, amount| *amount > zero && balance.hard.contains_key(name));
        Ok(usage_now)
    }

    fn check(&self, name: &str, balance: &Balance, requested: &Amounts) -> Result<(), Status> {
        // What a status says is so already.
        if self.attributes.subresource == "status" {
            return Ok(());
        }
        let is_exceeded = |resource: &str, amount: &Quantity| {
            let mut total =
                balance.used.get(resource).cloned().unwrap_or_else(|| Quantity::new(0, amount.format()));
            total += amount;
            balance.hard.get(resource).is_some_and(|hard| total > *hard)
        };
        let exceeded = requested.iter().filter(|(resource, amount)| is_exceeded(resource, amount));
        let exceeded: Vec<&str> = exceeded.map(|(resource, _)| resource.as_str()).collect();
        if exceeded.is_empty() {
            return Ok(());
        }
        let show = |amounts: &Amounts| {
            let shown = exceeded.iter().filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?)));
            shown.collect::<Vec<_>>().join(",")
        };
        Err(self.refused(&format!(
            "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
            show(requested),
            show(&balance.used),
            show(&balance.hard)
        )))
    }

    fn refused(&self, why: &str) -> Status {
        let Attributes { resource, name, .. } = self.attributes;
        Status::forbidden(&resource.group_resource(), name, why)
    }
}
