use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    task::Waker,
    time::Duration,
};

use futures_util::FutureExt as _;
use http::HeaderValue;
use http_body_util::BodyExt as _;
use hyper::body::SizeHint;
use tokio::{sync::mpsc, time::Instant};

use super::*;
use crate::room::Room;

type Said = Result<Frame<Bytes>, BoxError>;

/// A body that says what it is told to say, and tells whether it is still there.
struct Told {
    words: mpsc::UnboundedReceiver<Said>,
    length: Option<u64>,
    asked: Arc<AtomicUsize>,
    _alive: Arc<()>,
}

impl hyper::body::Body for Told {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Said>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.words.poll_recv(context)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

struct World {
    say: mpsc::UnboundedSender<Said>,
    split: std::sync::Weak<Split>,
    readers: Vec<Reader>,
    room: Arc<Room>,
    asked: Arc<AtomicUsize>,
    alive: std::sync::Weak<()>,
}

fn world(count: usize, length: Option<u64>) -> World {
    let room = Room::new(2 * WINDOW);
    let split = Split::new(room.reserve(WINDOW).expect("room"));
    let readers = (0..count).map(|_| split.clone().reader()).collect();
    let (say, words) = mpsc::unbounded_channel();
    let (asked, alive) = (Arc::<AtomicUsize>::default(), Arc::new(()));
    let weak = Arc::downgrade(&alive);
    split.begin(Told { words, length, asked: asked.clone(), _alive: alive }.boxed_unsync());
    World { say, split: Arc::downgrade(&split), readers, room, asked, alive: weak }
}

impl World {
    fn say(&self, bytes: impl Into<Bytes>) {
        self.say.send(Ok(Frame::data(bytes.into()))).expect("somebody listens");
    }

    /// How many bytes are kept.
    fn kept(&self) -> usize {
        self.split.upgrade().expect("somebody reads").state.lock().bytes
    }
}

/// The next piece, if there is one now.
fn next(reader: &mut Reader) -> Option<String> {
    let frame = reader.frame().now_or_never()?.expect("more").expect("a frame");
    Some(String::from_utf8(frame.into_data().expect("data").into()).expect("text"))
}

#[tokio::test]
async fn everybody_gets_everything_at_its_own_pace() {
    let mut world = world(3, Some(6));
    assert_eq!(next(&mut world.readers[0]), None);
    for word in ["a", "bc", "def"] {
        world.say(word);
        assert_eq!(next(&mut world.readers[0]).as_deref(), Some(word));
    }
    assert_eq!((world.kept(), world.room.taken()), (6, 6), "for the others");
    let asked = world.asked.load(Ordering::Relaxed);
    assert_eq!(next(&mut world.readers[1]).as_deref(), Some("a"));
    assert_eq!(world.readers[1].size_hint().exact(), Some(5));
    assert_eq!(world.kept(), 6);
    assert_eq!(next(&mut world.readers[2]).as_deref(), Some("a"));
    assert_eq!(world.kept(), 5, "nobody needs the first piece any more");
    assert_eq!(world.asked.load(Ordering::Relaxed), asked, "what is there is not asked for");
    let World { say, mut readers, alive, room, .. } = world;
    drop(say);
    assert!(readers[0].frame().await.is_none());
    assert!(readers[0].is_end_stream() && !readers[1].is_end_stream());
    assert!(alive.upgrade().is_none(), "it has ended");
    for reader in &mut readers[1..] {
        let rest = reader.collect().await.expect("the rest").to_bytes();
        assert_eq!((&*rest, reader.is_end_stream()), (&b"bcdef"[..], true));
    }
    drop(readers);
    assert_eq!(room.taken(), 0);
}

#[tokio::test]
async fn what_breaks_off_does_so_for_everybody_with_its_reason() {
    #[derive(Debug, thiserror::Error)]
    #[error("a reason")]
    struct Reason;
    let mut world = world(2, None);
    world.say("a");
    world.say.send(Err(Box::new(Reason))).expect("sent");
    for reader in &mut world.readers {
        assert_eq!(next(reader).as_deref(), Some("a"));
        let error = reader.frame().await.expect("an end").expect_err("broken off");
        assert!(error.source().is_some_and(|source| source.is::<Reason>()), "{error:?}");
        assert_eq!((error.to_string().as_str(), reader.is_end_stream()), ("a reason", false));
    }
}

#[tokio::test]
async fn trailers_are_for_everybody() {
    let world = world(2, None);
    let trailers = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("x"))]);
    world.say("a");
    world.say.send(Ok(Frame::trailers(trailers.clone()))).expect("sent");
    let World { say, readers, .. } = world;
    drop(say);
    for reader in readers {
        let all = reader.collect().await.expect("whole");
        assert_eq!(all.trailers(), Some(&trailers));
        assert_eq!(all.to_bytes(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn the_fastest_waits_for_the_slowest_and_goes_on_without_it() {
    let mut world = world(3, None);
    let piece = Bytes::from(vec![b'x'; WINDOW / 8]);
    for _ in 0..32 {
        world.say(piece.clone());
    }
    let reads = |reader: &mut Reader| std::iter::from_fn(|| next(reader)).count();
    assert_eq!(reads(&mut world.readers[0]), 8);
    assert_eq!((world.kept(), world.asked.load(Ordering::Relaxed)), (WINDOW, 8), "no more is taken in");
    assert_eq!(reads(&mut world.readers[1]), 8, "as far as the first");
    for _ in 0..2 {
        next(&mut world.readers[2]);
    }
    assert_eq!(reads(&mut world.readers[0]), 2, "as much as the last has read");
    // A client that does not read is gone: so much more may be taken in as it had not read.
    let last = world.readers.pop().expect("a reader");
    let mut first = world.readers.remove(0);
    let waits = tokio::spawn(async move { (first.frame().await.is_some(), first) });
    tokio::task::yield_now().await;
    drop(last);
    let (goes_on, mut first) = waits.await.expect("no panic");
    assert!(goes_on);
    assert_eq!(reads(&mut first), 5, "as far ahead of the second");
    // One that does not go is left behind.
    let begin = Instant::now();
    assert!(first.frame().await.is_some());
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_secs(19) && waited <= Duration::from_secs(21), "{waited:?}");
    let error = world.readers[0].frame().await.expect("an end").expect_err("it took too long");
    assert!(error.to_string().contains("waited too long"), "{error}");
    assert!(!world.readers[0].is_end_stream());
}

#[tokio::test]
async fn when_nobody_reads_any_more_whoever_sends_learns_it() {
    let mut world = world(2, None);
    world.say("a");
    next(&mut world.readers[0]);
    assert_eq!(next(&mut world.readers[0]), None);
    world.readers.pop();
    assert!(world.alive.upgrade().is_some());
    world.readers.clear();
    assert!(world.alive.upgrade().is_none() && world.say.is_closed());
    assert_eq!(world.room.taken(), 0);
    // Also if it comes when all are gone.
    let split = Split::new(world.room.reserve(1).expect("room"));
    drop(split.clone().reader());
    let (say, words) = mpsc::unbounded_channel();
    split.begin(Told { words, length: None, asked: Arc::default(), _alive: Arc::new(()) }.boxed_unsync());
    assert!(say.is_closed());
}

#[tokio::test]
async fn the_only_one_who_is_left_gets_the_body_as_it_is() {
    let mut world = world(2, Some(1));
    let one = world.readers.pop().expect("a reader");
    drop(world.readers.pop());
    let mut body = one.into_body();
    assert_eq!(world.room.taken(), 0, "nothing is kept for anybody");
    world.say.send(Ok(Frame::data(Bytes::from_static(b"a")))).expect("sent");
    assert_eq!(body.size_hint().exact(), Some(1));
    assert_eq!(body.frame().await.expect("more").expect("data").into_data().expect("data"), "a");
    drop(body);
    assert!(world.alive.upgrade().is_none());
}

/// Whoever asked the source last may never ask again: the others are woken as well.
#[tokio::test]
async fn nobody_waits_for_somebody_who_does_not_ask() {
    struct Flag(AtomicBool);
    impl std::task::Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let mut world = world(3, None);
    let flags: Vec<Arc<Flag>> = (0..3).map(|_| Arc::new(Flag(AtomicBool::new(false)))).collect();
    for (reader, flag) in world.readers.iter_mut().zip(&flags) {
        let waker = Waker::from(flag.clone());
        assert!(Pin::new(reader).poll_frame(&mut Context::from_waker(&waker)).is_pending());
    }
    world.readers.remove(2);
    world.say("a");
    let woken: Vec<bool> = flags.iter().map(|flag| flag.0.load(Ordering::Relaxed)).collect();
    assert_eq!(woken, [true, true, false]);
    assert_eq!(next(&mut world.readers[0]).as_deref(), Some("a"));
}

/// A body that panics when it is asked.
struct Panics;

impl hyper::body::Body for Panics {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Said>> {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_panic_leaves_nobody_waiting() {
    let split = Split::new(Room::new(1).reserve(1).expect("room"));
    let (mut one, mut other) = (split.clone().reader(), split.clone().reader());
    split.begin(Panics.boxed_unsync());
    assert!(tokio::spawn(async move { one.frame().await.is_some() }).await.is_err());
    assert!(other.frame().await.expect("an end").is_err());
}

/// Readers on several threads, some of which go in the middle, all get all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_on_several_threads_get_all_of_it() {
    for round in 0..50 {
        let World { say, readers, room, .. } = world(16, None);
        let readers: Vec<_> = readers
            .into_iter()
            .enumerate()
            .map(|(at, mut reader)| {
                tokio::spawn(async move {
                    let mut read = 0;
                    while let Some(frame) = reader.frame().await {
                        let data = frame.expect("whole").into_data().expect("data");
                        assert!(data.iter().all(|byte| usize::from(*byte) == read % 251));
                        read += 1;
                        if at % 4 == 3 && read == 50 + at {
                            return (at, read);
                        }
                        if (read + at) % 7 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    (at, read)
                })
            })
            .collect();
        for piece in 0..200_usize {
            let byte = u8::try_from(piece % 251).expect("small");
            say.send(Ok(Frame::data(Bytes::from(vec![byte; 1 + round])))).expect("somebody listens");
            if piece % 5 == 0 {
                tokio::task::yield_now().await;
            }
        }
        drop(say);
        for reader in readers {
            let (at, read) = tokio::time::timeout(Duration::from_secs(20), reader)
                .await
                .expect("nobody is left waiting")
                .expect("no panic");
            assert_eq!(read, if at % 4 == 3 { 50 + at } else { 200 });
        }
        assert_eq!(room.taken(), 0);
    }
}
