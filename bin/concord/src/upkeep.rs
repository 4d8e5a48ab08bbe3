//! What one server of those on a store looks after, besides what it collects and migrates.

use std::sync::Arc;

use concord_controllers::{Controllers, PolicyStatus, QuotaController, StorageProtection};
use concord_election::Leadership;

use crate::compose::Parts;

/// Counts what quotas limit, lets storage go that is not in use, and checks the types of policies, while this server leads.
pub(crate) async fn start(
    parts: &Parts,
    controllers: &Controllers,
    leadership: &Leadership,
) -> anyhow::Result<()> {
    let quota = Arc::new(QuotaController::new(parts.registry.clone(), &parts.resources())?);
    let protection = Arc::new(StorageProtection::new(parts.registry.clone(), parts.apis.as_ref())?);
    let leads = leadership.clone();
    let count = |cancel| async move { leads.lead(&cancel, |end| quota.clone().run(end)).await };
    controllers.run_also(count).await;
    let leads = leadership.clone();
    let protect = |cancel| async move { leads.lead(&cancel, |end| protection.clone().run(end)).await };
    controllers.run_also(protect).await;
    let policies = Arc::new(PolicyStatus::new(parts.registry.clone(), &parts.resources())?);
    let leads = leadership.clone();
    let check = |cancel| async move { leads.lead(&cancel, |end| policies.clone().run(end)).await };
    controllers.run_also(check).await;
    Ok(())
}
