//! What becomes of those who ask together when something goes wrong.

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::proxy::tests::behave;

/// What cannot be shared is as it is for who asks alone, and each asks once more at most.
#[tokio::test]
async fn failures_are_as_those_of_who_asks_alone() {
    for (port, status, sent, errors) in [
        // Each looks for another server by itself.
        (1, 503, 3, 2),
        (2, 503, 3, 2),
        (3, 503, 3, 0),
        (5, 404, 3, 0),
        (6, 503, 3, 0),
        (7, 502, 3, 0),
        (8, 429, 3, 0),
        (10, 500, 3, 2),
    ] {
        let mut world = World::new(&[port]);
        let first = world.list().await;
        let one = world.arrived();
        let gathered = [world.list().await, world.list().await];
        one.answer("first");
        text(first).await;
        settle().await;
        let mut arrived = 0;
        while let Ok(Arrived { port, request, reply }) = world.arrivals.try_recv() {
            arrived += 1;
            reply.send(behave(port, request)).expect("somebody waits");
            settle().await;
        }
        assert_eq!(arrived, sent, "{port}");
        let alone = read(alone(port).handle(request(LIST, &[])).await).await;
        for one in gathered {
            let answer = read(one.await.expect("no panic")).await;
            assert_eq!((answer.0, &answer), (status, &alone), "{port}");
        }
        assert_eq!(world.errors("proxy_transport"), errors, "{port}");
        assert!(world.proxy.together.is_idle(), "{port}");
    }
}

/// Without anybody else.
fn alone(port: u16) -> PeerProxy {
    let transport = Fake::new(|port, request| Box::pin(async move { behave(port, request) }));
    world_with(&[port], Arc::new(transport))
}

#[tokio::test]
async fn another_peer_is_found_for_each_if_the_one_for_all_is_lost() {
    for _ in 0..20 {
        let mut world = World::new(&[1, 9]);
        let first = world.list().await;
        let gathered = [world.list().await, world.list().await];
        let serve = async {
            loop {
                let Some(Arrived { port, request, reply }) = world.arrivals.recv().await else { return };
                reply.send(behave(port, request)).ok();
            }
        };
        let all = async {
            for one in [first].into_iter().chain(gathered) {
                assert_eq!(text(one).await, "there");
            }
        };
        tokio::select! {
            () = serve => {}
            () = all => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_hangs_holds_up_nobody_for_long() {
    let mut world = World::new(&[9]);
    let hangs = world.list().await;
    let stuck = world.arrived();
    let begin = Instant::now();
    let waits = [world.list().await, world.list().await];
    let sent = world.arrivals.recv().await.expect("a request");
    assert_eq!((begin.elapsed().as_secs(), sent.port), (1, 9));
    assert!(!stuck.reply.is_closed());
    sent.answer("an answer");
    for one in waits {
        assert_eq!(text(one).await, "an answer");
    }
    // What was sent first may still be answered, and only to whom it was for.
    stuck.answer("late");
    assert_eq!(text(hangs).await, "late");
    assert!(world.proxy.together.is_idle());
}

#[tokio::test]
async fn a_panic_leaves_nobody_waiting() {
    let transport = Fake::new(|_, request: Request| {
        let is_for_all = request.headers()["audit-id"] == "2";
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert!(!is_for_all, "on purpose");
            behave(9, request)
        })
    });
    let proxy = Arc::new(world_with(&[9], Arc::new(transport)));
    let mut world = World { proxy, ..World::new(&[9]) };
    let all = [world.list().await, world.list().await, world.list().await];
    for (at, one) in all.into_iter().enumerate() {
        // The second asks again by itself, and panics as who asks alone does.
        assert_eq!(one.await.is_err(), at == 1, "{at}");
    }
    assert!(world.proxy.together.is_idle());
}

#[tokio::test]
async fn there_is_room_for_some_and_all_others_ask_alone() {
    let mut world = World::new(&[9]);
    let mut all = Vec::new();
    for at in 0..10 {
        let path = format!("{LIST}?limit={}", at + 1);
        for _ in 0..3 {
            all.push(world.ask(request(&path, &[])).await);
        }
    }
    // Each of ten lists is asked for by the first; eight times the others wait, and twice they do not.
    let arrived: Vec<_> = std::iter::from_fn(|| world.arrivals.try_recv().ok()).collect();
    assert_eq!(arrived.len(), 10 + 2 * 2);
    all.iter().for_each(JoinHandle::abort);
    settle().await;
    assert!(world.proxy.together.is_idle());
}
