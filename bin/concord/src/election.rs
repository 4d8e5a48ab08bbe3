//! Which server does what only one of those on a store should do.

use concord_controllers::Controllers;
use concord_election::{Candidate, Leadership, Settings};

use crate::{compose::Parts, host};

/// The Lease that the servers on one store take turns with.
const LEASE: &str = "concord-controllers";

/// Stands for election, unless nobody else uses the store.
pub(crate) async fn stand(parts: &Parts, controllers: &Controllers, shared_store: bool) -> Leadership {
    if !shared_store {
        return Leadership::alone();
    }
    let server = parts.fleet.as_ref().map(|fleet| fleet.id().to_owned()).or_else(host::name);
    let settings = Settings::new(LEASE, &server.unwrap_or_default());
    let Some(candidate) = Candidate::new(settings, parts.registry.clone(), parts.apis.as_ref()) else {
        tracing::warn!(
            "Leases are not served, so that every server on the store does what one of them could."
        );
        return Leadership::alone();
    };
    let leadership = candidate.leadership();
    if let Some(fleet) = &parts.fleet {
        fleet.led_by(leadership.clone());
    }
    controllers.run_also(|cancel| candidate.run(cancel)).await;
    leadership
}
