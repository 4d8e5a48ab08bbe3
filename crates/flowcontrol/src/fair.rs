//! Who runs and who waits: no clock, no threads, no network.

use std::{collections::VecDeque, time::Duration};

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
}

/// What becomes of a request that has just arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// It runs.
    Runs(Place),
    /// It waits, until it is among those that [`Scheduler::finish`] lets run.
    Waits(Place),
    /// It is sent away.
    Rejected(Rejected),
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
    levels: Vec<State<W>>,
    next: u64,
}

struct State<W> {
    level: Level,
    running: u32,
    waiting: usize,
    queues: Vec<Queue<W>>,
    /// What the queue that was served last had used: who comes anew begins there, and has no credit for not having asked.
    now_serving: f64,
    /// How long requests take lately, in seconds: those that run are counted with it until they are done.
    expected: f64,
}

struct Queue<W> {
    waiting: VecDeque<(u64, W)>,
    running: u32,
    /// What its requests have used, in seconds of seats.
    used: f64,
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
        Self { level, running: 0, waiting: 0, queues, now_serving: 0.0, expected: 0.001 }
    }

    /// The queue of a flow's hand with the least in it.
    fn choose(&self, flow: u64) -> usize {
        let load = |queue: &usize| self.queues[*queue].waiting.len() + self.queues[*queue].running as usize;
        hand(flow, self.queues.len(), self.level.hand_size.max(1)).min_by_key(load).unwrap_or_default()
    }

    fn start(&mut self, queue: usize) {
        self.running += 1;
        let queue = &mut self.queues[queue];
        if queue.running == 0 {
            queue.used = queue.used.max(self.now_serving);
        }
        queue.running += 1;
    }

    /// Of the queues in which somebody waits, the one that has used least.
    fn next(&self) -> Option<usize> {
        let used = |queue: &Queue<W>| queue.used + f64::from(queue.running) * self.expected;
        let waiting = self.queues.iter().enumerate().filter(|(_, queue)| !queue.waiting.is_empty());
        let least = waiting.min_by(|(_, one), (_, other)| used(one).total_cmp(&used(other)));
        least.map(|(index, _)| index)
    }
}

impl<W> Scheduler<W> {
    /// A server that runs `total` requests at once.
    #[must_use]
    pub fn new(total: u32) -> Self {
        Self { total, levels: Vec::new(), next: 0 }
    }

    /// Adds a level.
    pub fn add(&mut self, level: Level) -> LevelId {
        self.levels.push(State::new(level));
        LevelId(self.levels.len() - 1)
    }

    /// Changes a level. Who waits goes on waiting where there still is a queue for it; the others run, for they have
    /// waited long enough. Those must be woken.
    pub fn change(&mut self, id: LevelId, level: Level) -> Vec<W> {
        let state = &mut self.levels[id.0];
        let queues = level.queues.max(1);
        let mut freed = Vec::new();
        for (index, queue) in state.queues.iter_mut().enumerate() {
            if index >= queues || level.queues == 0 {
                state.waiting -= queue.waiting.len();
                state.running += u32::try_from(queue.waiting.len()).unwrap_or(u32::MAX);
                queue.running += u32::try_from(queue.waiting.len()).unwrap_or(u32::MAX);
                freed.extend(queue.waiting.drain(..).map(|(_, waker)| waker));
            }
        }
        // Queues in which somebody runs are kept, so that they can be counted when they are done.
        let in_use = state.queues.iter().rposition(|queue| queue.running > 0).map_or(0, |last| last + 1);
        state.queues.resize_with(queues.max(in_use), Queue::default);
        state.level = level;
        freed.extend(self.dispatch());
        freed
    }

    /// Whether there is a seat: one of the level's own, or one that nobody else needs.
    fn has_room(&self, id: LevelId) -> bool {
        let State { level, running, .. } = &self.levels[id.0];
        if *running < level.nominal {
            return true;
        }
        let taken: u32 = self.levels.iter().map(|state| state.running.max(state.level.reserved)).sum();
        *running < level.most && taken < self.total
    }

    /// A request of this flow arrives.
    pub fn begin(&mut self, id: LevelId, flow: u64, waker: impl FnOnce() -> W) -> Begun {
        let room = self.has_room(id);
        let state = &mut self.levels[id.0];
        let number = self.next;
        let place = |queue| Place { level: id, queue, number };
        if room && state.waiting == 0 {
            let queue = if state.level.queues > 1 { state.choose(flow) } else { 0 };
            state.start(queue);
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
        state.queues[queue].waiting.push_back((number, waker()));
        state.waiting += 1;
        Begun::Waits(place(queue))
    }

    /// A request is done that ran for `time`. Those that can run now must be woken.
    pub fn finish(&mut self, place: Place, time: Duration) -> Vec<W> {
        let state = &mut self.levels[place.level.0];
        let time = time.as_secs_f64();
        state.running -= 1;
        state.expected += (time - state.expected) / 16.0;
        let queue = &mut state.queues[place.queue];
        queue.running -= 1;
        queue.used += time;
        self.dispatch()
    }

    /// Somebody no longer waits. False if it runs already, and then has to finish.
    pub fn cancel(&mut self, place: Place) -> bool {
        let state = &mut self.levels[place.level.0];
        let queue = &mut state.queues[place.queue].waiting;
        let found = queue.iter().position(|(number, _)| *number == place.number);
        if let Some(index) = found {
            queue.remove(index);
            state.waiting -= 1;
        }
        found.is_some()
    }

    /// Gives seats to those who wait, as long as there are any: to each level of its own first.
    fn dispatch(&mut self) -> Vec<W> {
        let mut woken = Vec::new();
        for id in (0..self.levels.len()).map(LevelId) {
            while self.levels[id.0].waiting > 0 && self.has_room(id) {
                let state = &mut self.levels[id.0];
                let Some(index) = state.next() else { break };
                let Some((_, waker)) = state.queues[index].waiting.pop_front() else { break };
                state.waiting -= 1;
                state.start(index);
                state.now_serving = state.now_serving.max(state.queues[index].used);
                woken.push(waker);
            }
        }
        woken
    }

    /// How many run and how many wait in a level.
    #[must_use]
    pub fn load(&self, id: LevelId) -> (u32, usize) {
        let state = &self.levels[id.0];
        (state.running, state.waiting)
    }
}

#[cfg(test)]
mod tests;
