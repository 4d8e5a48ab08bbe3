//! Lists that several clients are sent at the same time, made once.
//!
//! Programs that watch begin with a list, and when a server comes back all of them do so at once: the same list, of the
//! same revision, for each of them. A list is shared for as long as anybody is being sent it. Whoever asks for it meanwhile
//! gets the pieces that there are, and makes those that are missing for all others, too. When the last one has it, it is
//! gone: nothing is kept for somebody who might come. So a list that a client takes at once, as a small or well compressed
//! one, is seldom shared.

use std::{
    any::Any,
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use concord_meta::Status;
use concord_registry::Resource;
use concord_server::{Body, BoxError};
use concord_store::Revision;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use parking_lot::{Mutex, RwLock};

use crate::{
    body::{Pieces, Source, pulled},
    list_body::Items,
};

/// How many bytes all shared lists together may have. A client that does not read keeps one alive until it is let go, and
/// many of them, each of another revision, shall not take the memory of the server: what is more is made for each
/// client alone, a piece at a time.
const MOST_BYTES: usize = 32 << 20;

/// What makes two lists the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Where the resource is in memory. A list that is shared keeps it there.
    resource: usize,
    namespace: String,
    /// Everything else that a client can ask for, as it was written.
    query: String,
    items: Items,
    /// Whether the client can read gzip.
    gzip: bool,
    revision: Revision,
}

impl Key {
    pub(crate) fn new(
        resource: &Arc<Resource>,
        (namespace, query): (&str, &str),
        (items, gzip): (Items, bool),
        revision: Revision,
    ) -> Self {
        let resource = Arc::as_ptr(resource).addr();
        Self { resource, namespace: namespace.to_owned(), query: query.to_owned(), items, gzip, revision }
    }
}

/// The lists that are being sent.
#[derive(Default)]
pub(crate) struct SharedLists(Arc<Sending>);

#[derive(Default)]
struct Sending {
    lists: Mutex<HashMap<Key, Weak<Shared>>>,
    /// What all of them take.
    bytes: AtomicUsize,
}

/// A list that is being sent to somebody.
struct Shared {
    key: Key,
    /// The resource, so that the address in the key stays its own.
    _resource: Arc<dyn Any + Send + Sync>,
    compressed: bool,
    /// What was made so far.
    made: RwLock<Made>,
    /// What makes more, one piece at a time. It lets go of the objects with the last one.
    pieces: Mutex<Option<Pieces<Box<dyn Source>>>>,
    /// What was reserved of [`MOST_BYTES`].
    size: usize,
    sending: Arc<Sending>,
}

#[derive(Default)]
struct Made {
    pieces: Vec<Bytes>,
    /// How it ended, if it did.
    end: Option<Result<(), Status>>,
}

/// What one client gets.
struct Reader {
    list: Arc<Shared>,
    /// The next piece.
    at: usize,
}

/// A body, and whether it is compressed.
pub(crate) type ListBody = (Body, bool);

impl SharedLists {
    /// The list of this key, if somebody is being sent it.
    pub(crate) fn join(&self, key: &Key) -> Option<ListBody> {
        let list = self.0.lists.lock().get(key)?.upgrade()?;
        Some(list.body())
    }

    /// Sends a list of about so many bytes, and shares it with whoever asks for the same meanwhile, if it has a key and there
    /// is room. `resource` is what the key was made of.
    pub(crate) fn send(
        &self,
        (key, resource): (Option<Key>, Arc<dyn Any + Send + Sync>),
        list: impl Source,
        size: usize,
        compressed: bool,
    ) -> ListBody {
        let Some(key) = key.filter(|_| self.0.reserve(size)) else {
            return (pulled(list, compressed), compressed);
        };
        let list: Box<dyn Source> = Box::new(list);
        let shared = Arc::new(Shared {
            key: key.clone(),
            _resource: resource,
            compressed,
            made: RwLock::default(),
            pieces: Mutex::new(Some(Pieces::new(list, compressed))),
            size,
            sending: Arc::clone(&self.0),
        });
        self.0.lists.lock().insert(key, Arc::downgrade(&shared));
        shared.body()
    }
}

impl Sending {
    fn reserve(&self, size: usize) -> bool {
        let add = |bytes: usize| bytes.checked_add(size).filter(|bytes| *bytes <= MOST_BYTES);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.sending.bytes.fetch_sub(self.size, Ordering::Relaxed);
        let mut lists = self.sending.lists.lock();
        // Another one may have taken the place already.
        if lists.get(&self.key).is_some_and(|list| list.strong_count() == 0) {
            lists.remove(&self.key);
        }
    }
}

impl Shared {
    fn body(self: Arc<Self>) -> ListBody {
        let compressed = self.compressed;
        (Reader { list: self, at: 0 }.boxed_unsync(), compressed)
    }

    /// A piece; `None` after the last.
    fn piece(&self, at: usize) -> Option<Result<Bytes, Status>> {
        loop {
            let known = self.known(at);
            if known.is_some() {
                return known.flatten();
            }
            self.go_on(at);
        }
    }

    /// What is known of a piece: itself, or that there is none.
    fn known(&self, at: usize) -> Option<Option<Result<Bytes, Status>>> {
        let made = self.made.read();
        match (made.pieces.get(at), &made.end) {
            (Some(piece), _) => Some(Some(Ok(piece.clone()))),
            (None, Some(end)) => Some(end.clone().err().map(Err)),
            (None, None) => None,
        }
    }

    /// Makes a piece, unless somebody else has made it in between.
    fn go_on(&self, at: usize) {
        let mut pieces = self.pieces.lock();
        let Some(source) = pieces.as_mut().filter(|_| self.known(at).is_none()) else { return };
        let piece = source.next();
        let end = match &piece {
            Err(status) => Some(Err(status.clone())),
            Ok(_) => (!source.has_more()).then_some(Ok(())),
        };
        if end.is_some() {
            *pieces = None;
        }
        let mut made = self.made.write();
        made.pieces.extend(piece.ok().flatten());
        made.end = end;
    }
}

impl hyper::body::Body for Reader {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = self.list.piece(self.at);
        self.at += 1;
        Poll::Ready(piece.map(|piece| piece.map(Frame::data).map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.list.known(self.at), Some(None))
    }
}

#[cfg(test)]
mod tests {
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

    #[tokio::test]
    async fn what_is_too_much_is_made_for_each_alone() {
        let (lists, written) = (SharedLists::default(), Arc::default());
        let large = send(&lists, key(7), lines(&written), MOST_BYTES - CHUNK);
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
}
