//! One watch: reads events, looks at the clock, checks the order.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};

use anyhow::Result;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::{
    Fan,
    check::{Check, Stamp},
    lines::Lines,
    writer::MEASURED,
};
use crate::{
    client::{Call, Connection, Server},
    scan, stats,
};

/// What a watcher has seen so far.
pub(super) struct Seen {
    pub(super) check: Check,
    pub(super) bytes: u64,
    /// When the last event came.
    pub(super) last: Option<Instant>,
    /// Why the server ended the watch, if it did.
    pub(super) closed: Option<String>,
}

impl Seen {
    pub(super) fn new(writers: usize) -> Self {
        Self { check: Check::new(writers), bytes: 0, last: None, closed: None }
    }

    /// Takes one line; returns the stamp if it was an event of ours.
    fn line(&mut self, line: &[u8]) -> Option<Stamp> {
        if line.starts_with(br#"{"type":"ERROR""#) {
            self.closed = Some(String::from_utf8_lossy(line).into_owned());
            return None;
        }
        let stamp = Stamp::parse(scan::stamp(line)?)?;
        self.check.event(scan::resource_version(line).ok()?, stamp);
        Some(stamp)
    }
}

/// An open watch and the connection it needs.
pub(super) struct Watch {
    body: Incoming,
    _connection: Connection,
}

/// Opens watches on one new connection.
pub(super) async fn open(server: &Server, path: &str, count: usize) -> Result<Vec<Watch>> {
    let mut connection = Some(server.connect().await?);
    let mut watches = Vec::with_capacity(count);
    while let Some(mut own) = connection.take() {
        let body = own.expect(Call::get(path)).await?.into_body();
        if watches.len() + 1 < count {
            connection = own.share();
        }
        watches.push(Watch { body, _connection: own });
    }
    Ok(watches)
}

/// Reads until the server ends the watch.
pub(super) async fn follow(mut watch: Watch, fan: Arc<Fan>, seen: Arc<Mutex<Seen>>, shard: usize) {
    let mut lines = Lines::default();
    let reason = loop {
        match watch.body.frame().await {
            None => break "the server ended the watch".to_owned(),
            Some(Err(failure)) => break format!("the watch broke: {failure}"),
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else { continue };
                take(data, &mut lines, &fan, &mut seen.lock(), shard);
            }
        }
    };
    let mut seen = seen.lock();
    seen.closed.get_or_insert(reason);
    fan.closed_received.fetch_add(seen.check.distinct, Relaxed);
    fan.closed.fetch_add(1, Relaxed);
}

fn take(data: &[u8], lines: &mut Lines, fan: &Fan, seen: &mut Seen, shard: usize) {
    let now = Instant::now();
    let nanos = u64::try_from(now.duration_since(fan.epoch).as_nanos()).unwrap_or(u64::MAX);
    let mut delays = fan.delays[shard].lock();
    let before = seen.check.distinct;
    lines.push(data, |line| {
        if let Some(stamp) = seen.line(line).filter(|stamp| stamp.phase == MEASURED) {
            let delay = std::time::Duration::from_nanos(nanos.saturating_sub(stamp.nanos));
            delays.saturating_record(stats::micros(delay));
        }
    });
    seen.bytes += data.len() as u64;
    seen.last = Some(now);
    fan.delivered.fetch_add(seen.check.distinct - before, Relaxed);
}
