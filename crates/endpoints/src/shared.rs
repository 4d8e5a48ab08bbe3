//! Lists that several clients are sent at the same time, made once.
//!
//! Programs that watch begin with a list, and when a server comes back all of them do so at once: the same list, of the
//! same revision, for each of them. A list is shared for as long as anybody is being sent it. Whoever asks for it meanwhile
//! gets the pieces that there are, and makes those that are missing for all others, too. When the last one has it, it is
//! gone: nothing is kept for somebody who might come.

use std::{
    any::Any,
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker, ready},
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
    making: Mutex<Making>,
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

/// Who makes more of a list, and who waits for it.
struct Making {
    /// What makes more, one piece at a time; `None` while somebody has it, and after the last one: it lets go of the objects.
    source: Option<Pieces<Box<dyn Source>>>,
    waiting: Vec<Waker>,
}

/// A piece is being made.
struct Turn<'a> {
    list: &'a Shared,
    is_done: bool,
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
        // Buffers are a quarter larger than what is written into them.
        let size = size + size / 4;
        let Some(key) = key.filter(|_| self.0.reserve(size)) else {
            return (pulled(list, compressed), compressed);
        };
        let list: Box<dyn Source> = Box::new(list);
        let shared = Arc::new(Shared {
            key: key.clone(),
            _resource: resource,
            compressed,
            made: RwLock::default(),
            making: Mutex::new(Making { source: Some(Pieces::new(list, compressed)), waiting: Vec::new() }),
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

    /// What is known of a piece: itself, or that there is none.
    fn known(&self, at: usize) -> Option<Option<Result<Bytes, Status>>> {
        let made = self.made.read();
        match (made.pieces.get(at), &made.end) {
            (Some(piece), _) => Some(Some(Ok(piece.clone()))),
            (None, Some(end)) => Some(end.clone().err().map(Err)),
            (None, None) => None,
        }
    }

    /// A piece; `None` after the last. While somebody else makes it, the caller waits to be woken, and its thread does not.
    fn piece(&self, at: usize, waker: &Waker) -> Poll<Option<Result<Bytes, Status>>> {
        let Some(source) = self.source(at, waker) else {
            return self.known(at).map_or(Poll::Pending, Poll::Ready);
        };
        Turn { list: self, is_done: false }.make(source);
        self.known(at).map_or(Poll::Pending, Poll::Ready)
    }

    /// What makes a piece, if it has to be made and nobody does.
    fn source(&self, at: usize, waker: &Waker) -> Option<Pieces<Box<dyn Source>>> {
        if self.known(at).is_some() {
            return None;
        }
        let mut making = self.making.lock();
        // Whoever had the source before may just have made it.
        if self.known(at).is_some() {
            return None;
        }
        let source = making.source.take();
        if source.is_none() && !making.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            making.waiting.push(waker.clone());
        }
        source
    }
}

impl Turn<'_> {
    fn make(mut self, mut source: Pieces<Box<dyn Source>>) {
        let piece = source.next();
        let end = match &piece {
            Err(status) => Some(Err(status.clone())),
            Ok(_) => (!source.has_more()).then_some(Ok(())),
        };
        let source = end.is_none().then_some(source);
        {
            let mut made = self.list.made.write();
            made.pieces.extend(piece.ok().flatten());
            made.end = end;
        }
        self.is_done = true;
        self.list.making.lock().source = source;
    }
}

impl Drop for Turn<'_> {
    /// Tells those who wait, also if whoever made the piece panicked: then there is no source any more, and so no list.
    fn drop(&mut self) {
        if !self.is_done {
            self.list.made.write().end = Some(Err(Status::internal_error("the list broke off")));
        }
        let waiting = std::mem::take(&mut self.list.making.lock().waiting);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl hyper::body::Body for Reader {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = ready!(self.list.piece(self.at, context.waker()));
        self.at += 1;
        Poll::Ready(piece.map(|piece| piece.map(Frame::data).map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.list.known(self.at), Some(None))
    }
}

#[cfg(test)]
mod tests;
