//! What is granted to somebody in one namespace, or everywhere.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arc_swap::ArcSwapOption;
use concord_server::RequestInfo;
use imbl::OrdMap;

use super::{BindingKey, Grant, RoleKey};
use crate::{ClusterRole, PolicyRule};

/// Up to so many bindings are looked at one by one, which takes less time than finding them in an index.
const FEW: usize = 16;

/// The roles of a policy, by their places.
pub(super) type Roles = imbl::HashMap<RoleKey, Arc<ClusterRole>>;

/// What rules say about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether one of them allows it.
    pub(super) allowed: bool,
    /// If not: whether there are bindings to roles that are not there.
    pub(super) dangling: bool,
}

/// Bindings for one subject in one namespace. Where there are many, an index of their rules is made when it is first asked
/// for: a group that everybody is in may have thousands, and every request has to pass them all.
#[derive(Debug, Default)]
pub(super) struct Scope {
    grants: OrdMap<BindingKey, Grant>,
    /// Made for the roles of one generation; of no use for another.
    index: ArcSwapOption<(u64, RuleIndex)>,
}

impl Clone for Scope {
    /// A clone is made to be changed, so it begins without an index.
    fn clone(&self) -> Self {
        Self { grants: self.grants.clone(), index: ArcSwapOption::empty() }
    }
}

impl Scope {
    pub(super) fn insert(&mut self, place: BindingKey, grant: Grant) {
        self.index.store(None);
        self.grants.insert(place, grant);
    }

    pub(super) fn remove(&mut self, place: &BindingKey) {
        self.index.store(None);
        self.grants.remove(place);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&BindingKey, &Grant)> {
        self.grants.iter()
    }

    /// What the rules of these roles, which are of this generation, say.
    pub(super) fn decide(&self, roles: &Roles, generation: u64, request: &RequestInfo) -> Outcome {
        if self.grants.len() <= FEW {
            return self.decide_one_by_one(roles, request);
        }
        if let Some(index) = &*self.index.load()
            && index.0 == generation
        {
            return index.1.decide(request);
        }
        let index = RuleIndex::new(self.grants.values().map(|grant| grant.find(roles)));
        let outcome = index.decide(request);
        self.index.store(Some(Arc::new((generation, index))));
        outcome
    }

    fn decide_one_by_one(&self, roles: &Roles, request: &RequestInfo) -> Outcome {
        let mut dangling = false;
        for grant in self.grants.values() {
            match grant.find(roles) {
                Some(role) if role.rules.iter().any(|rule| rule.allows(request)) => {
                    return Outcome { allowed: true, dangling: false };
                }
                Some(_) => {}
                None => dangling = true,
            }
        }
        Outcome { allowed: false, dangling }
    }
}

/// Rules by the resources that they are about, each role once.
///
/// ```text
/// "pods" ──► rules with pods      "*/log" ──► rules with the logs of everything      "*" ──► rules with everything
/// ```
#[derive(Debug, Default)]
struct RuleIndex {
    resources: HashMap<String, Vec<Place>>,
    urls: Vec<Place>,
    dangling: bool,
}

/// A rule: its role, and where it stands in it.
#[derive(Debug, Clone)]
struct Place(Arc<ClusterRole>, usize);

impl Place {
    fn rule(&self) -> Option<&PolicyRule> {
        self.0.rules.get(self.1)
    }
}

impl RuleIndex {
    fn new<'a>(roles: impl Iterator<Item = Option<&'a Arc<ClusterRole>>>) -> Self {
        let mut index = Self::default();
        let mut seen = HashSet::new();
        for role in roles {
            match role {
                Some(role) if seen.insert(Arc::as_ptr(role)) => index.add(role),
                Some(_) => {}
                None => index.dangling = true,
            }
        }
        index
    }

    fn add(&mut self, role: &Arc<ClusterRole>) {
        for (at, rule) in role.rules.iter().enumerate() {
            let place = || Place(role.clone(), at);
            for resource in &rule.resources {
                self.resources.entry(resource.clone()).or_default().push(place());
            }
            if !rule.non_resource_urls.is_empty() {
                self.urls.push(place());
            }
        }
    }

    fn decide(&self, request: &RequestInfo) -> Outcome {
        let any = |places: &[Place]| places.iter().filter_map(Place::rule).any(|rule| rule.allows(request));
        let about = |resource: &str| self.resources.get(resource).is_some_and(|places| any(places));
        let allowed = match (request.is_resource_request, request.subresource.as_str()) {
            (false, _) => any(&self.urls),
            (true, "") => about("*") || about(&request.resource),
            (true, subresource) => {
                about("*")
                    || about(&format!("{}/{subresource}", request.resource))
                    || about(&format!("*/{subresource}"))
            }
        };
        Outcome { allowed, dangling: !allowed && self.dangling }
    }
}
