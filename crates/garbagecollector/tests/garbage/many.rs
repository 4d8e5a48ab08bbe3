//! As many objects as a large cluster has, if somebody has the time.

use std::time::{Duration, Instant};

use concord_meta::options::PropagationPolicy::Background;
use futures_util::{StreamExt as _, stream};

use crate::support::{Fixture, PATIENCE, owner};

/// How many objects there are besides their owners: 50000 shows that nothing grows faster than they do.
fn count() -> usize {
    let asked = std::env::var("CONCORD_GARBAGE_OBJECTS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(300)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_objects_those_go_whose_owner_does_and_no_others() {
    let (Fixture { server, .. }, count) = (&Fixture::new().await, count());
    let running = server.start();
    let owners = [server.map("goes", &[]).await, server.map("stays", &[]).await];
    let owners = owners.map(|map| owner("v1", "ConfigMap", &map));
    let make = async |at: usize| {
        // Of one, of the other, or of both.
        let owners = [&owners[..1], &owners[1..], &owners[..]][at % 3];
        server.map(&format!("{}-{at:06}", at % 3), owners).await
    };
    stream::iter(0..count).for_each_concurrent(32, async |at| drop(make(at).await)).await;
    server.delete("/configmaps/ns/goes", Background).await.expect("deleted");
    let longest = PATIENCE + Duration::from_millis(20) * u32::try_from(count).expect("not that many");
    let begin = Instant::now();
    let left = loop {
        let names = server.names("configmaps").await;
        if !names.iter().any(|name| name.starts_with("0-") || name == "goes") {
            break names;
        }
        assert!(begin.elapsed() < longest, "not in time: {} are left", names.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let stay = (0..count).filter(|at| at % 3 != 0).count() + 1;
    assert_eq!(left.len(), stay, "of {count}");
    running.stop().await;
}
