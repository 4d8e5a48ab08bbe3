//! Servers of different versions as one: a request for what only another server of the fleet serves goes there, and discovery
//! shows what all of them serve (KEP-4020).
//!
//! Everything that is known about other servers comes from the log ([`PeerView`]) and from what they say themselves when they
//! are asked ([`Peers`]). Both end in a [`Routing`], an immutable picture of the others, from which [`decide`] says where a
//! request goes and [`merge`] what discovery says; so the two cannot disagree. [`PeerProxy`] stands before what answers
//! requests here, [`FleetDiscovery`] behind discovery, and [`Announcer`] says where this server is.
//!
//! What it must never do: say that something does not exist unless every server that is alive has said so; send a request to
//! an address that a client could have written; send one request twice, or on from where it was sent already; take custom
//! resources or aggregated APIs from another server, since every server knows those from the log.
//!
//! Start with [`decide`] and `tracker.rs`, which has all there is to know about a peer, then [`PeerProxy`].

mod announce;
mod answer;
mod ask;
mod bell;
mod body;
mod crowd;
mod decision;
mod document;
#[cfg(test)]
mod fake;
mod forwarding;
mod here;
mod identity;
mod liveness;
mod merge;
mod merged;
mod openapi;
mod order;
mod peers;
mod proxy;
mod record;
mod room;
mod routing;
mod same;
mod split;
mod together;
mod tracker;
mod transport;
mod view;

pub use announce::Announcer;
pub use decision::{Asked, Decision, Reason, decide};
pub use document::{
    Document, DocumentError, Group, Has, Kind, MAX_DOCUMENT_BYTES, Metadata, Resource, Subresource, Version,
    Wanted, parse_groups,
};
pub use forwarding::{Egress, PeerTransport};
pub use here::Local;
pub use merge::{Source, merge};
pub use merged::FleetDiscovery;
pub use peers::Peers;
pub use proxy::PeerProxy;
pub use routing::{RoutedPeer, Routing};
pub use transport::{PROXIED, SendError, Transport};
pub use view::{PeerState, PeerView};
