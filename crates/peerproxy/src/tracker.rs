//! Which servers there are, what each of them has said, and whom to ask next.
//!
//! The tracker decides and does nothing: it is told what the log says, what became of questions and what time it is, and
//! answers with whom to ask and with a [`Routing`]. Each server is tracked for itself: what happens to one never touches
//! what is known about another.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use concord_meta::GroupVersion;
use concord_store::Revision;

use crate::{
    crowd::{Crowd, MOST_UNLOCATED},
    document::Document,
    liveness::Attested,
    routing::{RoutedPeer, Routing},
    view::{Customs, Known},
};

mod peer;

use peer::{Peer, filter, observe_record};

/// How often servers are asked again although nothing seems to have changed.
const REFRESH: Duration = Duration::from_secs(60);

/// The pauses between attempts to ask a server that does not answer.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_secs(2);

/// How soon after it was asked a server that hangs up is asked again: it may hang up whenever it has answered.
const BREATH: Duration = Duration::from_secs(1);

/// How long a server whose lease was deleted is remembered: one that is started again deletes its lease and makes a new
/// one, and nothing may seem to be gone in between.
const LEAVING: Duration = Duration::from_secs(1);

/// How long what was served from the log is not taken from others after it is gone from the log, kube-apiserver's time: they
/// may not have noticed yet. And then only from a document that is newer.
const GRACE: Duration = Duration::from_secs(300);

/// How long a server that starts waits for the answers of others before it says that it is ready.
const FIRST_ROUND: Duration = Duration::from_secs(5);

/// What a server has said about itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// What it serves.
    pub(crate) document: Arc<Document>,
    /// Where its OpenAPI v3 documents are.
    pub(crate) openapi: Arc<BTreeMap<String, String>>,
    /// The tags of what was read: of `/api`, of `/apis`, of `/openapi/v3`.
    pub(crate) tags: [String; 3],
}

/// A question to a server.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) id: String,
    pub(crate) address: SocketAddr,
    /// What it said last, so that it need not say it again.
    pub(crate) before: Option<Arc<Told>>,
    number: u64,
    asked: Duration,
}

/// What is known about all other servers.
pub(crate) struct Tracker {
    own_id: String,
    started: Duration,
    is_loaded: bool,
    attested: Attested,
    own: (Revision, Revision),
    peers: BTreeMap<String, Peer>,
    /// Those that are not tracked one by one.
    crowd: Crowd,
    customs: Customs,
    /// What is no longer in the log, and since when.
    departed: HashMap<GroupVersion, Duration>,
    /// Another one whenever what is excluded may be something else.
    exclusions: u64,
    questions: u64,
    routing: Arc<Routing>,
}

impl Tracker {
    pub(crate) fn new(own_id: &str, now: Duration) -> Self {
        Self {
            own_id: own_id.to_owned(),
            started: now,
            is_loaded: false,
            attested: Attested::default(),
            own: (0, 0),
            peers: BTreeMap::new(),
            crowd: Crowd::default(),
            customs: Customs::default(),
            departed: HashMap::new(),
            exclusions: 1,
            questions: 0,
            routing: Arc::default(),
        }
    }

    /// Takes note of what the log says, and of what is no longer custom.
    pub(crate) fn observe(&mut self, known: &Known, departed: Vec<GroupVersion>, now: Duration) {
        self.is_loaded = known.is_loaded;
        let revision = |found: Option<Revision>| found.unwrap_or_default();
        let own = (
            revision(known.leases.get(&self.own_id).map(|lease| lease.revision)),
            revision(known.records.get(&self.own_id).map(|record| record.revision)),
        );
        if own != self.own {
            self.own = own;
            self.attested.renewed(now);
        }
        self.exclude(known, departed, now);
        self.observe_leases(known, now);
        self.forget(known, now);
    }

    fn observe_leases(&mut self, known: &Known, now: Duration) {
        let attested = self.attested.total();
        let mut unlocated = self.peers.values().filter(|peer| peer.address.is_none()).count();
        let mut crowd = Vec::new();
        for (id, lease) in known.leases.iter().filter(|(id, _)| **id != self.own_id) {
            if !self.peers.contains_key(id) {
                // A record is what no client can write: who has one is always tracked.
                if !known.records.contains_key(id) {
                    if unlocated == MOST_UNLOCATED {
                        crowd.push(lease.revision);
                        continue;
                    }
                    unlocated += 1;
                }
                let heard = self.crowd.last_heard(lease.revision, attested);
                let peer = Peer { lease: lease.revision, ..Peer::new(&lease.value.holder, now, heard) };
                self.peers.insert(id.clone(), peer);
            }
            let Some(peer) = self.peers.get_mut(id) else { continue };
            peer.leaving = None;
            if peer.lease != lease.revision {
                (peer.lease, peer.last_heard) = (lease.revision, attested);
            }
            if peer.holder != lease.value.holder {
                peer.holder.clone_from(&lease.value.holder);
                peer.is_known = false;
                peer.ask_again(now);
            }
            observe_record(peer, known.records.get(id), attested, now);
        }
        self.crowd.observe(&crowd, attested);
    }

    fn exclude(&mut self, known: &Known, departed: Vec<GroupVersion>, now: Duration) {
        if self.customs.version != known.customs.version {
            self.customs = known.customs.clone();
            self.exclusions += 1;
        }
        self.departed.extend(departed.into_iter().map(|version| (version, now)));
        let customs = &self.customs;
        let oldest = self.peers.values().filter(|peer| peer.told.is_some()).map(|peer| peer.told_at).min();
        let oldest = oldest.unwrap_or(now);
        self.departed.retain(|version, since| !customs.contains(version) && oldest <= *since + GRACE);
    }

    /// Lets go of servers whose leases are gone, and of what those said that are silent.
    fn forget(&mut self, known: &Known, now: Duration) {
        let attested = self.attested;
        self.peers.retain(|id, peer| {
            if known.leases.contains_key(id) {
                return true;
            }
            now.saturating_sub(*peer.leaving.get_or_insert(now)) < LEAVING
        });
        for peer in self.peers.values_mut().filter(|peer| attested.is_lost(peer.last_heard)) {
            (peer.told, peer.filtered, peer.is_known, peer.answers) = (None, None, false, false);
            peer.next = now;
        }
    }

    /// Whom to ask now.
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Question> {
        let mut questions = Vec::new();
        let attested = self.attested;
        let alive = self.peers.iter_mut().filter(|(_, peer)| !attested.is_lost(peer.last_heard));
        for (id, peer) in alive.filter(|(_, peer)| peer.is_due(now)) {
            let Some(address) = peer.address else { continue };
            self.questions += 1;
            peer.asking = Some(self.questions);
            let before = peer.told.clone();
            questions.push(Question { id: id.clone(), address, before, number: self.questions, asked: now });
        }
        questions
    }

    /// What became of a question. `None` if there was no answer.
    pub(crate) fn answered(&mut self, question: &Question, told: Option<Arc<Told>>, now: Duration) {
        let Some(peer) = self.peers.get_mut(&question.id) else { return };
        if peer.asking != Some(question.number) {
            return;
        }
        peer.asking = None;
        peer.was_asked = true;
        peer.answers = told.is_some();
        match told {
            Some(told) => {
                // A newer document may be believed where an older one was not.
                peer.filtered = peer.filtered.take().map(|(_, document)| (0, document));
                peer.told = Some(told);
                (peer.told_at, peer.is_known, peer.failures) = (question.asked, true, 0);
                peer.next = now + REFRESH;
            }
            None => {
                let pause = LEAST_PAUSE * 2_u32.saturating_pow(peer.failures.min(8));
                peer.failures += 1;
                peer.next = now + pause.min(MOST_PAUSE);
            }
        }
    }

    /// A server did not take a request: whether it is still there is to be found out.
    pub(crate) fn suspect(&mut self, id: &str, now: Duration) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.next = peer.next.min(now);
        }
    }

    /// A connection to the server at an address ended. One that answered until now may have crashed; of the others that is
    /// known already.
    pub(crate) fn hung_up(&mut self, address: SocketAddr, now: Duration) {
        let there = |peer: &&mut Peer| peer.address == Some(address) && peer.answers;
        for peer in self.peers.values_mut().filter(there) {
            peer.next = peer.next.min(now.max(peer.told_at + BREATH));
        }
    }

    /// When something is to be done although nothing happens.
    pub(crate) fn next(&self, now: Duration) -> Option<Duration> {
        let attested = self.attested;
        let is_asked = |peer: &&Peer| {
            peer.asking.is_none()
                && peer.address.is_some()
                && peer.leaving.is_none()
                && !attested.is_lost(peer.last_heard)
        };
        let asks = self.peers.values().filter(is_asked).map(|peer| peer.next);
        let leaves = self.peers.values().filter_map(|peer| Some(peer.leaving? + LEAVING));
        let round = (!self.is_synced(now)).then_some(self.started + FIRST_ROUND);
        asks.chain(leaves).chain(round).min()
    }

    fn is_synced(&self, now: Duration) -> bool {
        let is_answered = |peer: &Peer| peer.was_asked || peer.address.is_none();
        self.is_loaded
            && (now.saturating_sub(self.started) >= FIRST_ROUND || self.peers.values().all(is_answered))
    }

    /// What decides where requests go from now on: the same as before if nothing changed.
    pub(crate) fn routing(&mut self, now: Duration) -> Arc<Routing> {
        let is_synced = self.routing.is_synced || self.is_synced(now);
        let (customs, departed, exclusions) = (&self.customs, &self.departed, self.exclusions);
        let attested = self.attested;
        let alive = self.peers.iter_mut().filter(|(_, peer)| !attested.is_lost(peer.last_heard));
        let peers: Vec<RoutedPeer> = alive
            .map(|(id, peer)| {
                filter(peer, customs, departed, exclusions);
                RoutedPeer {
                    id: id.clone(),
                    address: peer.address,
                    document: peer.filtered.as_ref().map(|(_, document)| document.clone()),
                    is_known: peer.is_known,
                    is_reachable: peer.answers && peer.has_record,
                    openapi: peer.told.as_ref().map(|told| told.openapi.clone()).unwrap_or_default(),
                }
            })
            .collect();
        let is_crowded = self.crowd.is_alive(&attested);
        let before = &self.routing;
        if peers != before.peers || (is_synced, is_crowded) != (before.is_synced, before.is_crowded) {
            let generation = before.generation + 1;
            self.routing = Arc::new(Routing { generation, peers, is_crowded, is_synced });
        }
        self.routing.clone()
    }
}

#[cfg(test)]
mod tests;

/// What the tests of others need.
#[cfg(test)]
pub(crate) mod tests_support {
    use super::*;

    /// A question to a server that said this before.
    pub(crate) fn question(before: Option<Arc<Told>>) -> Question {
        let address = SocketAddr::from(([127, 0, 0, 1], 6443));
        Question { id: "apiserver-a".to_owned(), address, before, number: 1, asked: Duration::ZERO }
    }
}
