use std::{num::NonZeroUsize, time::Duration};

/// The tunables of a replica. [`Config::default`] suits a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many bytes of superseded values the history window may keep, with a fixed surcharge per
    /// change; those that it packs count as what they take then. Default 64 MiB: five minutes of a busy control plane.
    pub window_bytes: usize,
    /// How long a change stays in the history window unless the bytes run out first. Default 5
    /// minutes, which is how long kube-apiserver lets etcd keep old revisions.
    pub window_age: Duration,
    /// How many revisions a subscription may be behind before it is closed. Default 1024.
    pub subscription_buffer: NonZeroUsize,
    /// How many entries are read from the store at once while loading. Default 1000.
    pub load_page: NonZeroUsize,
    /// How long to wait for the store to say its revision. Default 5 seconds. It bounds how long one
    /// unanswered request can hold up the consistent reads that came after it.
    pub revision_timeout: Duration,
    /// The first pause after the store failed; it doubles with each failure. Default 50 ms.
    pub backoff_min: Duration,
    /// The longest pause after the store failed. Default 5 seconds.
    pub backoff_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window_bytes: 64 << 20,
            window_age: Duration::from_secs(5 * 60),
            subscription_buffer: NonZeroUsize::new(1024).expect("not zero"),
            load_page: NonZeroUsize::new(1000).expect("not zero"),
            revision_timeout: Duration::from_secs(5),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(5),
        }
    }
}
