//! What a server knows from the log.

use std::sync::Arc;

use concord_admission::{AdmissionView, Configurations};
use concord_aggregator::ApiServices;
use concord_apiextensions::{DefinitionsView, Progress};
use concord_fleet::{FleetState, FleetView};
use concord_flowcontrol::FlowController;
use concord_pki::ClientIdentity;
use concord_replica::{Replica, View};
use concord_server::Metrics;
use concord_store::Store;

use crate::{
    access::Access, aggregation, cli::ServeOptions, emulation::Emulation, engine::key_prefix,
    garbage::Garbage, peers::Peering, reload::Reloader,
};

/// The replica, and everything that is kept up to date with it.
pub(super) struct Following {
    pub(super) replica: Arc<Replica>,
    pub(super) access: Access,
    /// How far the definitions in the replica are served.
    pub(super) definitions: Arc<Progress>,
    pub(super) configurations: Configurations,
    pub(super) fleet: FleetState,
    pub(super) garbage: Garbage,
    pub(super) api_services: ApiServices,
    pub(super) flow_control: Option<Arc<FlowController>>,
    pub(super) peering: Option<Peering>,
}

impl Following {
    /// Begins to follow the store. To its peers the server shows `identity`.
    pub(super) fn start(
        options: &ServeOptions,
        emulation: &Emulation,
        store: Arc<dyn Store>,
        identity: Option<Arc<ClientIdentity>>,
        metrics: &Arc<Metrics>,
        reloader: &mut Reloader,
    ) -> anyhow::Result<Self> {
        let prefix = key_prefix(&options.etcd);
        let (access, rules) = Access::new(&options.authorization, prefix.clone(), metrics);
        let definitions = DefinitionsView::new(&prefix);
        let served = definitions.progress();
        let admission = AdmissionView::new(&prefix);
        let configurations = admission.configurations();
        let fleet = FleetView::new(&prefix);
        let fleet_state = fleet.state();
        let mut views: Vec<Box<dyn View>> =
            vec![Box::new(rules), Box::new(definitions), Box::new(admission), Box::new(fleet)];
        let garbage = Garbage::new(&options.garbage, &prefix, &mut views);
        let api_services = aggregation::view(&prefix, emulation.release, &mut views);
        let flow_control = options.requests.flow_control(&prefix, metrics).map(|(control, view)| {
            views.push(Box::new(view));
            control
        });
        let peering = Peering::open(options, &emulation.features, identity, &mut views, reloader)?;
        let replica = Arc::new(Replica::start(store, concord_replica::Config::default(), views));
        Ok(Self {
            replica,
            access,
            definitions: served,
            configurations,
            fleet: fleet_state,
            garbage,
            api_services,
            flow_control,
            peering,
        })
    }
}
