//! Key management services: who asks them, and how often.

mod client;

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use concord_encryption::{Envelope, Seed, Wrapped, key_id_hash, validate_key_id};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use self::client::Client;
use crate::Keyring;

/// How often services are asked which key they use, and for how long values are written without an answer.
#[derive(Debug, Clone, Copy)]
pub struct Rhythm {
    /// Between questions. Default: a minute, as upstream's.
    pub healthy: Duration,
    /// Between questions while the last one was not answered well. Default: 10 seconds, as upstream's.
    pub failing: Duration,
    /// How long a key is used after it was last said to be the one. Default: 3 minutes, as upstream's.
    pub lifetime: Duration,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self {
            healthy: Duration::from_secs(60),
            failing: Duration::from_secs(10),
            lifetime: Duration::from_secs(180),
        }
    }
}

/// How often a service that says that it is well may fail to decrypt something before that is taken for what it can do.
const DOUBTS: usize = 3;

/// A service that is asked again and again, until this is dropped.
pub(crate) struct Plugin {
    asking: Arc<Asking>,
    task: JoinHandle<()>,
}

struct Asking {
    envelope: Arc<Envelope>,
    client: Client,
    keyring: Weak<Keyring>,
    rhythm: Rhythm,
    state: Mutex<State>,
    /// A decryption failed in a way that says something about the service, and not about what was decrypted.
    is_down: AtomicBool,
    /// How often in a row it said afterwards that it is well.
    doubts: AtomicUsize,
    failed: Notify,
}

#[derive(Default)]
struct State {
    /// The version that the service said first: it may not change.
    version: String,
    /// What was wrong when it was asked last.
    failure: Option<String>,
    /// Until when values are written without a better answer.
    expires: Option<(Instant, SystemTime)>,
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Plugin {
    /// Asks a service for the first time, and goes on with that. That it cannot be asked now is no reason not to.
    pub(crate) async fn start(envelope: Arc<Envelope>, keyring: Weak<Keyring>, rhythm: Rhythm) -> Self {
        let asking = Arc::new(Asking {
            client: Client::new(&envelope.service),
            envelope,
            keyring,
            rhythm,
            state: Mutex::default(),
            is_down: AtomicBool::new(false),
            doubts: AtomicUsize::new(0),
            failed: Notify::new(),
        });
        asking.ask(true).await;
        let task = tokio::spawn(asking.clone().ask_on());
        Self { asking, task }
    }

    pub(crate) fn is_for(&self, envelope: &Arc<Envelope>) -> bool {
        Arc::ptr_eq(&self.asking.envelope, envelope)
    }

    /// Whether the service was well when it was asked last.
    pub(crate) fn health(&self) -> Result<(), String> {
        self.asking.state.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// Whether it was, and has answered everything since.
    pub(crate) fn is_well(&self) -> bool {
        self.health().is_ok() && !self.asking.is_down.load(Ordering::Acquire)
    }

    /// Has the service decrypt a key. What became of it the envelope knows afterwards.
    pub(crate) async fn unwrap(&self, wrapped: &Wrapped) {
        let asking = &self.asking;
        if asking.is_down.load(Ordering::Acquire) {
            let failure = asking.state.lock().failure.clone();
            asking.envelope.learn(wrapped, Err(failure.unwrap_or_else(|| "the service is down".to_owned())));
            return;
        }
        let answer = asking.client.decrypt(wrapped).await;
        match &answer {
            Ok(_) => asking.doubts.store(0, Ordering::Release),
            Err(failure) if failure.is_of_the_service => {
                // Nobody else waits for it before it has said that it is well.
                asking.is_down.store(true, Ordering::Release);
                asking.failed.notify_one();
            }
            Err(_) => {}
        }
        let answer = answer.as_ref().map(|key| key.as_slice()).map_err(|failure| failure.text.clone());
        asking.envelope.learn(wrapped, answer);
    }
}

impl Asking {
    async fn ask_on(self: Arc<Self>) {
        loop {
            let is_well = self.state.lock().failure.is_none() && !self.is_down.load(Ordering::Acquire);
            let pause = if is_well { self.rhythm.healthy } else { self.rhythm.failing };
            let next = Instant::now() + pause;
            let is_its_turn = loop {
                let expires = self.state.lock().expires;
                let expiry = async {
                    match expires.filter(|(at, _)| *at < next) {
                        Some((at, _)) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = sleep_until(next) => break true,
                    () = self.failed.notified(), if is_well => break false,
                    () = expiry => self.expire(),
                }
            };
            self.ask(is_its_turn).await;
        }
    }

    /// Nothing is written any more.
    fn expire(&self) {
        let Some((_, at)) = self.state.lock().expires.take() else { return };
        let time = |time: SystemTime| {
            jiff::Timestamp::try_from(time).unwrap_or_default().strftime("%FT%TZ").to_string()
        };
        let hash = key_id_hash(&self.envelope.key_id().unwrap_or_default());
        let (expired, now) = (time(at), time(SystemTime::now()));
        let why = format!(
            "encryptedDEKSource with keyID hash \"{hash}\" expired at {expired} (current time is {now})"
        );
        tracing::error!(provider = self.envelope.service.name, why, "Values can no longer be encrypted.");
        self.envelope.expire(why);
    }

    /// Asks which key the service uses, and takes a new seed if that is another one. Out of turn only since something could
    /// not be decrypted.
    async fn ask(&self, is_its_turn: bool) {
        let before = (self.envelope.key_id(), self.state.lock().failure.is_some());
        let answer = self.look().await;
        let is_well = answer.is_ok();
        if let Err(error) = &answer {
            tracing::warn!(
                provider = self.envelope.service.name,
                error,
                "A key management service is not well."
            );
        }
        self.state.lock().failure = answer.err();
        let was_down = is_well && self.is_down.swap(false, Ordering::AcqRel);
        // One that is always well and never decrypts would be asked without a pause, and everything be read again each time:
        // it is asked again when it is its turn.
        let is_owed = is_its_turn && self.doubts.swap(0, Ordering::AcqRel) > DOUBTS;
        let is_believed = was_down && self.doubts.fetch_add(1, Ordering::AcqRel) < DOUBTS;
        let is_new = self.envelope.key_id() != before.0;
        let retry = (is_well && (before.1 || is_believed || is_owed) || is_new) && self.envelope.try_again();
        if let Some(keyring) = self.keyring.upgrade().filter(|_| is_new || retry) {
            keyring.tell();
        }
    }

    async fn look(&self) -> Result<(), String> {
        let name = &self.envelope.service.name;
        let (begun, clock) = (Instant::now(), SystemTime::now());
        let status = self.client.status().await.map_err(|failure| {
            let about =
                format!("failed to perform status section of the healthz check for KMS Provider {name}");
            format!("{about}, error: {}", failure.text)
        })?;
        let mut errors = Vec::new();
        if status.healthz != "ok" {
            errors.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        errors.extend(self.check_version(&status.version));
        match validate_key_id(&status.key_id) {
            Err(why) => {
                let hash = key_id_hash(&status.key_id);
                errors.push(format!("got invalid KMSv2 KeyID hash \"{hash}\": {why}"));
            }
            Ok(()) => match self.rotate(&status.key_id).await {
                Ok(()) => {
                    let lifetime = self.rhythm.lifetime;
                    self.state.lock().expires = Some((begun + lifetime, clock + lifetime));
                }
                Err(why) => errors.push(why),
            },
        }
        let errors = match errors.len() {
            0 => return Ok(()),
            1 => errors.remove(0),
            _ => format!("[{}]", errors.join(", ")),
        };
        Err(format!("kmsv2 Provider {name} is not healthy, error: {errors}"))
    }

    fn check_version(&self, version: &str) -> Option<String> {
        if !["v2", "v2beta1"].contains(&version) {
            return Some(format!("expected KMSv2 API version v2, got {version}"));
        }
        let mut state = self.state.lock();
        if state.version.is_empty() {
            version.clone_into(&mut state.version);
        }
        let first = &state.version;
        (first != version).then(|| {
            let about = "KMSv2 API version should not change after the initial status response version";
            format!("{about} {first}, got {version}")
        })
    }

    /// Takes a new seed, unless values are written with this key already. If that goes wrong, everything stays.
    async fn rotate(&self, key_id: &str) -> Result<(), String> {
        let before = self.envelope.key_id();
        if before.as_deref() == Some(key_id) {
            self.envelope.renew();
            return Ok(());
        }
        let generated = async {
            let seed = Seed::random().map_err(|error| error.to_string())?;
            let wrapped = self.client.encrypt(seed.bytes()).await;
            let wrapped =
                wrapped.map_err(|failure| format!("failed to encrypt DEK, error: {}", failure.text))?;
            wrapped.validate().map_err(|error| error.to_string())?;
            Ok::<_, String>((seed, wrapped))
        };
        let (seed, wrapped, why) = match generated.await {
            Ok((seed, wrapped)) if wrapped.key_id == key_id => {
                return self.envelope.write_with(&seed, wrapped).map_err(|error| error.to_string());
            }
            Ok((seed, wrapped)) => (Some(seed), wrapped, "<nil>".to_owned()),
            Err(why) => (None, Wrapped::default(), why),
        };
        drop(seed);
        let state = if before.is_some() { "<nil>" } else { "got unexpected nil transformer" };
        let [status, encrypt, own] =
            [key_id, &wrapped.key_id, before.as_deref().unwrap_or_default()].map(key_id_hash);
        Err(format!(
            "failed to rotate DEK useSeed=true, errState={state}, errGen={why}, statusKeyIDHash=\"{status}\", \
             encryptKeyIDHash=\"{encrypt}\", stateKeyIDHash=\"{own}\""
        ))
    }
}
