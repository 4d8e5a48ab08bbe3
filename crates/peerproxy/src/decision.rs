//! Where a request goes.
//!
//! The numbers are those of the table in `docs/mixed-version-proxy.md`; `decision/tests.rs` has every row.

use crate::{
    document::{Has, Wanted},
    routing::Routing,
};

/// What is known about a request before other servers are considered.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What it needs; `None` if it is about no resource.
    pub wanted: Option<Wanted<'a>>,
    /// Whether another server of the fleet sent it here, and was authenticated as one that may.
    pub is_proxied: bool,
    /// How much of it is served here.
    pub here: Has,
    /// Whether its group-version is one of custom resources or of an aggregated server: every server knows those from the
    /// log, so nobody else is ever asked.
    pub is_local_business: bool,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// To whatever answers here, and be it with 404.
    Local,
    /// To one of these peers, by their position among the [`Routing::peers`].
    Forward(Vec<usize>),
    /// Nowhere now; the client is to try again.
    Unavailable(Reason),
}

/// Why a request can be answered by nobody at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// D3: it was sent here by a server that thought it would be served here. It is never sent on.
    ProxiedAndUnknown,
    /// D4: what other servers have has not been asked yet.
    NotSynced,
    /// D6: some server may have it, but has not said yet what it has.
    Unproved,
    /// D7: some server has it, but nobody knows where that server is.
    NoAddress,
}

/// Decides where a request goes.
pub fn decide(asked: &Asked<'_>, routing: &Routing) -> Decision {
    // D2
    let Some(wanted) = &asked.wanted else { return Decision::Local };
    let is_here = asked.is_local_business || asked.here == Has::Everything;
    match (asked.is_proxied, is_here) {
        // D3
        (true, false) if asked.here == Has::Nothing => {
            return Decision::Unavailable(Reason::ProxiedAndUnknown);
        }
        // D3, D5
        (true, _) | (false, true) => return Decision::Local,
        (false, false) => {}
    }
    // D4
    if !routing.is_synced {
        return unless_known(asked.here, Reason::NotSynced);
    }
    let serves = |at: &usize| routing.peers[*at].document.as_ref().is_some_and(|known| has(known, wanted));
    let serving: Vec<usize> = (0..routing.peers.len()).filter(serves).collect();
    if serving.is_empty() {
        // D6
        let is_proved = !routing.is_crowded && routing.peers.iter().all(|peer| peer.is_known);
        return if is_proved { Decision::Local } else { unless_known(asked.here, Reason::Unproved) };
    }
    let located: Vec<usize> = serving.into_iter().filter(|at| routing.peers[*at].address.is_some()).collect();
    match located.is_empty() {
        true => Decision::Unavailable(Reason::NoAddress),
        false => Decision::Forward(located),
    }
}

fn has(document: &crate::document::Document, wanted: &Wanted<'_>) -> bool {
    document.has(wanted) == Has::Everything
}

/// A method that is not for a resource is answered with 405, from which nobody concludes that something is gone.
fn unless_known(here: Has, reason: Reason) -> Decision {
    if here == Has::Endpoint { Decision::Local } else { Decision::Unavailable(reason) }
}

#[cfg(test)]
mod tests;
