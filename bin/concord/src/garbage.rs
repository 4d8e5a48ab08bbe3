//! The garbage collector, if it is to run here.

use std::sync::Arc;

use clap::{ArgAction, Args};
use concord_controllers::Controllers;
use concord_election::Leadership;
use concord_garbagecollector::{GarbageCollector, GraphState, GraphView};
use concord_registry::{Registry, Resources};
use concord_replica::View;

#[derive(Debug, Args)]
#[command(next_help_heading = "Controllers")]
pub(crate) struct GarbageCollectorOptions {
    /// Whether this server deletes what has lost its owners. Turn it off where a kube-controller-manager does that.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set
    )]
    pub(crate) enable_garbage_collector: bool,
}

/// The graph of owners, which is kept up to date from the first moment on.
pub(crate) struct Garbage(Option<GraphState>);

impl Garbage {
    /// Adds the view of owners to those of the replica.
    pub(crate) fn new(
        options: &GarbageCollectorOptions,
        prefix: &str,
        views: &mut Vec<Box<dyn View>>,
    ) -> Self {
        if !options.enable_garbage_collector {
            return Self(None);
        }
        let view = GraphView::new(prefix);
        let state = view.state();
        views.push(Box::new(view));
        Self(Some(state))
    }

    /// Runs the collector with the other controllers, while this server leads.
    pub(crate) async fn start(
        self,
        registry: &Arc<Registry>,
        resources: Arc<dyn Resources>,
        controllers: &Controllers,
        leadership: Leadership,
    ) {
        let Self(Some(state)) = self else { return };
        let collector = Arc::new(GarbageCollector::new(registry.clone(), resources, state));
        let collect =
            |cancel| async move { leadership.lead(&cancel, |end| collector.clone().run(end)).await };
        controllers.run_also(collect).await;
    }
}
