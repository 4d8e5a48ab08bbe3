use std::sync::Arc;

use async_trait::async_trait;

use super::{Attributes, Authorizer, Decision, SubjectRules};
use crate::{DecisionMetrics, UserInfo};

/// An authorizer whose decisions are counted under its name.
pub struct Counted {
    /// Decides.
    pub authorizer: Arc<dyn Authorizer>,
    /// Counts.
    pub decisions: DecisionMetrics,
}

#[async_trait]
impl Authorizer for Counted {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let decision = self.authorizer.authorize(attributes).await;
        self.decisions.count(&decision);
        decision
    }

    async fn explain(&self, attributes: &Attributes<'_>) -> (Decision, String) {
        let explained = self.authorizer.explain(attributes).await;
        self.decisions.count(&explained.0);
        explained
    }

    async fn rules_for(&self, user: &UserInfo, namespace: &str) -> SubjectRules {
        self.authorizer.rules_for(user, namespace).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlwaysAllow, AlwaysDeny, Metrics, RequestInfo, Union, http::testing::read};

    #[tokio::test]
    async fn decisions_are_counted_by_who_made_them() {
        let metrics = Metrics::new();
        let counted = |authorizer, name: &str| -> Arc<dyn Authorizer> {
            Arc::new(Counted { authorizer, decisions: metrics.decisions(name, &name.to_lowercase()) })
        };
        let union = Union(vec![
            counted(Arc::new(AlwaysDeny), "AlwaysDeny"),
            counted(Arc::new(AlwaysAllow), "AlwaysAllow"),
        ]);
        let (user, request) = (UserInfo::anonymous(), RequestInfo::default());
        let attributes = Attributes { user: &user, request: &request };
        assert!(
            union.authorize(&attributes).await.is_allowed()
                && union.explain(&attributes).await.0.is_allowed()
        );
        assert_eq!(union.rules_for(&user, "").await, SubjectRules::everything());
        let text = read(metrics.scrape()).await.1;
        for (name, decision, count) in
            [("AlwaysAllow", "allowed", 2), ("AlwaysDeny", "allowed", 0), ("AlwaysDeny", "denied", 0)]
        {
            let lower = name.to_lowercase();
            let line = format!(
                "apiserver_authorization_decisions_total{{decision=\"{decision}\",name=\"{lower}\",type=\"{name}\"}} {count}\n"
            );
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
    }
}
