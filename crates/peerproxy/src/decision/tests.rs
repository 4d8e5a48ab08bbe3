use std::{net::SocketAddr, sync::Arc};

use super::*;
use crate::{document::Document, document::parse_groups, routing::RoutedPeer};

const JOBS: Wanted<'static> =
    Wanted { group: "batch", version: "v1", resource: "jobs", subresource: "", verb: "get" };
const RESIZE: Wanted<'static> = Wanted { subresource: "resize", ..JOBS };
const WATCH: Wanted<'static> = Wanted { verb: "watch", ..JOBS };

/// A server that has jobs with a verb, and a subresource of them.
fn document(verb: &str, subresource: &str) -> Arc<Document> {
    let body = serde_json::json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": "batch"}, "versions": [{"version": "v1", "resources": [
            {"resource": "jobs", "verbs": [verb],
             "subresources": [{"subresource": subresource, "verbs": ["get"]}]}]}]}],
    });
    let groups = parse_groups(body.to_string().as_bytes()).expect("readable");
    Arc::new(Document::new(Vec::new(), groups))
}

/// Peers in short: `j` has jobs, `J` too but nobody knows where it is, `n` has nothing, `u` has not said, `r` has jobs that
/// can be resized, `w` jobs that can be watched, `o` said what it had before it was started again: jobs.
fn routing(peers: &str, is_synced: bool) -> Routing {
    let peer = |(at, which): (usize, char)| RoutedPeer {
        id: format!("apiserver-{at}"),
        address: (which != 'J').then(|| SocketAddr::from(([127, 0, 0, 1], 6443))),
        document: match which {
            'j' | 'J' | 'o' => Some(document("get", "status")),
            'r' => Some(document("get", "resize")),
            'w' => Some(document("watch", "status")),
            'n' => Some(Arc::new(Document::default())),
            _ => None,
        },
        is_known: !matches!(which, 'u' | 'o'),
        is_reachable: true,
        openapi: Arc::default(),
    };
    let (crowd, named): (Vec<_>, Vec<_>) = peers.chars().partition(|known| *known == '*');
    let peers = named.into_iter().enumerate().map(peer).collect();
    Routing { generation: 1, peers, is_crowded: !crowd.is_empty(), is_synced }
}

fn asked(wanted: Wanted<'static>, here: Has) -> Asked<'static> {
    Asked { wanted: Some(wanted), is_proxied: false, here, is_local_business: false }
}

fn forward(to: &[usize]) -> Decision {
    Decision::Forward(to.to_vec())
}

#[test]
fn every_row_of_the_table() {
    use Decision::{Local, Unavailable};
    let absent = asked(JOBS, Has::Nothing);
    let none = Asked { wanted: None, ..absent };
    let proxied = Asked { is_proxied: true, ..absent };
    let custom = Asked { is_local_business: true, ..absent };
    for (row, asked, peers, is_synced, expected) in [
        ("D2 no resource", none, "j", true, Local),
        ("D2 no resource, sent by a peer", Asked { is_proxied: true, ..none }, "u", true, Local),
        ("D3 served here", Asked { here: Has::Everything, ..proxied }, "j", true, Local),
        ("D3 never sent on", proxied, "j", true, Unavailable(Reason::ProxiedAndUnknown)),
        ("D3 while starting", proxied, "", false, Unavailable(Reason::ProxiedAndUnknown)),
        ("D3 custom resources", Asked { is_proxied: true, ..custom }, "j", true, Local),
        ("D3 a verb that is unknown here", Asked { here: Has::Endpoint, ..proxied }, "j", true, Local),
        ("D4 served here", Asked { here: Has::Everything, ..absent }, "", false, Local),
        ("D4 custom resources", custom, "", false, Local),
        ("D4 not synced", absent, "j", false, Unavailable(Reason::NotSynced)),
        ("D5 served here", Asked { here: Has::Everything, ..absent }, "ju", true, Local),
        ("D5 custom resources are never asked for elsewhere", custom, "jj", true, Local),
        ("D6 nobody else", absent, "", true, Local),
        ("D6 absence is proved", absent, "nn", true, Local),
        ("D6 somebody has not said", absent, "nu", true, Unavailable(Reason::Unproved)),
        ("D6 too many to look at each", absent, "n*", true, Unavailable(Reason::Unproved)),
        ("D7 nobody knows where", absent, "nJ", true, Unavailable(Reason::NoAddress)),
        (
            "D7 nobody knows where, and another has not said",
            absent,
            "uJ",
            true,
            Unavailable(Reason::NoAddress),
        ),
        ("D8 the one that has it", absent, "njn", true, forward(&[1])),
        ("D8 all that have it and can be found", absent, "jJuj", true, forward(&[0, 3])),
        ("D8 whoever else there may be", absent, "j*", true, forward(&[0])),
        ("D8 what it had before it was started again", absent, "o", true, forward(&[0])),
    ] {
        assert_eq!(decide(&asked, &routing(peers, is_synced)), expected, "{row}");
    }
}

#[test]
fn also_subresources_and_verbs_that_only_another_server_has() {
    use Decision::{Local, Unavailable};
    for (row, asked, peers, expected) in [
        ("a subresource of a peer", asked(RESIZE, Has::Resource), "jr", forward(&[1])),
        ("a subresource of nobody", asked(RESIZE, Has::Resource), "jn", Local),
        ("a subresource, perhaps", asked(RESIZE, Has::Resource), "ju", Unavailable(Reason::Unproved)),
        ("a resource without it", asked(RESIZE, Has::Nothing), "j", Local),
        ("a verb of a peer", asked(WATCH, Has::Endpoint), "jw", forward(&[1])),
        ("a verb of nobody", asked(WATCH, Has::Endpoint), "jj", Local),
        // 405, from which nobody concludes that something is gone.
        ("a verb, perhaps", asked(WATCH, Has::Endpoint), "ju", Local),
    ] {
        assert_eq!(decide(&asked, &routing(peers, true)), expected, "{row}");
    }
}
