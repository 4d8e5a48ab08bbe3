//! The store below the server, asked without any server.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use concord_store::{Store, Txn};
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::etcd::Cluster;
use futures_util::{StreamExt as _, stream};
use tempfile::TempDir;

use crate::SIZE;

/// What the store is asked for at once when nothing else happens.
pub(crate) const WRITERS: [usize; 3] = [8, 16, 32];

/// As many as migrations have under way.
const IN_GROUPS: usize = 64;

/// What keeps what the server stores.
pub(crate) enum Engine {
    Etcd(Cluster),
    /// In the server's process. Another file beside its own shows what it can write.
    Embedded(TempDir),
}

/// What a client writes to the store without any server.
#[derive(Clone, Copy)]
pub(crate) struct Writes {
    /// In a second.
    pub(crate) rate: f64,
    /// As migrations do.
    pub(crate) together: bool,
}

/// Where a store is.
enum Place {
    Etcd(Config),
    File(PathBuf),
}

impl Engine {
    pub(crate) async fn etcd() -> Self {
        Self::Etcd(Cluster::single().await.expect("an etcd"))
    }

    pub(crate) fn embedded() -> Self {
        Self::Embedded(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Etcd(_) => "etcd",
            Self::Embedded(_) => "the embedded store",
        }
    }

    /// What tells a server to use it.
    pub(crate) fn flag(&self) -> Option<String> {
        match self {
            Self::Etcd(etcd) => Some(format!("--etcd-servers={}", etcd.endpoints()[0])),
            Self::Embedded(_) => None,
        }
    }

    /// Its process, if it has one.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Etcd(etcd) => Some(etcd.pid(0)),
            Self::Embedded(_) => None,
        }
    }

    fn place(&self) -> Place {
        match self {
            Self::Etcd(etcd) => Place::Etcd(Config {
                prefix: "/raw/".into(),
                ..Config::new(etcd.endpoints().iter().cloned())
            }),
            Self::Embedded(directory) => Place::File(directory.path().join("raw.db")),
        }
    }

    /// How many values as large as the objects it takes in a second, for each number of them at once.
    pub(crate) async fn raw(&self, time: Duration) -> Vec<f64> {
        let mut rates = Vec::new();
        for at_once in WRITERS {
            rates.push(write(self.place(), at_once, None, time).await);
        }
        rates
    }

    /// Writes so many times a second, 8 at once at most or in groups, and says how many times a second it really did. It has a
    /// thread of its own, so that nothing in this process waits for it.
    pub(crate) async fn write(&self, writes: Writes, time: Duration) -> f64 {
        let place = self.place();
        let writing = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let at_once = if writes.together { IN_GROUPS } else { WRITERS[0] };
            runtime.block_on(write(place, at_once, Some(writes), time))
        });
        tokio::task::spawn_blocking(move || writing.join().expect("no panic")).await.expect("no panic")
    }
}

/// An open store.
enum Opened {
    Etcd(EtcdStore),
    File(EmbeddedStore),
}

impl Place {
    async fn open(self) -> Opened {
        match self {
            Self::Etcd(config) => Opened::Etcd(EtcdStore::open(config).await.expect("a store")),
            Self::File(path) => Opened::File(EmbeddedStore::open(&Options::new(path)).expect("a store")),
        }
    }
}

impl Opened {
    fn store(&self) -> &dyn Store {
        match self {
            Self::Etcd(store) => store,
            Self::File(store) => store,
        }
    }

    async fn close(self) {
        match self {
            Self::Etcd(store) => store.shutdown().await,
            Self::File(store) => store.close().await,
        }
    }
}

/// Writes as fast as it goes or as it is said, and says how many times a second that was.
async fn write(place: Place, at_once: usize, writes: Option<Writes>, time: Duration) -> f64 {
    let opened = place.open().await;
    let store = opened.store();
    let (begin, begun) = (Instant::now(), AtomicUsize::new(0));
    let write = |writer: usize| {
        let begun = &begun;
        async move {
            while begin.elapsed() < time {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                if let Some(Writes { rate, .. }) = writes {
                    let due = begin + Duration::from_secs_f64(number as f64 / rate);
                    tokio::time::sleep_until(due.into()).await;
                }
                let key = format!("/raw/{writer:02}-{:03}", number % 1000);
                let txn = Txn::new().put(key, vec![b'x'; SIZE + 300]);
                let together = writes.is_some_and(|writes| writes.together);
                store.transact(Txn { together, ..txn }).await.expect("written");
            }
        }
    };
    stream::iter(0..at_once).for_each_concurrent(None, write).await;
    let rate = begun.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    opened.close().await;
    rate
}
