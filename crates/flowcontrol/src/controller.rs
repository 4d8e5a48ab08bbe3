use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use concord_server::{
    Admission, Attributes, Deadline, FlowControl, FlowMetrics, LevelSeats, Metrics, Seat, note_wait,
};
use http::HeaderValue;
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use crate::{
    AnswerSizes, Begun, Distinguisher, FlowSchema, Level, LevelId, Place, PriorityLevel, Queuing, Rejected,
    Scheduler, estimate,
};

/// What a server can do at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many requests run at once.
    pub seats: u32,
    /// How long one waits at most: a quarter of the time it has, as upstream.
    pub wait: Duration,
}

/// Decides which requests run, by the FlowSchemas and PriorityLevelConfigurations that there are.
pub struct FlowController {
    limits: Limits,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    flows: ArcSwap<Vec<Arc<Flow>>>,
    /// How large answers are; without it every request takes one seat.
    sizes: OnceLock<Arc<dyn AnswerSizes>>,
}

struct Shared {
    /// The levels by name. Locked while they are changed; before the scheduler, if both are.
    known: Mutex<BTreeMap<String, LevelId>>,
    scheduler: Mutex<Scheduler<oneshot::Sender<()>>>,
}

impl Shared {
    /// Says how many seats the levels could have now.
    fn tell(&self, metrics: &Metrics) {
        let known = self.known.lock();
        let scheduler = self.scheduler.lock();
        for (name, id) in known.iter() {
            metrics.set_current_seats(name, scheduler.available(*id));
        }
    }

    /// Lets those run whom the scheduler woke. Who has gone meanwhile finishes by itself, see [`Waiting`].
    fn wake(woken: Vec<oneshot::Sender<()>>) {
        for waker in woken {
            // A receiver that is gone gives the seat back when it is dropped.
            waker.send(()).ok();
        }
    }
}

/// A FlowSchema and its level.
struct Flow {
    schema: FlowSchema,
    /// `None` for one whose requests never wait.
    level: Option<LevelId>,
    /// How many seats one request can take.
    most_seats: u32,
    schema_uid: HeaderValue,
    level_uid: HeaderValue,
    metrics: FlowMetrics,
}

impl Flow {
    /// What tells this request's flow from others of the level.
    fn hash(&self, request: &Attributes<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.schema.name.hash(&mut hasher);
        match self.schema.distinguisher {
            Distinguisher::None => {}
            Distinguisher::ByUser => request.user.name.hash(&mut hasher),
            Distinguisher::ByNamespace => request.request.namespace.hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// The objects that are always there, for as long as they are not stored: what matches nothing else is limited, and
/// nothing matches what is exempt.
fn mandatory() -> [PriorityLevel; 2] {
    let exempt = PriorityLevel { name: "exempt".to_owned(), exempt: true, ..PriorityLevel::default() };
    let catch_all = PriorityLevel { name: "catch-all".to_owned(), shares: 5, ..PriorityLevel::default() };
    [exempt, catch_all]
}

fn catch_all() -> FlowSchema {
    let name = || "catch-all".to_owned();
    FlowSchema { name: name(), level: name(), precedence: 10_000, ..FlowSchema::default() }
}

impl FlowController {
    /// Until it is told of objects, all requests share all seats.
    #[must_use]
    pub fn new(limits: Limits, metrics: Arc<Metrics>) -> Self {
        let scheduler = Mutex::new(Scheduler::new(limits.seats));
        let shared = Arc::new(Shared { known: Mutex::default(), scheduler });
        let told = shared.clone();
        metrics.before_scrape(move |metrics| told.tell(metrics));
        let controller = Self { limits, metrics, shared, flows: ArcSwap::default(), sizes: OnceLock::new() };
        controller.configure([], []);
        controller
    }

    /// Says how large answers are, which is known only after the server is put together.
    pub fn connect(&self, sizes: Arc<dyn AnswerSizes>) {
        // The first is the only one there is.
        drop(self.sizes.set(sizes));
    }

    /// Decides by these objects from now on. Requests that wait keep their places.
    pub fn configure(
        &self,
        levels: impl IntoIterator<Item = PriorityLevel>,
        schemas: impl IntoIterator<Item = FlowSchema>,
    ) {
        let mandatory = mandatory().into_iter().chain(levels);
        let levels: BTreeMap<String, PriorityLevel> =
            mandatory.map(|level| (level.name.clone(), level)).collect();
        let shares = levels.values().map(|level| u64::from(level.shares)).sum();
        let ids = self.change_levels(&levels, shares);
        let mut schemas: Vec<FlowSchema> =
            schemas.into_iter().filter(|schema| levels.contains_key(&schema.level)).collect();
        schemas.sort_by(|one, other| (one.precedence, &one.name).cmp(&(other.precedence, &other.name)));
        // What matches no other is one of these, whoever it is of.
        let last = schemas.iter().position(|schema| schema.name == "catch-all");
        let last = last.map_or_else(catch_all, |index| schemas.remove(index));
        schemas.push(last);
        let uid = |text: &str| HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""));
        let flow = |schema: FlowSchema| Flow {
            level: ids.get(&schema.level).copied(),
            most_seats: levels.get(&schema.level).map_or(1, |level| {
                estimate::most_seats(limits(level, shares, self.limits.seats).nominal, level.queuing)
            }),
            schema_uid: uid(&schema.uid),
            level_uid: uid(levels.get(&schema.level).map_or("", |level| &level.uid)),
            metrics: self.metrics.flow(&schema.level, &schema.name),
            schema,
        };
        self.flows.store(Arc::new(schemas.into_iter().map(flow).map(Arc::new).collect()));
        self.retire_others(&ids);
    }

    /// Tells the scheduler of the levels; gives those that are limited.
    fn change_levels(
        &self,
        levels: &BTreeMap<String, PriorityLevel>,
        shares: u64,
    ) -> BTreeMap<String, LevelId> {
        let mut known = self.shared.known.lock();
        let mut woken = Vec::new();
        let mut ids = BTreeMap::new();
        let mut scheduler = self.shared.scheduler.lock();
        for (name, level) in levels.iter().filter(|(_, level)| !level.exempt) {
            let limits = limits(level, shares, self.limits.seats);
            let Level { nominal, reserved: lower, most: upper, .. } = limits;
            self.metrics.set_seats(name, LevelSeats { nominal, lower, upper });
            let id = match known.get(name) {
                Some(id) => {
                    woken.extend(scheduler.change(*id, limits));
                    *id
                }
                None => scheduler.add(limits),
            };
            known.insert(name.clone(), id);
            ids.insert(name.clone(), id);
        }
        drop(scheduler);
        Shared::wake(woken);
        ids
    }

    /// Removes all levels but these, once no flow leads to them. Who still has an old flow in hand is told to look again.
    fn retire_others(&self, ids: &BTreeMap<String, LevelId>) {
        let mut known = self.shared.known.lock();
        let mut scheduler = self.shared.scheduler.lock();
        let gone = known.extract_if(.., |name, _| !ids.contains_key(name)).map(|(name, id)| {
            self.metrics.forget_level(&name);
            id
        });
        let gone: Vec<LevelId> = gone.collect();
        let woken = gone.into_iter().flat_map(|id| scheduler.retire(id)).collect();
        drop((scheduler, known));
        Shared::wake(woken);
    }

    /// A seat in a level.
    async fn take(
        &self,
        level: LevelId,
        flow: &Arc<Flow>,
        request: &Attributes<'_>,
        deadline: Deadline,
    ) -> Taken {
        let (mut turn, is_watch) = (None, request.request.verb == "watch");
        let sizes = self.sizes.get().map(|sizes| &**sizes);
        let seats = estimate::seats(request.request, flow.most_seats, sizes);
        flow.metrics.estimated(seats);
        let begun = self.shared.scheduler.lock().begin(level, flow.hash(request), seats, || {
            let (waker, receiver) = oneshot::channel();
            turn = Some(receiver);
            waker
        });
        let (place, turn) = match (begun, turn) {
            (Begun::Runs(place), _) => {
                return Taken::Seat(self.seat(place, seats, flow, is_watch, Duration::ZERO));
            }
            (Begun::Gone, _) => return Taken::Gone,
            (Begun::Rejected(reason), _) => {
                flow.metrics.rejected(reason.as_str(), Duration::ZERO);
                return Taken::None;
            }
            (Begun::Waits(place, length), turn) => {
                flow.metrics.waits(seats, length);
                (place, turn.expect("who waits has a waker"))
            }
        };
        let waiting = Waiting { shared: self.shared.clone(), place: Some(place), seats, flow: flow.clone() };
        let begun = Instant::now();
        let until = deadline.within(self.limits.wait).moment().unwrap_or(begun + self.limits.wait);
        let turned = timeout_at(until, turn).await;
        note_wait(begun.elapsed());
        match turned {
            Ok(Ok(())) => Taken::Seat(self.seat(waiting.run(), seats, flow, is_watch, begun.elapsed())),
            _ => {
                drop(waiting);
                flow.metrics.rejected(Rejected::TimeOut.as_str(), begun.elapsed());
                Taken::None
            }
        }
    }

    fn seat(&self, place: Place, seats: u32, flow: &Arc<Flow>, is_watch: bool, waited: Duration) -> Seat {
        flow.metrics.started(waited, seats);
        let (shared, flow) = (self.shared.clone(), flow.clone());
        Seat::new(Running { shared, place, seats, begun: Instant::now(), is_watch, flow })
    }
}

/// What becomes of who wants a seat.
enum Taken {
    /// It has one.
    Seat(Seat),
    /// It is sent away.
    None,
    /// The level is no longer there.
    Gone,
}

/// How a level is limited, of a server with so many seats.
fn limits(level: &PriorityLevel, shares: u64, seats: u32) -> Level {
    let part = (u64::from(seats) * u64::from(level.shares)).div_ceil(shares.max(1));
    let nominal = u32::try_from(part).unwrap_or(u32::MAX);
    // Rounded as upstream rounds.
    let percent =
        |percent: u32| ((u64::from(nominal) * u64::from(percent) + 50) / 100).try_into().unwrap_or(u32::MAX);
    let queuing = level.queuing.unwrap_or(Queuing { queues: 0, hand_size: 1, queue_length_limit: 0 });
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Level {
        nominal,
        reserved: nominal.saturating_sub(percent(level.lendable_percent)),
        most: level
            .borrowing_limit_percent
            .map_or(seats, |limit| nominal.saturating_add(percent(limit)))
            .max(1),
        queues: size(queuing.queues),
        hand_size: size(queuing.hand_size),
        queue_length: size(queuing.queue_length_limit),
    }
}

/// A place in a queue. Dropped, it is given up; if its turn had come, the seat is.
struct Waiting {
    shared: Arc<Shared>,
    place: Option<Place>,
    seats: u32,
    flow: Arc<Flow>,
}

impl Waiting {
    /// Its turn has come.
    fn run(mut self) -> Place {
        self.place.take().expect("only this and drop take it")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.flow.metrics.waited(self.seats);
        if let Some(place) = self.place.take() {
            let mut scheduler = self.shared.scheduler.lock();
            let woken = match scheduler.cancel(place) {
                true => Vec::new(),
                false => scheduler.finish(place, Duration::ZERO),
            };
            drop(scheduler);
            Shared::wake(woken);
        }
    }
}

/// A request that runs.
struct Running {
    shared: Arc<Shared>,
    place: Place,
    seats: u32,
    begun: Instant,
    is_watch: bool,
    flow: Arc<Flow>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let time = self.begun.elapsed();
        self.flow.metrics.finished(self.seats, self.is_watch, time);
        let woken = self.shared.scheduler.lock().finish(self.place, time);
        Shared::wake(woken);
    }
}

#[async_trait]
impl FlowControl for FlowController {
    async fn admit(&self, request: &Attributes<'_>, deadline: Deadline) -> Admission {
        loop {
            let flows = self.flows.load_full();
            let matching = flows.iter().find(|flow| flow.schema.matches(request));
            let flow = matching.or(flows.last()).expect("there is always one that catches all");
            let seat = match flow.level {
                Some(level) => match self.take(level, flow, request, deadline).await {
                    Taken::Seat(seat) => Some(seat),
                    Taken::None => None,
                    // A level goes only after the flows that led to it: the next look finds others.
                    Taken::Gone => continue,
                },
                None => {
                    flow.metrics.exempt();
                    Some(Seat::unlimited())
                }
            };
            let (flow_schema, priority_level) = (flow.schema_uid.clone(), flow.level_uid.clone());
            return Admission { flow_schema, priority_level, seat };
        }
    }
}

#[cfg(test)]
mod tests;
