//! Who may do what in this server.

use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use concord_controllers::Controllers;
use concord_endpoints::Apis;
use concord_rbac::{Aggregation, Bootstrap, Bootstrapped, EscalationCheck, InForce, Rbac, RulesView};
use concord_registry::{Admission, Registry};
use concord_replica::Replica;
use concord_server::{
    AlwaysAllow, AlwaysDeny, Authorizer, Counted, HealthCheck, Metrics, PrivilegedGroups, Union,
};
use concord_store::Store;
use tokio::task::JoinSet;

#[derive(Debug, Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct AuthorizationOptions {
    /// Who decides what users may do, in the order they are asked: AlwaysAllow, AlwaysDeny, RBAC. Members of the group
    /// system:masters may always do everything.
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "RBAC", value_parser = mode)]
    pub(crate) authorization_mode: Vec<Mode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    AlwaysAllow,
    AlwaysDeny,
    Rbac,
}

fn mode(name: &str) -> Result<Mode, String> {
    match name {
        "AlwaysAllow" => Ok(Mode::AlwaysAllow),
        "AlwaysDeny" => Ok(Mode::AlwaysDeny),
        "RBAC" => Ok(Mode::Rbac),
        "Node" => Err("this server has no nodes: give them their rights by RBAC".to_owned()),
        "Webhook" | "ABAC" => Err("this server cannot ask others: use RBAC".to_owned()),
        _ => Err("not an authorization mode: use AlwaysAllow, AlwaysDeny or RBAC".to_owned()),
    }
}

/// What a server decides by.
pub(crate) struct Access {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    rbac: Rbac,
    bootstrapped: Bootstrapped,
    prefix: String,
}

impl Access {
    /// The modes in their order, and the view that the replica has to feed. All keys begin with `prefix`.
    ///
    /// Also without RBAC its objects are there, are looked after, and cannot be used to get more rights than one has.
    pub(crate) fn new(
        options: &AuthorizationOptions,
        prefix: String,
        metrics: &Metrics,
    ) -> (Self, RulesView) {
        let view = RulesView::new(&prefix);
        let rbac = Rbac::new(&view);
        let mut asked: Vec<Arc<dyn Authorizer>> = vec![Arc::new(PrivilegedGroups::default())];
        asked.extend(options.authorization_mode.iter().map(|mode| -> Arc<dyn Authorizer> {
            let (authorizer, kind): (Arc<dyn Authorizer>, _) = match mode {
                Mode::AlwaysAllow => (Arc::new(AlwaysAllow), "AlwaysAllow"),
                Mode::AlwaysDeny => (Arc::new(AlwaysDeny), "AlwaysDeny"),
                Mode::Rbac => (Arc::new(rbac.clone()), "RBAC"),
            };
            // Upstream gives them these names where nobody else does.
            Arc::new(Counted { authorizer, decisions: metrics.decisions(kind, &kind.to_lowercase()) })
        }));
        let authorizer = Arc::new(Union(asked));
        (Self { authorizer, rbac, bootstrapped: Bootstrapped::default(), prefix }, view)
    }

    /// The store, such that whoever changes a right, or something under these keys, is told when it is changed here.
    pub(crate) fn store(
        &self,
        store: Arc<dyn Store>,
        replica: &Arc<Replica>,
        and: Vec<Bytes>,
    ) -> Arc<dyn Store> {
        Arc::new(InForce::new(store, replica.clone(), &self.prefix).and(and))
    }

    /// What keeps users from giving themselves rights.
    pub(crate) fn admission(&self) -> Arc<dyn Admission> {
        Arc::new(EscalationCheck::new(self.rbac.clone(), self.authorizer.clone()))
    }

    /// Whether the default roles are in place.
    pub(crate) fn check(&self) -> impl HealthCheck + use<> {
        self.bootstrapped.check()
    }

    /// Starts what looks after the default roles and the aggregated ones.
    pub(crate) fn start(
        &self,
        registry: &Arc<Registry>,
        apis: &Arc<Apis>,
        controllers: &Arc<Controllers>,
    ) -> Tasks {
        let mut tasks = JoinSet::new();
        let bootstrap = Bootstrap::new(registry.clone(), apis.clone(), &self.bootstrapped);
        let namespaces = controllers.clone();
        tasks.spawn(async move {
            // Some of the roles are in namespaces.
            if namespaces.essentials().await {
                bootstrap.run().await;
            }
        });
        tasks.spawn(Aggregation::new(registry.clone(), apis.clone(), self.rbac.clone()).run());
        Tasks(tasks)
    }
}

/// What looks after roles; dropping it ends it.
pub(crate) struct Tasks(JoinSet<()>);

impl Tasks {
    /// Ends them.
    pub(crate) async fn shutdown(mut self) {
        self.0.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_need_others_are_refused() {
        assert_eq!(mode("RBAC"), Ok(Mode::Rbac));
        for (name, complaint) in [("Node", "no nodes"), ("Webhook", "cannot ask others"), ("rbac", "not an")]
        {
            let error = mode(name).expect_err(name);
            assert!(error.contains(complaint), "{name}: {error}");
        }
    }
}
