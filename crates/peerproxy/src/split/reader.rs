//! What one client reads of a body that several are sent.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use concord_server::{Body, BoxError};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::{Found, Piece, Split};

/// How long a reader waits for slower ones in all; from then on it goes on without them, and they are told that the body broke
/// off. The server gives every client a minute (`--request-timeout`) to receive an answer and cuts it off then, whoever it
/// waits for: somebody who does not read would otherwise take the answers of the others with it.
const HELD_UP: Duration = Duration::from_secs(20);

/// What one client reads.
pub(crate) struct Reader {
    split: Arc<Split>,
    place: usize,
    /// How many bytes it has.
    read: u64,
    held: HeldUp,
}

/// How long a reader has waited for others.
#[derive(Default)]
struct HeldUp {
    before: Duration,
    now: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Reader {
    pub(super) fn new(split: Arc<Split>, place: usize) -> Self {
        Self { split, place, read: 0, held: HeldUp::default() }
    }

    /// What a client is sent. Who is the only one left gets the body as it is.
    pub(crate) fn into_body(self) -> Body {
        let whole = {
            let mut state = self.split.state.lock();
            if state.readers == 1 && state.first == 0 && state.kept.is_empty() {
                state.source.take()
            } else {
                None
            }
        };
        whole.unwrap_or_else(|| self.boxed_unsync())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.split.bell.leave(self.place);
        let (has_room, gone) = {
            let mut state = self.split.state.lock();
            state.leave(self.place);
            (state.has_room_again(), if state.readers == 0 { state.source.take() } else { None })
        };
        drop(gone);
        if has_room {
            self.split.bell.ring();
        }
    }
}

impl HeldUp {
    /// Whether a reader has waited long enough.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let rest = HELD_UP.saturating_sub(self.before);
        let (_, over) = self.now.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(rest))));
        ready!(over.as_mut().poll(context));
        self.end();
        Poll::Ready(())
    }

    fn end(&mut self) {
        if let Some((since, _)) = self.now.take() {
            self.before += since.elapsed();
        }
    }
}

impl hyper::body::Body for Reader {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let found = self.split.find(self.place, context.waker());
            if !matches!(found, Found::TooFar) {
                self.held.end();
            }
            match found {
                Found::Piece(piece) => {
                    self.read += piece.len() as u64;
                    return Poll::Ready(Some(Ok(match piece {
                        Piece::Data(data) => Frame::data(data),
                        Piece::Trailers(trailers) => Frame::trailers(trailers),
                    })));
                }
                Found::End(end) => return Poll::Ready(end.map(|error| Err(error.into()))),
                Found::Nothing => return Poll::Pending,
                Found::TooFar => {
                    ready!(self.held.poll(context));
                    self.split.leave_behind();
                }
                Found::Source(source) => ready!(self.split.ask(self.place, source)),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = self.split.state.lock();
        let is_last = |at: u64| at == state.first + state.kept.len() as u64;
        matches!(state.end, Some(Ok(()))) && state.places[self.place].is_some_and(is_last)
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.split.state.lock().length;
        length.map_or_else(SizeHint::default, |length| SizeHint::with_exact(length.saturating_sub(self.read)))
    }
}
