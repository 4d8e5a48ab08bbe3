//! What requests may take: the flags, and who waits because of them.

use std::{sync::Arc, time::Duration};

use clap::Args;
use concord_flowcontrol::{AnswerSizes, FlowController, FlowView, Limits};
use concord_meta::GroupVersion;
use concord_registry::Resources;
use concord_replica::Replica;
use concord_server::{FlowControl, Metrics, RequestInfo, RequestLimits};
use concord_store::KeyRange;

use crate::duration;

#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestOptions {
    /// How long a request may take, unless it is one that lasts, such as a watch.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub(crate) request_timeout: Duration,
    /// Whether requests wait for their turn when there are too many, by the FlowSchemas and PriorityLevelConfigurations that
    /// there are. Then as many run at once as the two limits below add up to. If not, those above the limits are sent away.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) enable_priority_and_fairness: bool,
    /// How many requests that only read run at once; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) max_requests_inflight: usize,
    /// How many other requests run at once; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_mutating_requests_inflight: usize,
    /// How often, of one, an HTTP/2 connection is closed after a request, so that clients spread over several servers.
    #[arg(long, value_name = "CHANCE", default_value_t = 0.0)]
    pub(crate) goaway_chance: f64,
}

impl RequestOptions {
    pub(crate) fn limits(&self) -> RequestLimits {
        RequestLimits {
            timeout: self.request_timeout,
            max_in_flight: self.max_requests_inflight,
            max_mutating_in_flight: self.max_mutating_requests_inflight,
        }
    }

    /// Who decides which requests wait, and the view that tells it by what. Without limits nobody waits.
    pub(crate) fn flow_control(
        &self,
        prefix: &str,
        metrics: &Arc<Metrics>,
    ) -> Option<(Arc<FlowController>, FlowView)> {
        let both = self.max_requests_inflight.saturating_add(self.max_mutating_requests_inflight);
        if !self.enable_priority_and_fairness || both == 0 {
            return None;
        }
        let limits =
            Limits { seats: u32::try_from(both).unwrap_or(u32::MAX), wait: self.request_timeout / 4 };
        let controller = Arc::new(FlowController::new(limits, metrics.clone()));
        let view = FlowView::new(prefix, controller.clone());
        Some((controller, view))
    }
}

/// Who decides which requests wait, once it is known what there is to list.
pub(crate) fn connected(
    control: Option<Arc<FlowController>>,
    resources: Arc<dyn Resources>,
    replica: Arc<Replica>,
) -> Option<Arc<dyn FlowControl>> {
    let control = control?;
    control.connect(Arc::new(StoredSizes { resources, replica }));
    Some(control)
}

/// How large lists are, by what is stored.
struct StoredSizes {
    resources: Arc<dyn Resources>,
    replica: Arc<Replica>,
}

impl AnswerSizes for StoredSizes {
    fn list_bytes(&self, request: &RequestInfo, most: usize) -> usize {
        let version = GroupVersion::new(request.api_group.as_str(), request.api_version.as_str());
        let resource = self.resources.find(&version, &request.resource);
        let Some((resource, snapshot)) = resource.zip(self.replica.newest().ok()) else { return 0 };
        let Some(storage) = resource.storage() else { return 0 };
        let namespace = Some(request.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let limit = request.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut bytes = 0_usize;
        for entry in snapshot.scan(&KeyRange::prefix(storage.key_prefix(namespace))).take(limit) {
            bytes += entry.value.len();
            if bytes >= most {
                break;
            }
        }
        bytes
    }
}
