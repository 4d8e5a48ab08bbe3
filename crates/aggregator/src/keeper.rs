//! What is known of one APIService of another server: whether it can be reached, what it has, what it says about that.
//!
//! Each of the three is found out by a task of its own. Whatever a server does, it keeps nobody waiting but itself.

use std::{collections::HashSet, sync::Arc, time::Duration};

use concord_endpoints::Apis;
use concord_meta::Reason;
use concord_openapi::{DocumentArchive, ExtensionDocument};
use concord_registry::Registry;
use concord_server::Metrics;
use futures_util::{FutureExt as _, StreamExt as _, future, stream::FuturesUnordered};
use http::Method;
use rand::RngExt as _;
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use crate::{
    availability::{Condition, obstacle},
    catalogue::Catalogue,
    fetch::{DiscoverySource, DocumentSource},
    registration::{resource, tell},
    remote::{Answer, AskError, MASTERS, Question, Remote, Remotes},
    service::{ApiService, Backend},
};

/// How often a server that can be reached is asked whether it still can; upstream's time.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How often it is asked for its resources and documents again; upstream's time.
const REFRESH: Duration = Duration::from_secs(60);
/// The pauses after failures.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_REFRESH: Duration = Duration::from_secs(600);
/// However often something changes, it is looked at only this often.
const BREATH: Duration = Duration::from_millis(100);
/// How many connections of their own are tried before a server is taken to be gone: one of its replicas may be.
const ATTEMPTS: usize = 4;
/// How long an answer to the question whether a server is there may take; upstream's time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// What it says is of no interest.
const PROBE_LIMIT: usize = 4 * 1024 * 1024;

/// What keepers need.
pub(crate) struct Tools {
    pub(crate) registry: Arc<Registry>,
    pub(crate) apis: Arc<Apis>,
    pub(crate) remotes: Arc<Remotes>,
    pub(crate) catalogue: Arc<Catalogue>,
    /// What all keys begin with, with a slash at the end.
    pub(crate) prefix: String,
    /// The Services whose addresses the operator gave.
    pub(crate) explicit: Arc<HashSet<(String, String)>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) archive: DocumentArchive,
    /// Whether this server is the one that writes statuses.
    pub(crate) tells: watch::Receiver<bool>,
}

/// Looks after one APIService as it is specified; another specification is another keeper.
pub(crate) struct Keeper {
    pub(crate) tools: Arc<Tools>,
    pub(crate) service: Arc<ApiService>,
    pub(crate) backend: Backend,
    /// Told when something changed by which the server can be reached.
    pub(crate) changed: watch::Receiver<u64>,
    /// Whether it can be reached from here; what its status says until that is known.
    pub(crate) available: watch::Sender<bool>,
}

impl Keeper {
    /// Goes on until it is dropped.
    pub(crate) async fn run(self) {
        future::join3(self.keep_reachable(), self.keep_discovered(), self.keep_documented()).await;
    }

    async fn keep_reachable(&self) {
        let (mut changed, mut tells) = (self.changed.clone(), self.tools.tells.clone());
        let mut pace = Pace::new(LOOK_AGAIN, LONGEST_PAUSE);
        loop {
            changed.borrow_and_update();
            let is_to_tell = *tells.borrow_and_update();
            let condition = self.check().await;
            self.found(&condition);
            let is_told = !is_to_tell || self.tell(&condition).await;
            tokio::select! {
                () = pace.rest(condition.is_available && is_told, &mut changed) => {}
                Ok(()) = tells.changed() => {}
            }
        }
    }

    /// From now on requests are sent there, or not. What this server finds out counts for it, whatever others found out.
    fn found(&self, condition: &Condition) {
        let (is_available, name) = (condition.is_available, self.service.name.as_str());
        let metrics = self.tools.metrics.aggregation();
        metrics.set_available(name, is_available);
        self.tools.catalogue.learn_reachable(&self.service, is_available);
        let is_new =
            self.available.send_if_modified(|known| std::mem::replace(known, is_available) != is_available);
        if is_new && is_available {
            tracing::info!(service = name, "The server of an APIService can be reached.");
        } else if is_new {
            metrics.became_unavailable(name, condition.reason);
            let Condition { reason, message, .. } = condition;
            tracing::warn!(service = name, reason, message, "The server of an APIService cannot be reached.");
        }
    }

    /// Nobody asks a server that is not available.
    async fn keep_discovered(&self) {
        let (mut available, mut source) = (self.available.subscribe(), DiscoverySource::default());
        let mut pace = Pace::new(REFRESH, LONGEST_REFRESH);
        while available.wait_for(|available| *available).await.is_ok() {
            let resources = match self.tools.remotes.get(&self.backend) {
                Ok(remote) => source.ask(&remote, &self.service.version).await,
                Err(error) => Err(error.to_string()),
            };
            let is_done = resources.is_ok();
            self.complain(resources.as_ref().err(), "The resources of an APIService are not known.");
            self.tools.catalogue.learn_resources(&self.service, resources.ok());
            pace.rest(is_done, &mut available).await;
        }
    }

    async fn keep_documented(&self) {
        let (mut available, mut source) = (self.available.subscribe(), DocumentSource::default());
        let mut pace = Pace::new(REFRESH, LONGEST_REFRESH);
        self.recall_document().await;
        while available.wait_for(|available| *available).await.is_ok() {
            let document = match self.tools.remotes.get(&self.backend) {
                Ok(remote) => source.ask(&remote, &self.service.version).await,
                Err(error) => Err(error.to_string()),
            };
            let is_done = document.is_ok();
            self.complain(
                document.as_ref().err(),
                "The OpenAPI document of an APIService could not be read.",
            );
            if let Ok(document) = document
                && self.tools.catalogue.learn_document(&self.service, document.clone())
            {
                self.archive_document(document).await;
            }
            pace.rest(is_done, &mut available).await;
        }
    }

    /// What it said before this server was started counts until it says something.
    async fn recall_document(&self) {
        let (archive, Some(owner)) = (self.tools.archive.clone(), self.service.owner()) else { return };
        if let Ok(Some(document)) = spawn_blocking(move || archive.find(&owner)).await {
            self.tools.catalogue.recall_document(&self.service, document);
        }
    }

    /// That it is on disk is of use, and nothing fails without it.
    async fn archive_document(&self, document: ExtensionDocument) {
        let (archive, Some(owner)) = (self.tools.archive.clone(), self.service.owner()) else { return };
        if let Ok(Err(error)) = spawn_blocking(move || archive.keep(&owner, &document)).await {
            tracing::warn!(%error, service = self.service.name, "An OpenAPI document could not be kept on disk.");
        }
    }

    fn complain(&self, error: Option<&String>, message: &str) {
        if let Some(error) = error {
            tracing::debug!(error, service = self.service.name, message);
        }
    }

    async fn check(&self) -> Condition {
        let Tools { registry, prefix, explicit, remotes, .. } = &*self.tools;
        if !explicit.contains(&(self.backend.namespace.clone(), self.backend.name.clone())) {
            match registry.replica().newest() {
                Ok(snapshot) => {
                    if let Some(obstacle) = obstacle(&self.backend, &snapshot, prefix) {
                        return obstacle;
                    }
                }
                Err(error) => return Condition::failed(error.to_string()),
            }
        }
        match remotes.get(&self.backend) {
            Ok(remote) => match probe(&remote, &self.service).await {
                Ok(()) => Condition::passed(),
                Err(message) => Condition::failed(message),
            },
            Err(error) => Condition::failed(error.to_string()),
        }
    }

    /// Whether the status says it.
    async fn tell(&self, condition: &Condition) -> bool {
        let Some(resource) = resource(&self.tools.apis) else { return false };
        match tell(&self.tools.registry, &resource, &self.service.name, condition).await {
            Ok(()) => true,
            Err(status) => {
                if status.reason != Reason::CONFLICT {
                    tracing::debug!(%status, service = self.service.name, "A status could not be written.");
                }
                false
            }
        }
    }
}

/// When something is done again.
struct Pace {
    pause: Duration,
    usual: Duration,
    longest: Duration,
}

impl Pace {
    fn new(usual: Duration, longest: Duration) -> Self {
        Self { pause: FIRST_PAUSE, usual, longest }
    }

    /// Waits until it is time, or something changed.
    async fn rest<T>(&mut self, is_done: bool, changed: &mut watch::Receiver<T>) {
        let wait = if is_done { self.usual } else { self.pause };
        self.pause = if is_done { FIRST_PAUSE } else { (self.pause * 2).min(self.longest) };
        sleep(BREATH).await;
        tokio::select! {
            () = sleep(jittered(wait)) => {}
            Ok(()) = changed.changed() => self.pause = FIRST_PAUSE,
        }
    }
}

/// Whether somebody answers where the server should be. The texts are upstream's.
async fn probe(remote: &Remote, service: &ApiService) -> Result<(), String> {
    let path = format!("/apis/{}", service.version);
    let location = remote.locate()?;
    let question = Question {
        method: Method::GET,
        path: &path,
        user: "system:kube-aggregator",
        groups: MASTERS,
        accept: "",
        known: None,
        timeout: PROBE_TIMEOUT,
        limit: PROBE_LIMIT,
    };
    let url = format!("{location}{path}");
    let Err(mut last) = judge(&url, remote.ask(&question).await) else { return Ok(()) };
    // One of several replicas may be gone, and another connection leads to another one.
    let again = [(); ATTEMPTS].map(|()| remote.ask_anew(&question).boxed());
    let mut others: FuturesUnordered<_> = again.into_iter().collect();
    while let Some(answer) = others.next().await {
        match judge(&url, answer) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn judge(url: &str, answer: Result<Answer, AskError>) -> Result<(), String> {
    let failed = |why: String| format!("failing or missing response from {url}: {why}");
    match answer {
        Ok(answer) if answer.status.is_success() => Ok(()),
        Ok(answer) => Err(failed(format!("bad status from {url}: {}", answer.status.as_u16()))),
        // Somebody is there, whatever else they have to say.
        Err(AskError::TooLarge { .. }) => Ok(()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// A little sooner or later, so that servers of a fleet do not ask at the same moment.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.8..=1.0))
}
