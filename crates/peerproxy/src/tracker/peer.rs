//! What is known about one other server.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use concord_meta::GroupVersion;
use concord_store::Revision;

use super::{GRACE, Told};
use crate::{
    document::Document,
    view::{Customs, Seen},
};

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) holder: String,
    pub(super) lease: Revision,
    /// Where it is; remembered when the record is gone, since a slow store makes records disappear.
    pub(super) address: Option<SocketAddr>,
    pub(super) has_record: bool,
    /// In attested time.
    pub(super) last_heard: Duration,
    /// Since when its lease is gone.
    pub(super) leaving: Option<Duration>,
    pub(super) told: Option<Arc<Told>>,
    /// When what it told was asked for.
    pub(super) told_at: Duration,
    /// Whether the process that is running now told it.
    pub(super) is_known: bool,
    /// Whether it answered when it was asked last.
    pub(super) answers: bool,
    /// What it told without what is never taken from others, and for which exclusions that was made.
    pub(super) filtered: Option<(u64, Arc<Document>)>,
    pub(super) failures: u32,
    pub(super) next: Duration,
    /// The number of the question that is on its way.
    pub(super) asking: Option<u64>,
    pub(super) was_asked: bool,
}

impl Peer {
    pub(super) fn new(holder: &str, now: Duration, attested: Duration) -> Self {
        Self {
            holder: holder.to_owned(),
            lease: 0,
            address: None,
            has_record: false,
            last_heard: attested,
            leaving: None,
            told: None,
            told_at: Duration::ZERO,
            is_known: false,
            answers: false,
            filtered: None,
            failures: 0,
            next: now,
            asking: None,
            was_asked: false,
        }
    }

    /// Something about it is new: it is to be asked at once.
    pub(super) fn ask_again(&mut self, now: Duration) {
        self.failures = 0;
        self.next = now;
        // An answer to what was asked before would be about something else.
        self.asking = None;
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.address.is_some() && self.leaving.is_none() && self.asking.is_none() && self.next <= now
    }
}

pub(super) fn observe_record(
    peer: &mut Peer,
    record: Option<&Seen<Option<SocketAddr>>>,
    attested: Duration,
    now: Duration,
) {
    let Some(record) = record else {
        peer.has_record = false;
        return;
    };
    // It is there only as long as its server refreshes it.
    peer.last_heard = attested;
    let is_new = record.value.is_some() && (peer.address != record.value || !peer.has_record);
    (peer.address, peer.has_record) = (record.value, record.value.is_some());
    if is_new {
        peer.ask_again(now);
    }
}

/// Takes out of what a server told what every server knows from the log, also for a while after it is gone from there: a
/// document that is older than that says nothing about it.
pub(super) fn filter(
    peer: &mut Peer,
    customs: &Customs,
    departed: &HashMap<GroupVersion, Duration>,
    exclusions: u64,
) {
    let Some(told) = &peer.told else {
        peer.filtered = None;
        return;
    };
    if peer.filtered.as_ref().is_some_and(|(made_for, _)| *made_for == exclusions) {
        return;
    }
    let told_at = peer.told_at;
    let is_excluded = |version: &GroupVersion| {
        customs.contains(version) || departed.get(version).is_some_and(|since| told_at <= *since + GRACE)
    };
    let document = match told.document.mentions(is_excluded) {
        true => Arc::new(told.document.without(is_excluded)),
        false => told.document.clone(),
    };
    // What says the same is the same: nothing that was made from it has to be made again.
    let same = peer.filtered.take().filter(|(_, before)| **before == *document);
    peer.filtered = Some((exclusions, same.map_or(document, |(_, before)| before)));
}
