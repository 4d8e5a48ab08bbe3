//! Every transaction of a start fails in every way, or is the last thing that the process does.

use concord_storageversion::Status;

use crate::{
    audit::audit,
    faulty::{Fault, Faulty},
    support::{Kind, Log, Server},
};

/// What a server commits until it is registered.
async fn transactions() -> usize {
    let log = Log::new();
    let (store, _) = Faulty::new(&log.store, None);
    let server = Server::start_on(&log, store.clone(), &Kind::new("a"));
    server.registered().await;
    let count = store.count();
    server.stop().await;
    count
}

/// One entry of one server, everywhere, and everybody kept to what was said.
async fn check(log: &Log, server: &Server, place: &str) {
    server.config_map("a--1").await.unwrap_or_else(|status| panic!("{place}: {status}"));
    let names = log.names("storageversions").await;
    assert!(names.len() > 50, "{place}: {names:?}");
    for name in names {
        let object = server.storage_version(&name).await.expect("it is there");
        let status = Status::of(&object);
        let ids: Vec<&str> =
            status.storage_versions.iter().map(|entry| entry.api_server_id.as_str()).collect();
        assert_eq!(ids, ["a"], "{place}: {name}");
        assert!(status.common_encoding_version.is_some() && status.conditions.len() == 1, "{place}: {name}");
    }
    assert_eq!(log.names("leases/kube-system").await, ["a"], "{place}");
    let resources = [
        ("configmaps", "core.configmaps"),
        ("leases", "coordination.k8s.io.leases"),
        ("storageversions", "internal.apiserver.k8s.io.storageversions"),
    ];
    assert!(audit(log, &resources).await > 50, "{place}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_is_tried_again_until_it_is_done() {
    let steps = transactions().await;
    assert!(steps > 1, "{steps}");
    for fault in [Fault::Refused, Fault::Lost, Fault::Unanswered, Fault::Conflict] {
        for step in 0..steps {
            let log = Log::new();
            let (store, reached) = Faulty::new(&log.store, Some((step, fault)));
            let server = Server::start_on(&log, store, &Kind::new("a"));
            reached.await.expect("the step is reached");
            server.registered().await;
            check(&log, &server, &format!("{fault:?} at {step}")).await;
            server.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_a_process_is_killed_the_next_one_goes_on() {
    let steps = transactions().await;
    for fault in [Fault::Stuck, Fault::CommittedAndStuck] {
        for step in 0..steps {
            let log = Log::new();
            let (store, reached) = Faulty::new(&log.store, Some((step, fault)));
            let server = Server::start_on(&log, store, &Kind::new("a"));
            reached.await.expect("the step is reached");
            server.kill().await;
            let server = Server::ready(&log, &Kind::new("a")).await;
            check(&log, &server, &format!("{fault:?} at {step}")).await;
            server.stop().await;
        }
    }
}
