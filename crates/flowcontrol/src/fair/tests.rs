use std::collections::{BTreeMap, BinaryHeap};

use super::*;

fn level(nominal: u32) -> Level {
    Level { nominal, reserved: nominal, most: 1000, queues: 64, hand_size: 6, queue_length: 50 }
}

/// Different for each flow and well mixed, as a hash is.
fn hash(flow: u64) -> u64 {
    (flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// A server in simulated time. A client asks again as soon as it is answered.
struct Simulation {
    scheduler: Scheduler<usize>,
    /// What ends next: time in microseconds, client.
    running: BinaryHeap<std::cmp::Reverse<(u64, usize)>>,
    clients: Vec<Client>,
    now: u64,
}

struct Client {
    level: LevelId,
    flow: u64,
    /// How long each request takes, in microseconds.
    takes: u64,
    asked: u64,
    place: Option<Place>,
    served: u64,
    rejected: u64,
    /// How long each request took with its wait.
    latencies: Vec<u64>,
}

impl Simulation {
    fn new(scheduler: Scheduler<usize>) -> Self {
        Self { scheduler, running: BinaryHeap::new(), clients: Vec::new(), now: 0 }
    }

    fn client(&mut self, level: LevelId, flow: u64, takes: u64) -> usize {
        let flow = hash(flow);
        let (asked, place, served, rejected, latencies) = (0, None, 0, 0, Vec::new());
        self.clients.push(Client { level, flow, takes, asked, place, served, rejected, latencies });
        self.clients.len() - 1
    }

    fn ask(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.asked = self.now;
        match self.scheduler.begin(client.level, client.flow, 1, || index) {
            Begun::Runs(place) => {
                client.place = Some(place);
                self.run(index);
            }
            Begun::Waits(place, _) => client.place = Some(place),
            Begun::Gone => unreachable!("nobody removes levels here"),
            Begun::Rejected(_) => {
                client.rejected += 1;
                // It comes back a second later.
                client.place = None;
                self.running.push(std::cmp::Reverse((self.now + 1_000_000, index)));
            }
        }
    }

    fn run(&mut self, index: usize) {
        self.running.push(std::cmp::Reverse((self.now + self.clients[index].takes, index)));
    }

    fn until(&mut self, end: u64) {
        for index in 0..self.clients.len() {
            self.ask(index);
        }
        while let Some(std::cmp::Reverse((time, index))) = self.running.pop().filter(|next| next.0.0 < end) {
            self.now = time;
            let client = &mut self.clients[index];
            if let Some(place) = client.place.take() {
                client.served += 1;
                client.latencies.push(self.now - client.asked);
                let took = Duration::from_micros(client.takes);
                for woken in self.scheduler.finish(place, took) {
                    self.run(woken);
                }
            }
            self.ask(index);
        }
    }

    fn worst(&self, index: usize) -> u64 {
        self.clients[index].latencies.iter().copied().max().unwrap_or(u64::MAX)
    }
}

#[test]
fn a_flood_leaves_others_served() {
    let mut scheduler = Scheduler::new(20);
    let id = scheduler.add(level(20));
    let mut simulation = Simulation::new(scheduler);
    for _ in 0..200 {
        simulation.client(id, 1, 1000);
    }
    let other = simulation.client(id, 2, 1000);
    simulation.until(2_000_000);
    // Alone a request takes 1000; with the flood it waits for one seat at most, and one is given back every 50.
    assert!(simulation.worst(other) <= 2_200, "{}", simulation.worst(other));
    assert!(simulation.clients[other].served > 800, "{}", simulation.clients[other].served);
    let flood: u64 = simulation.clients[..200].iter().map(|client| client.served).sum();
    assert!(flood > 38_000, "all seats are used: {flood} of 40000");
}

#[test]
fn flows_get_equal_parts_whatever_they_ask_for() {
    let mut scheduler = Scheduler::new(8);
    let id = scheduler.add(level(8));
    let mut simulation = Simulation::new(scheduler);
    // One asks for much with long requests, the others for as much as they can with short ones.
    for (flow, clients, takes) in [(1, 40, 20_000), (2, 40, 1000), (3, 40, 2000), (4, 40, 5000)] {
        for _ in 0..clients {
            simulation.client(id, flow, takes);
        }
    }
    simulation.until(20_000_000);
    let mut used = BTreeMap::<u64, u64>::new();
    for client in &simulation.clients {
        *used.entry(client.flow).or_default() += client.served * client.takes;
    }
    let (least, most) = (used.values().min().copied(), used.values().max().copied());
    let ratio = most.unwrap_or_default() as f64 / least.unwrap_or_default().max(1) as f64;
    assert!(ratio < 1.5, "{used:?}");
}

#[test]
fn a_level_is_never_kept_from_its_own_seats() {
    let mut scheduler = Scheduler::new(30);
    let (low, high) = (scheduler.add(Level { reserved: 0, ..level(20) }), scheduler.add(level(10)));
    let mut simulation = Simulation::new(scheduler);
    for flow in 0..300 {
        simulation.client(low, flow, 10_000);
    }
    let first = simulation.clients.len();
    for flow in 0..10 {
        simulation.client(high, flow, 500);
    }
    simulation.until(3_000_000);
    for client in first..first + 10 {
        assert_eq!(simulation.worst(client), 500, "nobody waits who has a seat");
    }
}

#[test]
fn what_nobody_uses_is_borrowed_but_not_what_is_reserved() {
    let mut scheduler = Scheduler::<()>::new(30);
    let busy = scheduler.add(level(10));
    let lender = scheduler.add(Level { reserved: 5, ..level(20) });
    let runs = |scheduler: &mut Scheduler<()>, id, flow| {
        matches!(scheduler.begin(id, hash(flow), 1, || ()), Begun::Runs(_))
    };
    let running = (0..40).filter(|flow| runs(&mut scheduler, busy, *flow)).count();
    assert_eq!(running, 25, "its own 10, and 15 of the 20");
    assert!((0..20).all(|flow| runs(&mut scheduler, lender, flow)), "the lender has all of its own at once");
    assert!(!runs(&mut scheduler, lender, 99), "and no more, for the others are taken");
    let mut alone = Scheduler::<()>::new(30);
    let id = alone.add(Level { most: 12, ..level(10) });
    assert_eq!((0..40).filter(|flow| runs(&mut alone, id, *flow)).count(), 12, "as much as it may borrow");
}

#[test]
fn a_level_could_have_what_others_neither_use_nor_keep() {
    let mut scheduler = Scheduler::<()>::new(30);
    let lender = scheduler.add(Level { reserved: 5, ..level(20) });
    let borrower = scheduler.add(Level { most: 22, ..level(10) });
    assert_eq!((scheduler.available(lender), scheduler.available(borrower)), (20, 22));
    for flow in 0..15 {
        assert!(matches!(scheduler.begin(lender, flow, 1, || ()), Begun::Runs(_)));
    }
    assert_eq!(scheduler.available(borrower), 15);
    assert_eq!(scheduler.available(LevelId(99)), 0, "it is gone");
}

#[test]
fn who_finds_no_place_is_sent_away() {
    let mut scheduler = Scheduler::<()>::new(2);
    let reject = scheduler.add(Level { queues: 0, most: 1, ..level(1) });
    assert!(matches!(scheduler.begin(reject, 1, 1, || ()), Begun::Runs(_)));
    assert_eq!(scheduler.begin(reject, 2, 1, || ()), Begun::Rejected(Rejected::ConcurrencyLimit));
    let mut scheduler = Scheduler::<()>::new(1);
    let queues = scheduler.add(Level { queues: 2, hand_size: 1, queue_length: 3, most: 1, ..level(1) });
    let begun: Vec<Begun> = (0..5).map(|_| scheduler.begin(queues, 7, 1, || ())).collect();
    assert!(matches!(begun[0], Begun::Runs(_)) && matches!(begun[3], Begun::Waits(_, 3)));
    assert_eq!(begun[4], Begun::Rejected(Rejected::QueueFull));
    assert!(
        matches!(scheduler.begin(queues, 8, 1, || ()), Begun::Waits(_, _)),
        "another flow has its own queue"
    );
    assert_eq!(scheduler.load(queues), (1, 4));
}

#[test]
fn who_goes_away_is_forgotten() {
    let mut scheduler = Scheduler::new(1);
    let id = scheduler.add(Level { most: 1, ..level(1) });
    let Begun::Runs(first) = scheduler.begin(id, 1, 1, || 'a') else { panic!("there is a seat") };
    let Begun::Waits(second, _) = scheduler.begin(id, 1, 1, || 'b') else { panic!("there is none") };
    let Begun::Waits(third, _) = scheduler.begin(id, 1, 1, || 'c') else { panic!("there is none") };
    assert!(scheduler.cancel(second));
    assert!(!scheduler.cancel(second), "once");
    assert_eq!(scheduler.finish(first, Duration::from_millis(1)), ['c']);
    assert!(!scheduler.cancel(third), "it runs");
    assert_eq!(scheduler.finish(third, Duration::from_millis(1)), []);
    assert_eq!(scheduler.load(id), (0, 0));
}

#[test]
fn nobody_is_lost_when_a_level_changes() {
    let mut scheduler = Scheduler::new(1);
    let id = scheduler.add(Level { most: 1, ..level(1) });
    let Begun::Runs(first) = scheduler.begin(id, 1, 1, || 0) else { panic!("there is a seat") };
    let places: Vec<Place> = (1..=20)
        .map(|number| match scheduler.begin(id, hash(number), 1, || number) {
            Begun::Waits(place, _) => place,
            other => panic!("{other:?}"),
        })
        .collect();
    let mut woken = scheduler.change(id, Level { queues: 8, ..level(1) });
    woken.extend(scheduler.change(id, Level { queues: 0, most: 1, ..level(1) }));
    woken.sort_unstable();
    assert_eq!(woken, (1..=20).collect::<Vec<_>>());
    for place in places.into_iter().chain([first]) {
        assert!(scheduler.finish(place, Duration::ZERO).is_empty());
    }
    assert_eq!(scheduler.load(id), (0, 0));
    let woken = scheduler.change(id, level(5));
    assert!(woken.is_empty());
}

#[test]
fn who_takes_more_seats_waits_for_as_many_and_is_not_overtaken() {
    let mut scheduler = Scheduler::new(4);
    let level = Level { nominal: 4, reserved: 4, most: 4, queues: 1, hand_size: 1, queue_length: 10 };
    let id = scheduler.add(level);
    let Begun::Runs(small) = scheduler.begin(id, 1, 1, || 'a') else { panic!("there are seats") };
    let Begun::Waits(_, _) = scheduler.begin(id, 1, 4, || 'b') else { panic!("there are only three left") };
    let Begun::Waits(_, _) = scheduler.begin(id, 1, 1, || 'c') else { panic!("it is the other one's turn") };
    assert_eq!(scheduler.finish(small, Duration::ZERO), ['b'], "and nobody else");
    assert_eq!(scheduler.load(id), (4, 1));
    // More than there are at all runs alone.
    let mut scheduler = Scheduler::new(2);
    let level = Level { nominal: 2, reserved: 2, most: 2, queues: 1, hand_size: 1, queue_length: 10 };
    let id = scheduler.add(level);
    let Begun::Runs(large) = scheduler.begin(id, 1, 9, || 'a') else { panic!("nobody else is there") };
    let Begun::Waits(_, _) = scheduler.begin(id, 2, 1, || 'b') else { panic!("there is no seat") };
    assert_eq!(scheduler.finish(large, Duration::ZERO), ['b']);
}

#[test]
fn a_level_that_is_removed_is_gone_when_its_last_request_is_done() {
    let mut scheduler = Scheduler::new(1);
    let id = scheduler.add(level(1));
    let Begun::Runs(first) = scheduler.begin(id, 1, 1, || 'a') else { panic!("there is a seat") };
    let Begun::Waits(second, _) = scheduler.begin(id, 1, 1, || 'b') else { panic!("there is none") };
    assert_eq!(scheduler.retire(id), ['b']);
    assert_eq!(scheduler.begin(id, 1, 1, || 'c'), Begun::Gone);
    scheduler.finish(first, Duration::ZERO);
    assert_eq!((scheduler.load(id), scheduler.levels()), ((1, 0), 1), "the other one runs");
    scheduler.finish(second, Duration::ZERO);
    assert_eq!(scheduler.levels(), 0);
    assert_ne!(scheduler.add(level(1)), id, "whoever still has the old one is not mistaken");
}
