use super::*;
use crate::body::CHUNK;

/// Writes lines, and counts them.
struct Lines {
    left: usize,
    written: Arc<AtomicUsize>,
    breaks_at: usize,
}

impl Source for Lines {
    fn fill(&mut self, enough: usize, out: &mut Vec<u8>) -> Result<bool, Status> {
        while self.left > 0 && out.len() < enough {
            if self.left == self.breaks_at {
                return Err(Status::internal_error("broken"));
            }
            out.extend_from_slice(format!("line {}\n", self.left).as_bytes());
            self.left -= 1;
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        Ok(self.left > 0)
    }
}

const LINES: usize = 50_000;

fn lines(written: &Arc<AtomicUsize>) -> Lines {
    Lines { left: LINES, written: Arc::clone(written), breaks_at: 0 }
}

fn key(revision: Revision) -> Key {
    let (namespace, query) = (String::new(), "limit=0".to_owned());
    Key { resource: 1, namespace, query, items: Items::Objects, gzip: false, revision }
}

fn send(lists: &SharedLists, key: Key, lines: Lines, size: usize) -> Body {
    lists.send((Some(key), Arc::new(())), lines, size, false).0
}

async fn piece(body: &mut Body) -> Bytes {
    let frame = body.frame().await.expect("a piece").expect("no error");
    frame.into_data().expect("data")
}

async fn rest(body: Body) -> Bytes {
    body.collect().await.expect("no error").to_bytes()
}

#[tokio::test]
async fn what_several_clients_get_is_made_once() {
    let (lists, written) = (SharedLists::default(), Arc::default());
    let mut first = send(&lists, key(7), lines(&written), LINES * 12);
    let begin = piece(&mut first).await;
    let second = lists.join(&key(7)).expect("it is being sent").0;
    let second = rest(second).await;
    assert_eq!(written.load(Ordering::Relaxed), LINES, "whoever is faster makes the rest");
    assert_eq!([begin, rest(first).await].concat(), second);
    assert_eq!(written.load(Ordering::Relaxed), LINES);
    assert!(second.starts_with(b"line 50000\n") && second.ends_with(b"line 1\n"));
    assert!(lists.join(&key(7)).is_none(), "nobody is being sent it any more");
    assert_eq!(lists.0.bytes.load(Ordering::Relaxed), 0);
    assert!(lists.0.lists.lock().is_empty());
}

#[tokio::test]
async fn lists_that_differ_in_anything_are_not_the_same() {
    let (lists, written) = (SharedLists::default(), Arc::default());
    let _first = send(&lists, key(7), lines(&written), LINES * 12);
    let differing = [
        Key { resource: 2, ..key(7) },
        Key { namespace: "a".to_owned(), ..key(7) },
        Key { query: String::new(), ..key(7) },
        Key { items: Items::Metadata(Default::default()), ..key(7) },
        Key { gzip: true, ..key(7) },
        key(8),
    ];
    for other in differing {
        assert!(lists.join(&other).is_none(), "{other:?}");
    }
    assert!(lists.join(&key(7)).is_some());
}

#[tokio::test]
async fn a_list_that_breaks_off_breaks_off_for_everybody() {
    let (lists, written) = (SharedLists::default(), Arc::default());
    let broken = Lines { breaks_at: LINES / 2, ..lines(&written) };
    let first = send(&lists, key(7), broken, LINES * 12);
    let second = lists.join(&key(7)).expect("it is being sent").0;
    assert!(first.collect().await.is_err());
    assert!(second.collect().await.is_err());
}

/// Whoever makes a piece does not let others have half of the list for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_whose_maker_panics_breaks_off_for_everybody() {
    struct Panics(usize);
    impl Source for Panics {
        fn fill(&mut self, enough: usize, out: &mut Vec<u8>) -> Result<bool, Status> {
            self.0 += 1;
            assert!(self.0 < 3, "the third piece is too much");
            out.resize(enough, b'x');
            Ok(true)
        }
    }
    let lists = SharedLists::default();
    let first = lists.send((Some(key(7)), Arc::new(())), Panics(0), LINES, false).0;
    let second = lists.join(&key(7)).expect("it is being sent").0;
    assert!(tokio::spawn(first.collect()).await.is_err(), "it panicked");
    assert!(second.collect().await.is_err(), "half a list is none");
}

/// Many at once, on several threads: all get all of it, and none waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn crowds_get_the_same() {
    for round in 0..20 {
        let (lists, written) = (SharedLists::default(), Arc::default());
        let first = send(&lists, key(round), lines(&written), LINES * 12);
        let joined = (0..16).map(|_| lists.join(&key(round)).expect("it is being sent").0);
        let crowd: Vec<Body> = joined.chain([first]).collect();
        let crowd: Vec<_> = crowd.into_iter().map(|body| tokio::spawn(rest(body))).collect();
        let mut seen = Vec::new();
        for body in crowd {
            let body = tokio::time::timeout(std::time::Duration::from_secs(30), body).await;
            seen.push(body.expect("in time").expect("no panic"));
        }
        assert_eq!(written.load(Ordering::Relaxed), LINES);
        assert!(seen.iter().all(|body| body.len() == seen[0].len() && body.ends_with(b"line 1\n")));
    }
}

#[tokio::test]
async fn what_is_too_much_is_made_for_each_alone() {
    let (lists, written) = (SharedLists::default(), Arc::default());
    let large = send(&lists, key(7), lines(&written), MOST_BYTES / 5 * 4 - CHUNK);
    let other = send(&lists, key(8), lines(&written), 2 * CHUNK);
    assert!(lists.join(&key(8)).is_none(), "there was no room");
    assert_eq!(rest(other).await.len(), rest(large).await.len());
    let _other = send(&lists, key(8), lines(&written), 2 * CHUNK);
    assert!(lists.join(&key(8)).is_some(), "now there is");
}

#[tokio::test]
async fn compressed_lists_are_shared_too() {
    let (lists, written) = (SharedLists::default(), Arc::default());
    let (first, compressed) = lists.send((Some(key(7)), Arc::new(())), lines(&written), LINES * 12, true);
    assert!(compressed);
    let (second, compressed) = lists.join(&key(7)).expect("it is being sent");
    assert!(compressed);
    assert_eq!(rest(first).await, rest(second).await);
    assert_eq!(written.load(Ordering::Relaxed), LINES);
}
