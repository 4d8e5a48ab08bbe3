//! What servers look after, besides what they collect and migrate.

use std::sync::Arc;

use concord_controllers::{Controllers, InUseProtection, PolicyStatus, QuotaController};
use concord_election::Leadership;

use crate::compose::Parts;

/// Lets storage and groups of pods go that are not in use and holds what Services of others use; while this server leads, counts
/// what quotas limit and checks the types of policies.
pub(crate) async fn start(
    parts: &Parts,
    controllers: &Controllers,
    leadership: &Leadership,
) -> anyhow::Result<()> {
    let quota = Arc::new(QuotaController::new(parts.registry.clone(), &parts.resources())?);
    let protection = Arc::new(InUseProtection::new(parts.registry.clone(), parts.apis.as_ref())?);
    let leads = leadership.clone();
    let count = |cancel| async move { leads.lead(&cancel, |end| quota.clone().run(end)).await };
    controllers.run_also(count).await;
    // Everywhere: whoever leads may be of a release that does not know all that others protect.
    controllers.run_also(|cancel| protection.run(cancel)).await;
    let repair = parts.repair.clone();
    controllers.run_also(|cancel| repair.run(cancel)).await;
    let policies = Arc::new(PolicyStatus::new(parts.registry.clone(), &parts.resources())?);
    let leads = leadership.clone();
    let check = |cancel| async move { leads.lead(&cancel, |end| policies.clone().run(end)).await };
    controllers.run_also(check).await;
    Ok(())
}
