//! The address fields of a Service, which depend on each other: `clusterIP`, `clusterIPs`, `ipFamilies` and
//! `ipFamilyPolicy`.

use std::net::IpAddr;

use concord_meta::field::{BadValue, Error, Path};
use concord_registry::Object;
use serde_json::Value;

use super::range::Family;

/// The value of `clusterIP` that says that there is to be none.
pub(super) const NONE: &str = "None";
const SINGLE: &str = "SingleStack";
const PREFER_DUAL: &str = "PreferDualStack";
const REQUIRE_DUAL: &str = "RequireDualStack";

/// These fields, taken out of a Service's `spec`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) service_type: String,
    pub(super) cluster_ip: String,
    pub(super) cluster_ips: Vec<String>,
    pub(super) families: Vec<String>,
    pub(super) policy: Option<String>,
    selects: bool,
}

impl Addresses {
    pub(super) fn of(spec: &Object) -> Self {
        let text = |name: &str| spec.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |name: &str| -> Vec<String> {
            let items = spec.get(name).and_then(Value::as_array);
            items.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        };
        let mut addresses = Self {
            service_type: text("type"),
            cluster_ip: text("clusterIP"),
            cluster_ips: list("clusterIPs"),
            families: list("ipFamilies"),
            policy: spec.get("ipFamilyPolicy").and_then(Value::as_str).map(ToOwned::to_owned),
            selects: spec.get("selector").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty()),
        };
        if addresses.service_type.is_empty() {
            addresses.service_type = "ClusterIP".to_owned();
        }
        addresses
    }

    /// Puts the fields back.
    pub(super) fn put(self, spec: &mut Object) {
        let mut set = |name: &str, value: Option<Value>| match value {
            Some(value) => drop(spec.insert(name.to_owned(), value)),
            None => drop(spec.remove(name)),
        };
        let list = |items: Vec<String>| (!items.is_empty()).then(|| Value::from(items));
        set("clusterIP", (!self.cluster_ip.is_empty()).then(|| self.cluster_ip.into()));
        set("clusterIPs", list(self.cluster_ips));
        set("ipFamilies", list(self.families));
        set("ipFamilyPolicy", self.policy.map(Value::from));
    }

    pub(super) fn is_external_name(&self) -> bool {
        self.service_type == "ExternalName"
    }

    /// The addresses the Service has.
    pub(super) fn allocated(&self) -> Vec<IpAddr> {
        if self.is_external_name() {
            return Vec::new();
        }
        self.cluster_ips.iter().filter_map(|ip| ip.parse().ok()).collect()
    }

    /// Makes `clusterIP` and `clusterIPs` say the same, whichever of them the client knows.
    pub(super) fn normalize(&mut self, old: Option<&Self>) {
        let Some(old) = old else {
            if self.cluster_ips.is_empty() && !self.cluster_ip.is_empty() {
                self.cluster_ips = vec![self.cluster_ip.clone()];
            }
            return;
        };
        if !old.is_external_name() && !self.is_external_name() {
            // A client that replaces the object without them does not mean to give them up.
            if self.cluster_ip.is_empty() {
                self.cluster_ip.clone_from(&old.cluster_ip);
            }
            if self.cluster_ips.is_empty() {
                self.cluster_ips.clone_from(&old.cluster_ips);
            }
        }
        if self.cluster_ips.is_empty() && self.cluster_ip == old.cluster_ip {
            self.cluster_ips.clone_from(&old.cluster_ips);
        }
        if self.cluster_ip != old.cluster_ip && self.cluster_ips == old.cluster_ips {
            self.cluster_ips = match self.cluster_ip.as_str() {
                "" => Vec::new(),
                ip => vec![ip.to_owned()],
            };
        }
    }

    /// Gives up what a Service of type ExternalName cannot have, unless the client asks for it anew.
    pub(super) fn drop_if_external(&mut self, old: &Self) {
        if old.is_external_name() || !self.is_external_name() {
            return;
        }
        if self.cluster_ip == old.cluster_ip && self.cluster_ips == old.cluster_ips {
            self.cluster_ip.clear();
            self.cluster_ips.clear();
        }
        if self.families == old.families {
            self.families.clear();
        }
        if self.policy == old.policy {
            self.policy = None;
        }
    }

    /// Fills in the families and the policy where the cluster has addresses of one family only.
    pub(super) fn complete(&mut self, old: Option<&Self>, cluster: Family) -> Result<(), Vec<Error>> {
        if self.is_external_name() {
            // What such a Service has all the same, validation tells, with all else that is wrong.
            return Ok(());
        }
        if old.is_some_and(|old| self.is_settled(old)) {
            return Ok(());
        }
        if self.policy.is_none() {
            self.policy = Some(self.default_policy(old));
        }
        refuse_if_any(self.related())?;
        refuse_if_any(self.infer(old, cluster))?;
        if self.cluster_ip == NONE && !self.selects {
            self.complete_headless(cluster);
            return Ok(());
        }
        let mut errors = Vec::new();
        if self.policy.as_deref() == Some(REQUIRE_DUAL) {
            errors.push(self.bad_policy("this cluster is not configured for dual-stack services"));
        }
        for (index, family) in
            self.families.iter().enumerate().filter(|(_, family)| *family != cluster.as_str())
        {
            let path = path("ipFamilies").index(index);
            errors.push(Error::invalid(&path, BadValue::named(family), "not configured on this cluster"));
        }
        refuse_if_any(errors)?;
        if self.families.is_empty() {
            self.families = vec![cluster.as_str().to_owned()];
        }
        Ok(())
    }

    /// Addresses are for the life of a Service; only the second one can come and go.
    pub(super) fn unchanged(&self, old: &Self) -> Result<(), Vec<Error>> {
        let headless = |of: &Self| of.cluster_ips.first().is_some_and(|ip| ip == NONE);
        if self.is_external_name() || old.is_external_name() || (headless(self) && headless(old)) {
            return Ok(());
        }
        let bad = |index, why| {
            Error::invalid(&path("clusterIPs").index(index), BadValue::strings(&self.cluster_ips), why)
        };
        if self.cluster_ips.is_empty() && !old.cluster_ips.is_empty() {
            return Err(vec![bad(0, "primary clusterIP can not be unset")]);
        }
        let pairs = self.cluster_ips.iter().zip(&old.cluster_ips).enumerate();
        let differ = pairs.filter(|(_, (new, old))| new != old).map(|(index, _)| index);
        refuse_if_any(differ.map(|index| bad(index, "may not change once set")).collect())
    }

    /// A Service that takes what it can get stays as it is when nothing about it changes.
    fn is_settled(&self, old: &Self) -> bool {
        let prefers = |policy: &Option<String>| policy.as_deref() == Some(PREFER_DUAL);
        self.service_type == old.service_type
            && prefers(&self.policy)
            && (old.policy.is_none() || prefers(&old.policy))
            && self.cluster_ips == old.cluster_ips
            && self.families == old.families
    }

    fn default_policy(&self, old: Option<&Self>) -> String {
        let before = old.and_then(|old| old.policy.clone());
        before.unwrap_or_else(|| {
            let dual = self.cluster_ip == NONE && !self.selects;
            if dual { REQUIRE_DUAL } else { SINGLE }.to_owned()
        })
    }

    /// Who writes endpoints by hand may write them in both families, whatever the cluster has.
    fn complete_headless(&mut self, cluster: Family) {
        if self.families.is_empty() {
            self.families = vec![cluster.as_str().to_owned()];
        }
        if self.families.len() < 2 && self.policy.as_deref() != Some(SINGLE) {
            let first = if self.families[0] == Family::V4.as_str() { Family::V4 } else { Family::V6 };
            self.families.push(first.other().as_str().to_owned());
        }
    }

    /// Families follow from addresses; the policy must allow as many as there are.
    fn infer(&mut self, old: Option<&Self>, cluster: Family) -> Vec<Error> {
        let mut errors = Vec::new();
        let single = self.policy.as_deref() == Some(SINGLE);
        if let Some(old) = old {
            if single {
                // With the addresses unchanged, this policy says that the second one is given up.
                if self.cluster_ips == old.cluster_ips {
                    self.cluster_ips.truncate(1);
                }
                if self.families == old.families {
                    self.families.truncate(1);
                }
            } else {
                let reduced = |new: &[String], old: &[String]| !new.is_empty() && new.len() < old.len();
                if reduced(&self.cluster_ips, &old.cluster_ips) {
                    errors.push(self.bad_policy("must be 'SingleStack' to release the secondary cluster IP"));
                }
                if reduced(&self.families, &old.families) {
                    errors.push(self.bad_policy("must be 'SingleStack' to release the secondary IP family"));
                }
            }
        }
        for (count, what) in [(self.cluster_ips.len(), "cluster IPs"), (self.families.len(), "IP families")] {
            if single && count == 2 {
                let why = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                errors.push(self.bad_policy(why));
            }
        }
        for index in self.families.len()..self.cluster_ips.len() {
            let Ok(ip) = self.cluster_ips[index].parse() else { break };
            match Family::of(ip) {
                family if family == cluster => self.families.push(family.as_str().to_owned()),
                family => {
                    let why = format!("{} is not configured on this cluster", family.as_str());
                    let path = path("clusterIPs").index(index);
                    errors.push(Error::invalid(&path, BadValue::strings(&self.cluster_ips), why));
                }
            }
        }
        errors
    }

    /// What is wrong with the fields, looked at together.
    fn related(&self) -> Vec<Error> {
        let mut errors = self.out_of_step();
        let field = path("ipFamilies");
        for (index, family) in self.families.iter().enumerate() {
            if ![Family::V4.as_str(), Family::V6.as_str()].contains(&family.as_str()) {
                let supported = [Family::V4.as_str(), Family::V6.as_str()];
                errors.push(Error::not_supported(&field.index(index), BadValue::named(family), &supported));
            }
            if self.families[..index].contains(family) {
                errors.push(Error::duplicate(&field.index(index), BadValue::named(family)));
            }
        }
        let policies = [PREFER_DUAL, REQUIRE_DUAL, SINGLE];
        if let Some(policy) = self.policy.as_deref().filter(|policy| !policies.contains(policy)) {
            errors.push(Error::not_supported(&path("ipFamilyPolicy"), BadValue::named(policy), &policies));
        }
        let invalid = self.invalid_ips();
        let count = self.cluster_ips.len();
        let stop = !invalid.is_empty();
        errors.extend(invalid);
        if count > 2 {
            errors.push(self.bad_ips("may only hold up to 2 values"));
        }
        if !stop {
            errors.extend(self.mismatches());
        }
        errors
    }

    fn out_of_step(&self) -> Vec<Error> {
        match (self.cluster_ip.as_str(), self.cluster_ips.first()) {
            ("", Some(_)) => vec![self.bad_ips("must be empty when `clusterIP` is not specified")],
            ("", None) => Vec::new(),
            (_, None) => vec![Error::required(&path("clusterIPs"), "")],
            (ip, Some(first)) if ip == first => Vec::new(),
            _ => vec![self.bad_ips("first value must match `clusterIP`")],
        }
    }

    fn invalid_ips(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        for (index, ip) in self.cluster_ips.iter().enumerate() {
            if index == 0 && ip == NONE {
                if self.cluster_ips.len() > 1 {
                    errors.push(self.bad_ips("'None' must be the first and only value"));
                }
            } else if ip.parse::<IpAddr>().is_err() {
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                errors.push(Error::invalid(&path("clusterIPs").index(index), ip, why));
            }
        }
        errors
    }

    /// Addresses that do not fit each other or the families.
    fn mismatches(&self) -> Vec<Error> {
        let ips: Vec<Option<Family>> =
            self.cluster_ips.iter().map(|ip| ip.parse().ok().map(Family::of)).collect();
        let mut errors = Vec::new();
        let dual = ips.contains(&Some(Family::V4)) && ips.contains(&Some(Family::V6));
        if ips.len() > 1 && !(ips.len() == 2 && dual) {
            errors.push(self.bad_ips("may specify no more than one IP for each IP family"));
        }
        for (index, (family, said)) in ips.iter().zip(&self.families).enumerate() {
            let Some(family) = family else { continue };
            if said == family.other().as_str() {
                let why = format!("expected an {said} value as indicated by `ipFamilies[{index}]`");
                let ip = &self.cluster_ips[index];
                errors.push(Error::invalid(&path("clusterIPs").index(index), ip, why));
            }
        }
        errors
    }

    pub(super) fn bad_ips(&self, why: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::invalid(&path("clusterIPs"), BadValue::strings(&self.cluster_ips), why)
    }

    fn bad_policy(&self, why: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        let policy = self.policy.as_deref().unwrap_or_default();
        Error::invalid(&path("ipFamilyPolicy"), BadValue::named(policy), why)
    }
}

fn path(name: &str) -> Path {
    Path::new("spec").child(name)
}

fn refuse_if_any(errors: Vec<Error>) -> Result<(), Vec<Error>> {
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
