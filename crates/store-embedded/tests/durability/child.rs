//! The process that writes until it is killed.
//!
//! It reports on its standard output, one line per event, each written before the next write begins:
//! `ready`, `try <tag>`, `ack <tag> <revision>`, `no <tag> <why>` (surely not written), `unknown <tag>`,
//! `read <count>`, `open-failed <why>`. With a mark file the same lines go there, into the trace.

use std::{
    env,
    fs::{File, OpenOptions},
    io::Write as _,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use concord_store::{Compare, Error, KeyRange, Scan, Store, Txn};
use concord_store_embedded::{EmbeddedStore, Options};
use parking_lot::Mutex;

use crate::workload::{COUNTER, Op, Run, Tag, WRITERS, counter_value, parse_counter};

pub(crate) const STORE: &str = "CONCORD_TEST_STORE";
pub(crate) const MARKS: &str = "CONCORD_TEST_MARKS";
pub(crate) const RUN: &str = "CONCORD_TEST_RUN";
pub(crate) const WRITES: &str = "CONCORD_TEST_WRITES";

/// Nobody needs a child for longer, should its parent be gone.
const LIFE: Duration = Duration::from_secs(60);
/// Old revisions stay readable for this long; most are compacted within a round.
const RETENTION: Duration = Duration::from_millis(40);

pub(crate) fn main() {
    let Some(path) = env::var_os(STORE) else { return };
    let number = |name| env::var(name).ok().map(|text| text.parse().expect("the parent gives numbers"));
    let (seed, round) = env::var(RUN)
        .ok()
        .and_then(|run| run.split_once(' ').map(|(s, r)| (s.to_owned(), r.to_owned())))
        .expect("a run");
    let parse = |text: String| text.parse().expect("the parent gives numbers");
    let child = Child {
        run: Run { seed: parse(seed), round: parse(round) },
        writes: number(WRITES).unwrap_or(u64::MAX),
        reports: Mutex::new(Reports::new(env::var_os(MARKS).map(PathBuf::from))),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let work = async { tokio::time::timeout(LIFE, child.work(PathBuf::from(path))).await };
    runtime.expect("a runtime").block_on(work).ok();
}

struct Reports {
    marks: Option<File>,
}

impl Reports {
    fn new(path: Option<PathBuf>) -> Self {
        let open = |path| OpenOptions::new().append(true).create(true).open(path).expect("the mark file");
        Self { marks: path.map(open) }
    }

    fn line(&mut self, line: &str) {
        let line = format!("{line}\n");
        if let Some(marks) = &mut self.marks {
            marks.write_all(line.as_bytes()).expect("the mark file takes marks");
        }
        // A parent that is gone reads no reports.
        std::io::stdout().lock().write_all(line.as_bytes()).ok();
    }
}

struct Child {
    run: Run,
    writes: u64,
    reports: Mutex<Reports>,
}

impl Child {
    fn report(&self, line: &str) {
        self.reports.lock().line(line);
    }

    async fn work(self, path: PathBuf) {
        let store = match EmbeddedStore::open(&Options { retention: Some(RETENTION), ..Options::new(path) }) {
            Ok(store) => Arc::new(store),
            Err(error) => return self.report(&format!("open-failed {error}")),
        };
        self.report("ready");
        let child = Arc::new(self);
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(write(child.clone(), store.clone(), writer));
        }
        while let Some(ended) = writers.join_next().await {
            ended.expect("no writer panics");
        }
    }
}

async fn write(child: Arc<Child>, store: Arc<EmbeddedStore>, writer: u64) {
    for number in 0..child.writes {
        let tag = Tag { round: child.run.round, writer, number };
        let Some(txn) = transaction(&child, &store, tag).await else {
            child.report(&format!("no {tag} the counter cannot be read"));
            continue;
        };
        child.report(&format!("try {tag}"));
        match store.transact(txn).await {
            Ok(committed) => child.report(&format!("ack {tag} {}", committed.revision)),
            Err(Error::OutcomeUnknown { .. }) => child.report(&format!("unknown {tag}")),
            Err(error) => {
                child.report(&format!("no {tag} {error}"));
                after_refusal(&child, &store, &error).await;
            }
        }
    }
}

async fn transaction(child: &Child, store: &EmbeddedStore, tag: Tag) -> Option<Txn> {
    Some(match child.run.op(tag.writer, tag.number) {
        Op::Put { keys, value, ttl } => keys.into_iter().fold(Txn::new(), |txn, key| match ttl {
            Some(ttl) => txn.put_with_ttl(key, value.clone(), ttl),
            None => txn.put(key, value.clone()),
        }),
        Op::Delete { key } => Txn::new().delete(key),
        Op::Increment => {
            let page = store.scan(Scan::key(COUNTER)).await.ok()?;
            match page.entries.first() {
                Some(kv) => {
                    let (count, _) = parse_counter(&kv.value)?;
                    let compare = Compare::mod_revision(COUNTER, kv.mod_revision);
                    Txn::new().compare(compare).put(COUNTER, counter_value(count + 1, tag))
                }
                None => Txn::new().compare(Compare::absent(COUNTER)).put(COUNTER, counter_value(1, tag)),
            }
        }
    })
}

/// Whatever became of writing, reading goes on.
async fn after_refusal(child: &Child, store: &EmbeddedStore, error: &Error) {
    if matches!(error, Error::CompareFailed(_)) {
        return;
    }
    match store.scan(Scan::new(KeyRange::all(), 1000)).await {
        Ok(page) => child.report(&format!("read {}", page.entries.len())),
        Err(error) => child.report(&format!("read-failed {error}")),
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
}
