//! Which server does what only one of those on a store should do.

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use concord_controllers::Controllers;
use concord_election::{Candidate, Leadership, Settings};

use crate::{compose::Parts, duration, host};

/// The Lease that the servers on one store take turns with.
const LEASE: &str = "concord-controllers";

/// How servers on one store take turns, by the names that kube-controller-manager has for it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Controllers")]
pub(crate) struct ElectionOptions {
    /// How long other servers wait after the last sign of life of the one that runs the controllers.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    leader_elect_lease_duration: Duration,
    /// How long a server goes on to run the controllers without being able to say so.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    leader_elect_renew_deadline: Duration,
    /// How often it says so.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    leader_elect_retry_period: Duration,
}

impl ElectionOptions {
    /// Whether nobody would lead without having said so in time.
    fn check(&self) -> anyhow::Result<()> {
        let [lease, renew, retry] = [
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        ];
        ensure!(
            lease > renew && lease.subsec_nanos() == 0,
            "--leader-elect-lease-duration must be whole seconds, and more than --leader-elect-renew-deadline"
        );
        ensure!(
            renew.as_secs_f64() > 1.2 * retry.as_secs_f64() && !retry.is_zero(),
            "--leader-elect-renew-deadline must be more than 1.2 times --leader-elect-retry-period, which must not be zero"
        );
        Ok(())
    }

    fn settings(&self, server: &str) -> Settings {
        Settings {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
            ..Settings::new(LEASE, server)
        }
    }
}

/// Stands for election, unless nobody else uses the store.
pub(crate) async fn stand(
    options: &ElectionOptions,
    parts: &Parts,
    controllers: &Controllers,
    shared_store: bool,
) -> anyhow::Result<Leadership> {
    options.check()?;
    if !shared_store {
        return Ok(Leadership::alone());
    }
    let server = parts.fleet.as_ref().map(|fleet| fleet.id().to_owned()).or_else(host::name);
    let settings = options.settings(&server.unwrap_or_default());
    let Some(candidate) = Candidate::new(settings, parts.registry.clone(), parts.apis.as_ref()) else {
        tracing::warn!(
            "Leases are not served, so that every server on the store does what one of them could."
        );
        return Ok(Leadership::alone());
    };
    let leadership = candidate.leadership();
    if let Some(fleet) = &parts.fleet {
        fleet.led_by(leadership.clone());
    }
    controllers.run_also(|cancel| candidate.run(cancel)).await;
    Ok(leadership)
}
