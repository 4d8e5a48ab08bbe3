//! Who may do what: an index of all roles and bindings.

mod scope;

use std::{collections::BTreeMap, sync::Arc};

use concord_meta::go::quote;
use concord_server::{RequestInfo, UserInfo};
use concord_store::Revision;
use imbl::HashMap;

use self::scope::{Outcome, Roles, Scope};
use crate::{Binding, ClusterRole, PolicyRule, RoleRef, Subject};

/// All roles and bindings at one revision, by whom they are granted to.
///
/// A policy never changes. The next one shares with it all that is the same, so that a change costs only what it touches:
///
/// ```text
/// users ──► "alice" ──► everywhere: binding → role      in namespaces: "dev" ──► binding → role
/// groups ─► "devs"  ──► ...
/// roles ──► "dev/editor" ──► rules
/// ```
///
/// Service accounts are users, by their names. Bindings refer to roles by name: a role that changes touches nothing else.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    revision: Revision,
    roles: Roles,
    /// Counts the changes of roles.
    generation: u64,
    bindings: HashMap<BindingKey, Arc<Binding>>,
    users: HashMap<Arc<str>, Arc<Grants>>,
    groups: HashMap<Arc<str>, Arc<Grants>>,
}

/// A role's place: `/name` everywhere, `namespace/name` in a namespace. No namespace is empty, so one map will do.
type RoleKey = Arc<str>;
/// A binding's place, in the same way.
type BindingKey = Arc<str>;

/// What is granted to one user or group, by the place of the binding.
#[derive(Debug, Clone, Default)]
struct Grants {
    everywhere: Scope,
    namespaces: HashMap<Arc<str>, Scope>,
}

#[derive(Debug, Clone)]
struct Grant {
    binding: Arc<Binding>,
    /// Where the role is, if the binding refers to one that there could be.
    role: Option<RoleKey>,
    /// Which of the binding's subjects it is for.
    subject: usize,
}

impl Grant {
    /// The role, if it is there.
    fn find<'a>(&self, roles: &'a Roles) -> Option<&'a Arc<ClusterRole>> {
        roles.get(self.role.as_ref()?)
    }
}

/// The key of a role or binding.
pub(crate) fn place(namespace: &str, name: &str) -> Arc<str> {
    format!("{namespace}/{name}").into()
}

impl Policy {
    /// The newest change that it has.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn set_revision(&mut self, revision: Revision) {
        self.revision = revision;
    }

    /// Puts a role in its place, or removes what is there.
    pub(crate) fn set_role(&mut self, place: RoleKey, role: Option<ClusterRole>) {
        self.generation += 1;
        match role {
            Some(role) => drop(self.roles.insert(place, Arc::new(role))),
            None => drop(self.roles.remove(&place)),
        }
    }

    /// Puts a binding in its place, or removes what is there.
    pub(crate) fn set_binding(&mut self, place: &BindingKey, binding: Option<Binding>) {
        if let Some(old) = self.bindings.remove(place) {
            for subject in &old.subjects {
                self.each_grants(subject, &old.namespace, |grants| grants.remove(place, &old.namespace));
            }
        }
        let Some(binding) = binding else { return };
        let binding = Arc::new(binding);
        let role = role_of(&binding.role, &binding.namespace);
        // From the last to the first: what is said for a reason is the first subject that fits.
        for (at, subject) in binding.subjects.iter().enumerate().rev() {
            let grant = Grant { binding: binding.clone(), role: role.clone(), subject: at };
            self.each_grants(subject, &binding.namespace, |grants| grants.insert(place, grant.clone()));
        }
        self.bindings.insert(place.clone(), binding);
    }

    /// Changes what is granted to a subject of a binding in this namespace.
    fn each_grants(&mut self, subject: &Subject, namespace: &str, change: impl FnOnce(&mut Grants)) {
        let (map, name) = match subject.kind.as_str() {
            "User" => (&mut self.users, subject.name.as_str().into()),
            "Group" => (&mut self.groups, subject.name.as_str().into()),
            "ServiceAccount" => {
                let namespace = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                if namespace.is_empty() {
                    return;
                }
                let name = format!("system:serviceaccount:{namespace}:{}", subject.name);
                (&mut self.users, Arc::<str>::from(name))
            }
            _ => return,
        };
        let grants = map.entry(name.clone()).or_default();
        change(Arc::make_mut(grants));
        if grants.is_empty() {
            map.remove(&name);
        }
    }

    /// A cluster role.
    pub fn cluster_role(&self, name: &str) -> Option<&Arc<ClusterRole>> {
        self.roles.get(format!("/{name}").as_str())
    }

    /// All cluster roles, by name.
    pub fn cluster_roles(&self) -> BTreeMap<&str, &Arc<ClusterRole>> {
        let cluster = self.roles.iter().filter_map(|(place, role)| Some((place.strip_prefix('/')?, role)));
        cluster.collect()
    }

    /// How many bindings there are.
    pub fn bindings(&self) -> usize {
        self.bindings.len()
    }

    /// Whether any rule allows the request.
    ///
    /// # Errors
    ///
    /// [`Refused`], if none does.
    pub fn decide(&self, user: &UserInfo, request: &RequestInfo) -> Result<(), Refused> {
        let mut refused = Refused { dangling: false };
        for grants in self.grants(user) {
            let here = grants.namespaces.get(request.namespace.as_str());
            for scope in [Some(&grants.everywhere), here].into_iter().flatten() {
                let Outcome { allowed, dangling } = scope.decide(&self.roles, self.generation, request);
                if allowed {
                    return Ok(());
                }
                refused.dangling |= dangling;
            }
        }
        Err(refused)
    }

    /// What decides about the user at all.
    fn grants<'a>(&'a self, user: &'a UserInfo) -> impl Iterator<Item = &'a Arc<Grants>> {
        let own = self.users.get(user.name.as_str()).into_iter();
        own.chain(user.groups.iter().filter_map(|group| self.groups.get(group.as_str())))
    }

    /// All that is granted to a user in a namespace, or everywhere if it is empty: each binding once, those for everywhere
    /// first, by name. Upstream's order is the same but for the names.
    pub fn granted<'a>(&'a self, user: &'a UserInfo, namespace: &str) -> Vec<Granted<'a>> {
        let mut found: BTreeMap<(bool, &BindingKey), &Grant> = BTreeMap::new();
        for grants in self.grants(user) {
            let here = grants.namespaces.get(namespace).into_iter().flat_map(Scope::iter);
            let here = here.map(|(place, grant)| ((true, place), grant));
            let everywhere = grants.everywhere.iter().map(|(place, grant)| ((false, place), grant));
            for (key, grant) in everywhere.chain(here) {
                let first = found.entry(key).or_insert(grant);
                if grant.subject < first.subject {
                    *first = grant;
                }
            }
        }
        found.into_values().map(|grant| self.resolve(grant)).collect()
    }

    fn resolve<'a>(&'a self, grant: &'a Grant) -> Granted<'a> {
        let found = grant.find(&self.roles);
        let rules =
            found.map(|role| role.rules.as_slice()).ok_or_else(|| MissingRole::new(&grant.binding.role));
        Granted { binding: &grant.binding, subject: grant.subject, rules }
    }

    /// The rules of the role that a binding in this namespace refers to.
    ///
    /// # Errors
    ///
    /// [`MissingRole`].
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<&[PolicyRule], MissingRole> {
        let found = role_of(role, namespace).and_then(|place| self.roles.get(&place));
        found.map(|role| role.rules.as_slice()).ok_or_else(|| MissingRole::new(role))
    }
}

/// No rule allows a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Whether the user is bound to roles that are not there, which may be why.
    pub dangling: bool,
}

/// A binding that applies to a user.
pub struct Granted<'a> {
    /// The binding.
    pub binding: &'a Binding,
    /// The first of its subjects that is the user.
    pub subject: usize,
    /// What the role allows.
    pub rules: Result<&'a [PolicyRule], MissingRole>,
}

impl Grants {
    fn insert(&mut self, place: &BindingKey, grant: Grant) {
        let grants = match &*grant.binding.namespace {
            "" => &mut self.everywhere,
            _ => self.namespaces.entry(grant.binding.namespace.clone()).or_default(),
        };
        grants.insert(place.clone(), grant);
    }

    fn remove(&mut self, place: &BindingKey, namespace: &str) {
        if namespace.is_empty() {
            self.everywhere.remove(place);
            return;
        }
        if let Some(here) = self.namespaces.get_mut(namespace) {
            here.remove(place);
            if here.is_empty() {
                self.namespaces.remove(namespace);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.everywhere.is_empty() && self.namespaces.is_empty()
    }
}

/// Where a role would be that a binding in this namespace refers to.
fn role_of(role: &RoleRef, namespace: &str) -> Option<RoleKey> {
    match role.kind.as_str() {
        "ClusterRole" => Some(place("", &role.name)),
        // A binding for everywhere cannot refer to the role of a namespace.
        "Role" if !namespace.is_empty() => Some(place(namespace, &role.name)),
        _ => None,
    }
}

/// A binding refers to a role that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingRole {
    /// There is no such role. The text is upstream's for a decision; the kind is in lower case.
    #[error("{kind}.rbac.authorization.k8s.io {} not found", quote(name))]
    NotFound {
        /// `role` or `clusterrole`.
        kind: &'static str,
        /// The name that the binding says.
        name: String,
    },
    /// There can be no such role.
    #[error("unsupported role reference kind: {}", quote(.0))]
    UnsupportedKind(String),
}

impl MissingRole {
    fn new(role: &RoleRef) -> Self {
        let kind = match role.kind.as_str() {
            "Role" => "role",
            "ClusterRole" => "clusterrole",
            other => return Self::UnsupportedKind(other.to_owned()),
        };
        Self::NotFound { kind, name: role.name.clone() }
    }
}

#[cfg(test)]
mod tests;
