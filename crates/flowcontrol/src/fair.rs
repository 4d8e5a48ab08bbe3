//! Who runs and who waits: no clock, no threads, no network.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::shard::hand;

/// How a priority level is limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// The seats that are its own.
    pub nominal: u32,
    /// How many of them nobody else gets, even if they are free.
    pub reserved: u32,
    /// The seats it can have at most, with those it borrows.
    pub most: u32,
    /// Its queues; none if who finds no seat is sent away.
    pub queues: usize,
    /// How many of the queues a flow may use.
    pub hand_size: usize,
    /// How many requests a queue holds.
    pub queue_length: usize,
}

/// A priority level of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(pub usize);

/// Where a request runs or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    level: LevelId,
    queue: usize,
    number: u64,
    /// How many seats it takes.
    seats: u32,
}

/// What becomes of a request that has just arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// It runs.
    Runs(Place),
    /// It waits, in a queue of so many, until it is among those that [`Scheduler::finish`] lets run.
    Waits(Place, usize),
    /// It is sent away.
    Rejected(Rejected),
    /// The level was removed meanwhile: the request belongs to another one.
    Gone,
}

/// Why a request is sent away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// There is no seat, and the level has no queues.
    ConcurrencyLimit,
    /// All queues of its flow are full.
    QueueFull,
    /// It has waited for too long.
    TimeOut,
}

impl Rejected {
    /// Upstream's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}

/// All priority levels, who runs in them and who waits. `W` wakes a request that waits.
pub struct Scheduler<W> {
    total: u32,
    /// Numbers are not given twice: whoever has an old one is told so.
    levels: BTreeMap<LevelId, State<W>>,
    next_level: usize,
    next: u64,
}

struct State<W> {
    level: Level,
    /// Whether it is gone once the last of those who run in it is done.
    retired: bool,
    /// The seats that are taken.
    running: u32,
    waiting: usize,
    queues: Vec<Queue<W>>,
    /// What the queue that was served last had used: who comes anew begins there, and has no credit for not having asked.
    now_serving: f64,
    /// How long requests take lately, in seconds: those that run are counted with it until they are done.
    expected: f64,
}

struct Queue<W> {
    waiting: VecDeque<Waiter<W>>,
    /// The seats that its requests have.
    running: u32,
    /// What its requests have used, in seconds of seats.
    used: f64,
}

struct Waiter<W> {
    number: u64,
    seats: u32,
    waker: W,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), running: 0, used: 0.0 }
    }
}

impl<W> State<W> {
    fn new(level: Level) -> Self {
        // Where nobody waits there is one queue, which is only counted in.
        let queues = (0..level.queues.max(1)).map(|_| Queue::default()).collect();
        Self { level, retired: false, running: 0, waiting: 0, queues, now_serving: 0.0, expected: 0.001 }
    }

    /// The queue of a flow's hand with the least in it.
    fn choose(&self, flow: u64) -> usize {
        let load = |queue: &usize| self.queues[*queue].waiting.len() + self.queues[*queue].running as usize;
        hand(flow, self.queues.len(), self.level.hand_size.max(1)).min_by_key(load).unwrap_or_default()
    }

    fn start(&mut self, queue: usize, seats: u32) {
        self.running = self.running.saturating_add(seats);
        let queue = &mut self.queues[queue];
        if queue.running == 0 {
            queue.used = queue.used.max(self.now_serving);
        }
        queue.running = queue.running.saturating_add(seats);
    }

    /// Of the queues in which somebody waits, the one that has used least.
    fn next(&self) -> Option<usize> {
        let used = |queue: &Queue<W>| queue.used + f64::from(queue.running) * self.expected;
        let waiting = self.queues.iter().enumerate().filter(|(_, queue)| !queue.waiting.is_empty());
        let least = waiting.min_by(|(_, one), (_, other)| used(one).total_cmp(&used(other)));
        least.map(|(index, _)| index)
    }
}

impl<W> State<W> {
    /// The queue whose turn it is, and how many seats its first request takes.
    fn first(&self) -> Option<(usize, u32)> {
        if self.waiting == 0 {
            return None;
        }
        let index = self.next()?;
        Some((index, self.queues[index].waiting.front()?.seats))
    }
}

impl<W> Scheduler<W> {
    /// A server that runs `total` requests at once.
    #[must_use]
    pub fn new(total: u32) -> Self {
        Self { total, levels: BTreeMap::new(), next_level: 0, next: 0 }
    }

    /// Adds a level.
    pub fn add(&mut self, level: Level) -> LevelId {
        let id = LevelId(self.next_level);
        self.next_level += 1;
        self.levels.insert(id, State::new(level));
        id
    }

    /// Changes a level. Who waits goes on waiting where there still is a queue for it; the others run, for they have
    /// waited long enough. Those must be woken.
    pub fn change(&mut self, id: LevelId, level: Level) -> Vec<W> {
        let Some(state) = self.levels.get_mut(&id) else { return Vec::new() };
        let queues = level.queues.max(1);
        let mut freed = Vec::new();
        for (index, queue) in state.queues.iter_mut().enumerate() {
            if index >= queues || level.queues == 0 {
                state.waiting -= queue.waiting.len();
                let seats = queue.waiting.iter().fold(0, |sum: u32, one| sum.saturating_add(one.seats));
                state.running = state.running.saturating_add(seats);
                queue.running = queue.running.saturating_add(seats);
                freed.extend(queue.waiting.drain(..).map(|one| one.waker));
            }
        }
        // Queues in which somebody runs are kept, so that they can be counted when they are done.
        let in_use = state.queues.iter().rposition(|queue| queue.running > 0).map_or(0, |last| last + 1);
        state.queues.resize_with(queues.max(in_use), Queue::default);
        state.level = level;
        freed.extend(self.dispatch());
        freed
    }

    /// Removes a level. Who waits there runs, for there is nothing left to wait for, and must be woken; who comes later is
    /// told that it is gone.
    pub fn retire(&mut self, id: LevelId) -> Vec<W> {
        let nothing = Level { nominal: 0, reserved: 0, most: 0, queues: 0, hand_size: 1, queue_length: 0 };
        let freed = self.change(id, nothing);
        if let Some(state) = self.levels.get_mut(&id) {
            state.retired = true;
        }
        self.forget(id);
        freed
    }

    /// Drops a level that was removed and in which nobody runs any more.
    fn forget(&mut self, id: LevelId) {
        if self.levels.get(&id).is_some_and(|state| state.retired && state.running == 0) {
            self.levels.remove(&id);
        }
    }

    /// Whether there are so many seats: of the level's own, or such that nobody else needs. Who wants more than there can
    /// be runs when nobody else does, so that it runs at all.
    fn has_room(&self, id: LevelId, seats: u32) -> bool {
        let Some(State { level, running, .. }) = self.levels.get(&id) else { return false };
        let wanted = running.saturating_add(seats);
        if wanted <= level.nominal || *running == 0 && level.nominal > 0 {
            return true;
        }
        wanted <= self.available(id)
    }

    /// How many seats a level could have now: its own, and those that others neither use nor keep for themselves.
    #[must_use]
    pub fn available(&self, id: LevelId) -> u32 {
        let Some(State { level, .. }) = self.levels.get(&id) else { return 0 };
        let others = self.levels.iter().filter(|(at, _)| **at != id);
        let taken = others.map(|(_, state)| state.running.max(state.level.reserved));
        let left = taken.fold(self.total, u32::saturating_sub);
        level.most.min(left).max(level.nominal)
    }

    /// A request of this flow arrives, which takes so many seats.
    pub fn begin(&mut self, id: LevelId, flow: u64, seats: u32, waker: impl FnOnce() -> W) -> Begun {
        let seats = seats.max(1);
        let room = self.has_room(id, seats);
        let Some(state) = self.levels.get_mut(&id).filter(|state| !state.retired) else { return Begun::Gone };
        let number = self.next;
        let place = |queue| Place { level: id, queue, number, seats };
        if room && state.waiting == 0 {
            let queue = if state.level.queues > 1 { state.choose(flow) } else { 0 };
            state.start(queue, seats);
            return Begun::Runs(place(queue));
        }
        if state.level.queues == 0 {
            return Begun::Rejected(Rejected::ConcurrencyLimit);
        }
        let queue = state.choose(flow);
        if state.queues[queue].waiting.len() >= state.level.queue_length {
            return Begun::Rejected(Rejected::QueueFull);
        }
        self.next += 1;
        state.queues[queue].waiting.push_back(Waiter { number, seats, waker: waker() });
        state.waiting += 1;
        Begun::Waits(place(queue), state.queues[queue].waiting.len())
    }

    /// A request is done that ran for `time`. Those that can run now must be woken.
    pub fn finish(&mut self, place: Place, time: Duration) -> Vec<W> {
        // A level stays for as long as somebody runs in it.
        let Some(state) = self.levels.get_mut(&place.level) else { return Vec::new() };
        let time = time.as_secs_f64();
        state.running -= place.seats;
        state.expected += (time - state.expected) / 16.0;
        let queue = &mut state.queues[place.queue];
        queue.running -= place.seats;
        queue.used += time * f64::from(place.seats);
        self.forget(place.level);
        self.dispatch()
    }

    /// Somebody no longer waits. False if it runs already, and then has to finish.
    pub fn cancel(&mut self, place: Place) -> bool {
        let Some(state) = self.levels.get_mut(&place.level) else { return false };
        let queue = &mut state.queues[place.queue].waiting;
        let found = queue.iter().position(|one| one.number == place.number);
        if let Some(index) = found {
            queue.remove(index);
            state.waiting -= 1;
        }
        found.is_some()
    }

    /// Gives seats to those who wait, as long as there are any: to each level of its own first.
    fn dispatch(&mut self) -> Vec<W> {
        let mut woken = Vec::new();
        let waited_in = self.levels.iter().filter(|(_, state)| state.waiting > 0);
        for id in waited_in.map(|(id, _)| *id).collect::<Vec<_>>() {
            while let Some((index, seats)) = self.levels.get(&id).and_then(State::first) {
                // Nobody overtakes who is next and wants more seats than there are: it would never run.
                if !self.has_room(id, seats) {
                    break;
                }
                let Some(state) = self.levels.get_mut(&id) else { break };
                let Some(one) = state.queues[index].waiting.pop_front() else { break };
                state.waiting -= 1;
                state.start(index, seats);
                state.now_serving = state.now_serving.max(state.queues[index].used);
                woken.push(one.waker);
            }
        }
        woken
    }

    /// How many levels there are, with those in which somebody runs although they were removed.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// How many run and how many wait in a level.
    #[must_use]
    pub fn load(&self, id: LevelId) -> (u32, usize) {
        self.levels.get(&id).map_or((0, 0), |state| (state.running, state.waiting))
    }
}

#[cfg(test)]
mod tests;
