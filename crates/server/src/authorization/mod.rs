//! Who may do what.
//!
//! An [`Authorizer`] looks at who wants to do what and allows it, denies it, or has no opinion. The first of
//! a [`Union`] that has one decides; what nobody allows is forbidden.

mod basics;
mod counted;
mod rules;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{RequestInfo, UserInfo};

pub use basics::Basics;
pub use counted::Counted;
pub use rules::{NonResourceRule, ResourceRule, SubjectRules};

/// Who wants to do what.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a UserInfo,
    /// What.
    pub request: &'a RequestInfo,
}

/// What an authorizer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may be done.
    Allow,
    /// It may not be done, whatever others say; and why.
    Deny(String),
    /// Let others decide; and why this authorizer does not, if that is worth telling.
    NoOpinion(String),
}

impl Decision {
    /// Whether it may be done.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow)
    }

    /// Why it may not be done; empty if it may, or if there is nothing to say.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow => "",
            Self::Deny(reason) | Self::NoOpinion(reason) => reason,
        }
    }
}

/// Something that knows who may do what.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Whether it may be done. Asked for every request, so the reason of what is allowed is left out.
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision;

    /// Whether it may be done, and why, also for what is allowed: what reviews answer.
    async fn explain(&self, attributes: &Attributes<'_>) -> (Decision, String) {
        let decision = self.authorize(attributes).await;
        let reason = decision.reason().to_owned();
        (decision, reason)
    }

    /// What `user` may do in `namespace`, as far as this authorizer can list it. Who cannot list anything, as one that
    /// is privileged by its group, says nothing.
    async fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> SubjectRules {
        SubjectRules::default()
    }
}

/// Authorizers in the order they are asked.
pub struct Union(pub Vec<Arc<dyn Authorizer>>);

#[async_trait]
impl Authorizer for Union {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            match authorizer.authorize(attributes).await {
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(reason),
                decided => return decided,
            }
        }
        Decision::NoOpinion(reasons.join("\n"))
    }

    async fn explain(&self, attributes: &Attributes<'_>) -> (Decision, String) {
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            match authorizer.explain(attributes).await {
                (Decision::NoOpinion(_), reason) if reason.is_empty() => {}
                (Decision::NoOpinion(_), reason) => reasons.push(reason),
                decided => return decided,
            }
        }
        let reason = reasons.join("\n");
        (Decision::NoOpinion(reason.clone()), reason)
    }

    async fn rules_for(&self, user: &UserInfo, namespace: &str) -> SubjectRules {
        let mut rules = SubjectRules::default();
        for authorizer in &self.0 {
            rules.extend(authorizer.rules_for(user, namespace).await);
        }
        rules
    }
}

/// Allows everything: for servers behind something that decides.
pub struct AlwaysAllow;

#[async_trait]
impl Authorizer for AlwaysAllow {
    async fn authorize(&self, _: &Attributes<'_>) -> Decision {
        Decision::Allow
    }

    async fn rules_for(&self, _: &UserInfo, _: &str) -> SubjectRules {
        SubjectRules::everything()
    }
}

/// Allows nothing: what another authorizer does not allow is forbidden.
pub struct AlwaysDeny;

#[async_trait]
impl Authorizer for AlwaysDeny {
    async fn authorize(&self, _: &Attributes<'_>) -> Decision {
        Decision::NoOpinion("Everything is forbidden.".to_owned())
    }
}

/// Allows everything to the members of some groups.
pub struct PrivilegedGroups(Vec<String>);

impl Default for PrivilegedGroups {
    /// The one group that has always been privileged, `system:masters`.
    fn default() -> Self {
        Self(vec![UserInfo::PRIVILEGED.to_owned()])
    }
}

impl PrivilegedGroups {
    /// These groups.
    pub fn new(groups: impl IntoIterator<Item = String>) -> Self {
        Self(groups.into_iter().collect())
    }
}

#[async_trait]
impl Authorizer for PrivilegedGroups {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        if self.0.iter().any(|group| attributes.user.is_in(group)) {
            Decision::Allow
        } else {
            Decision::NoOpinion(String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Says(Decision);

    #[async_trait]
    impl Authorizer for Says {
        async fn authorize(&self, _: &Attributes<'_>) -> Decision {
            self.0.clone()
        }
    }

    async fn ask(authorizer: &dyn Authorizer, user: &UserInfo) -> Decision {
        authorizer.authorize(&Attributes { user, request: &RequestInfo::default() }).await
    }

    #[tokio::test]
    async fn the_first_opinion_counts() {
        let [deny, none, why, what] = [
            Decision::Deny("no".to_owned()),
            Decision::NoOpinion(String::new()),
            Decision::NoOpinion("why".to_owned()),
            Decision::NoOpinion("what".to_owned()),
        ];
        for (members, expected) in [
            (vec![], none.clone()),
            (vec![none.clone(), Decision::Allow, deny.clone()], Decision::Allow),
            (vec![why.clone(), deny.clone(), Decision::Allow], deny),
            (vec![why, none, what], Decision::NoOpinion("why\nwhat".to_owned())),
        ] {
            let union = Union(members.into_iter().map(|says| Arc::new(Says(says)) as _).collect());
            assert_eq!(ask(&union, &UserInfo::anonymous()).await, expected);
        }
    }

    #[tokio::test]
    async fn members_of_privileged_groups_may_do_everything() {
        let user = |group: &str| UserInfo { groups: vec![group.to_owned()], ..UserInfo::default() };
        let privileged = PrivilegedGroups::default();
        assert_eq!(ask(&privileged, &user("system:masters")).await, Decision::Allow);
        assert_ne!(ask(&privileged, &user("devs")).await, Decision::Allow);
        assert_eq!(ask(&PrivilegedGroups::new(["devs".to_owned()]), &user("devs")).await, Decision::Allow);
        assert_eq!(ask(&AlwaysAllow, &UserInfo::anonymous()).await, Decision::Allow);
        assert!(!ask(&AlwaysDeny, &user("system:masters")).await.is_allowed());
    }

    #[tokio::test]
    async fn a_union_explains_what_its_members_say() {
        let (user, request) = (UserInfo::anonymous(), RequestInfo::default());
        let attributes = Attributes { user: &user, request: &request };
        let denying = Union(vec![Arc::new(PrivilegedGroups::default()), Arc::new(AlwaysDeny)]);
        let (decision, reason) = denying.explain(&attributes).await;
        assert_eq!((decision.reason(), &*reason), ("Everything is forbidden.", "Everything is forbidden."));
        let allowing = Union(vec![Arc::new(AlwaysDeny), Arc::new(AlwaysAllow)]);
        assert_eq!(allowing.explain(&attributes).await, (Decision::Allow, String::new()));
        assert_eq!(allowing.rules_for(&user, "default").await, SubjectRules::everything());
        assert_eq!(denying.rules_for(&user, "default").await, SubjectRules::default());
    }
}
