use std::{net::IpAddr, sync::Arc};

use concord_registry::{Registry, Resources};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Bootstrap, ClusterAuthentication, Elsewhere, Error, IpRange, ServiceAccountsConfig,
    bootstrap::{ClusterAuthenticationTrust, Dangling, ServerAddresses},
    namespaces::NamespaceController,
    service_accounts::{Namespaces, Tokens},
};

/// What the server has to know about itself to look after its objects.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where clients in the cluster reach this server: `--advertise-address`.
    pub advertise_address: IpAddr,
    /// The port it listens on: `--secure-port`.
    pub secure_port: u16,
    /// The addresses that Services get: `--service-cluster-ip-range`.
    pub service_cluster_ip_range: IpRange,
    /// Whether other servers may use the same store. If not, this one need not say all the time that it is there.
    pub shared_store: bool,
    /// What accounts and tokens need; without it nobody looks after them.
    pub service_accounts: Option<ServiceAccountsConfig>,
    /// What extension API servers are told about clients; without it they are told nothing.
    pub authentication: Option<watch::Receiver<ClusterAuthentication>>,
    /// What namespaces have on other servers; without it they have nothing there.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// The tasks by which the server keeps true what it has to.
pub struct Controllers {
    cancel: CancellationToken,
    essentials: watch::Receiver<bool>,
    /// Locked only to join them; dropping them ends them.
    tasks: Mutex<JoinSet<()>>,
}

impl Controllers {
    /// Starts the tasks. Must be called within a Tokio runtime with time enabled.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there is no such thing as a namespace.
    pub fn start(
        registry: Arc<Registry>,
        resources: Arc<dyn Resources>,
        config: Config,
    ) -> Result<Self, Error> {
        let cancel = CancellationToken::new();
        let namespaces =
            NamespaceController::new(registry.clone(), resources.clone(), config.elsewhere.clone())?;
        let addresses = ServerAddresses::new(registry.clone(), resources.clone(), config.clone())?;
        let mut tasks = JoinSet::new();
        if let Some(accounts) = &config.service_accounts {
            let namespaces = Namespaces::new(registry.clone(), resources.as_ref(), accounts.clone())?;
            let tokens = Tokens::new(registry.clone(), resources.as_ref(), accounts.clone())?;
            tasks.spawn(namespaces.run(cancel.clone()));
            tasks.spawn(tokens.run(cancel.clone()));
        }
        let trust = config.authentication.clone();
        let trust =
            trust.map(|own| ClusterAuthenticationTrust::new(registry.clone(), resources.clone(), own));
        if let Some(dangling) = Dangling::new(registry.clone(), resources.clone()) {
            tasks.spawn(dangling.run(cancel.clone()));
        }
        let bootstrap = Bootstrap::new(registry, resources, config);
        let (done, essentials) = watch::channel(false);
        tasks.spawn(bootstrap.run(cancel.clone(), done));
        tasks.spawn(namespaces.run(cancel.clone()));
        let mut ready = essentials.clone();
        let token = cancel.clone();
        tasks.spawn(async move {
            // The objects are in a namespace.
            let waited = async { ready.wait_for(|ready| *ready).await.is_ok() };
            if token.run_until_cancelled(waited).await == Some(true) {
                let trust = async {
                    if let Some(trust) = trust {
                        trust.run(token.clone()).await;
                    }
                };
                futures_util::join!(addresses.run(token.clone()), trust);
            }
        });
        Ok(Self { cancel, essentials, tasks: Mutex::new(tasks) })
    }

    /// Runs another task with these, which has to end when it is told to.
    pub async fn run_also<F>(&self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.lock().await.spawn(task(self.cancel.clone()));
    }

    /// Returns once the namespaces are there that clients take for granted, see [`Bootstrap::ensure_essentials`]. False
    /// if the tasks ended before.
    pub async fn essentials(&self) -> bool {
        self.essentials.clone().wait_for(|done| *done).await.is_ok()
    }

    /// Stops the tasks and waits until they have ended.
    pub async fn shutdown(&self) {
        self.cancel.cancel();
        let mut tasks = self.tasks.lock().await;
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "A controller did not end well.");
            }
        }
    }
}
