//! One body for several clients, each of which reads it at its own pace.
//!
//! Whoever needs a piece that is not there asks the source for it, on behalf of all. Pieces are kept until the last reader has
//! them, and no longer; they are the same bytes for all. A body that breaks off does so for everybody, and when nobody reads
//! any more the source is dropped: whoever sends it learns that.

use std::{
    collections::VecDeque,
    error::Error,
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use concord_server::{Body, BoxError};
use http::HeaderMap;
use hyper::body::{Body as _, Frame};
use parking_lot::Mutex;

use crate::{bell::Bell, room::Reserved};

mod reader;

pub(crate) use reader::Reader;

/// How many bytes are kept for the slowest of the readers, and one piece more. The fastest then waits for it, as it would wait for
/// its own client. Most lists are shorter, so that nobody waits for anybody.
pub(crate) const WINDOW: usize = 4 << 20;

/// A body, and where its readers are.
pub(crate) struct Split {
    state: Mutex<State>,
    bell: Arc<Bell>,
    /// The bell's.
    waker: Waker,
}

struct State {
    /// What gives more; `None` before it is there, while somebody asks it, and after the end.
    source: Option<Body>,
    /// What was said of its length.
    length: Option<u64>,
    kept: VecDeque<Kept>,
    /// The number of the first piece that is kept.
    first: u64,
    /// What those have that are kept.
    bytes: usize,
    /// Which piece is the next of each reader; `None` if it is gone.
    places: Vec<Option<u64>>,
    /// How many are not gone.
    readers: usize,
    /// Somebody wanted to ask the source while somebody else did.
    is_missed: bool,
    /// Somebody waits for slower ones.
    is_held_up: bool,
    end: Option<Result<(), BrokenOff>>,
    reserved: Reserved,
}

struct Kept {
    piece: Piece,
    /// How many have yet to read it.
    left: usize,
}

#[derive(Clone)]
enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

/// What there is for a reader now.
enum Found {
    Piece(Piece),
    End(Option<BrokenOff>),
    /// Somebody else asks the source.
    Nothing,
    /// It is too far ahead of others.
    TooFar,
    /// Nobody asks it: the reader has to.
    Source(Body),
}

/// Somebody asks the source.
struct Turn<'a> {
    split: &'a Split,
    is_done: bool,
}

/// Why a body ends early; the same for all.
#[derive(Debug, Clone)]
struct BrokenOff(Arc<dyn Error + Send + Sync>);

impl fmt::Display for BrokenOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Error for BrokenOff {
    /// What it was: an error of HTTP/2 has a code that is passed on.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

impl Split {
    /// A body that is yet to come.
    pub(crate) fn new(reserved: Reserved) -> Arc<Self> {
        let bell = Arc::new(Bell::default());
        let state = State {
            source: None,
            length: None,
            kept: VecDeque::new(),
            first: 0,
            bytes: 0,
            places: Vec::new(),
            readers: 0,
            is_missed: false,
            is_held_up: false,
            end: None,
            reserved,
        };
        Arc::new(Self { state: Mutex::new(state), waker: Waker::from(bell.clone()), bell })
    }

    /// One more who reads it, from its beginning: only as long as it is yet to come.
    pub(crate) fn reader(self: Arc<Self>) -> Reader {
        let place = {
            let mut state = self.state.lock();
            debug_assert!(state.length.is_none() && state.source.is_none(), "nobody can have what is gone");
            state.places.push(Some(0));
            state.readers += 1;
            state.places.len() - 1
        };
        Reader::new(self, place)
    }

    /// The body is there. If nobody wants it any more it is dropped.
    pub(crate) fn begin(&self, source: Body) {
        let mut state = self.state.lock();
        state.length = source.size_hint().exact();
        let most = state.length.and_then(|length| usize::try_from(length).ok()).unwrap_or(WINDOW);
        state.reserved.shrink(most);
        if state.readers > 0 {
            state.source = Some(source);
        }
    }

    fn find(&self, place: usize, waker: &Waker) -> Found {
        let mut state = self.state.lock();
        let Some(at) = state.places[place] else {
            let slow = io::Error::new(io::ErrorKind::TimedOut, "others waited too long for this client");
            return Found::End(Some(BrokenOff(Arc::new(slow))));
        };
        if let Some(piece) = state.take(place, at) {
            let has_room = state.has_room_again();
            drop(state);
            if has_room {
                self.bell.ring();
            }
            return Found::Piece(piece);
        }
        if let Some(end) = &state.end {
            return Found::End(end.clone().err());
        }
        // Before anybody looks: whatever comes from now on is heard.
        self.bell.wait(place, waker);
        if state.bytes >= WINDOW {
            state.is_held_up = true;
            return Found::TooFar;
        }
        match state.source.take() {
            Some(source) => Found::Source(source),
            None => {
                state.is_missed = true;
                Found::Nothing
            }
        }
    }

    /// Asks the source for more, as the reader at this place.
    fn ask(&self, place: usize, mut source: Body) -> Poll<()> {
        let turn = Turn { split: self, is_done: false };
        let polled = Pin::new(&mut source).poll_frame(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            // It need not be told what it knows.
            self.bell.leave(place);
        }
        turn.done(source, polled)
    }

    /// Goes on without those who are last.
    fn leave_behind(&self) {
        {
            let mut state = self.state.lock();
            let first = state.first;
            for place in 0..state.places.len() {
                if state.bytes >= WINDOW && state.places[place] == Some(first) {
                    state.leave(place);
                }
            }
        }
        self.bell.ring();
    }
}

impl State {
    /// The next piece of a reader, if it is there.
    fn take(&mut self, place: usize, at: u64) -> Option<Piece> {
        let kept = self.kept.get_mut(usize::try_from(at - self.first).ok()?)?;
        kept.left -= 1;
        let piece = kept.piece.clone();
        self.places[place] = Some(at + 1);
        self.tidy();
        Some(piece)
    }

    /// Lets go of what everybody has.
    fn tidy(&mut self) {
        while let Some(kept) = self.kept.pop_front_if(|kept| kept.left == 0) {
            self.bytes -= kept.piece.len();
            self.first += 1;
        }
    }

    fn keep(&mut self, frame: Frame<Bytes>) {
        let piece = match frame.into_data() {
            Ok(data) if data.is_empty() => return,
            Ok(data) => Piece::Data(data),
            Err(other) => match other.into_trailers() {
                Ok(trailers) => Piece::Trailers(trailers),
                Err(_) => return,
            },
        };
        self.bytes += piece.len();
        self.kept.push_back(Kept { piece, left: self.readers });
    }

    /// A reader is gone.
    fn leave(&mut self, place: usize) {
        let Some(at) = self.places[place].take() else { return };
        self.readers -= 1;
        let read = usize::try_from(at - self.first).unwrap_or(usize::MAX);
        self.kept.iter_mut().skip(read).for_each(|kept| kept.left -= 1);
        self.tidy();
    }

    /// Whether those who were too far ahead may go on. Not for each piece: they would be woken as often.
    fn has_room_again(&mut self) -> bool {
        let has_room = self.is_held_up && self.bytes <= WINDOW / 2;
        self.is_held_up &= !has_room;
        has_room
    }

    fn end(&mut self, end: Result<(), BrokenOff>) {
        self.end = Some(end);
        self.reserved.shrink(self.bytes);
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Data(data) => data.len(),
            Self::Trailers(_) => 0,
        }
    }
}

impl Turn<'_> {
    fn done(mut self, source: Body, polled: Poll<Option<Result<Frame<Bytes>, BoxError>>>) -> Poll<()> {
        self.is_done = true;
        let is_ready = polled.is_ready();
        let (is_heard, gone) = {
            let mut state = self.split.state.lock();
            match polled {
                Poll::Pending => {}
                Poll::Ready(None) => state.end(Ok(())),
                Poll::Ready(Some(Err(error))) => state.end(Err(BrokenOff(error.into()))),
                Poll::Ready(Some(Ok(frame))) => {
                    state.keep(frame);
                    if source.is_end_stream() {
                        state.end(Ok(()));
                    }
                }
            }
            let gone = if state.end.is_none() { state.source.replace(source) } else { Some(source) };
            // Whoever could not ask meanwhile may have been woken in vain.
            (std::mem::take(&mut state.is_missed) || is_ready, gone)
        };
        // Not while others wait for the lock: it may end a request.
        drop(gone);
        if is_heard {
            self.split.bell.ring();
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Turn<'_> {
    /// If asking it panicked the source is gone, and nobody is to wait for it.
    fn drop(&mut self) {
        if !self.is_done {
            self.split.state.lock().end(Err(BrokenOff(Arc::new(io::Error::other("the body broke off")))));
            self.split.bell.ring();
        }
    }
}

#[cfg(test)]
mod tests;
