//! Documents on their way to clients.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use concord_server::{Body, BoxError};
use flate2::{Decompress, FlushDecompress, Status};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

/// How much is sent at a time. A client that does not read holds no more than this and what all share.
const STEP: usize = 64 * 1024;

/// A stream of gzip in pieces, which other documents may have, too.
#[derive(Debug)]
pub(crate) struct Sendable {
    /// The first is the beginning of gzip, before what deflate says.
    pieces: Vec<Bytes>,
    gzip: u64,
    plain: u64,
}

impl Sendable {
    /// These pieces, of which the first is what gzip begins with, and `plain` bytes if they are not compressed.
    pub(crate) fn new(pieces: Vec<Bytes>, plain: u64) -> Self {
        let gzip = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces, gzip, plain }
    }

    /// The body of an answer, compressed or not.
    pub(crate) fn body(self: &Arc<Self>, gzip: bool) -> Body {
        let of = Arc::clone(self);
        match gzip {
            true => Sending { left: self.gzip, pieces: Gzip { of, next: 0 } }.boxed_unsync(),
            false => {
                let inflate = Decompress::new(false);
                Sending { left: self.plain, pieces: Plain { of, next: 1, read: 0, inflate } }.boxed_unsync()
            }
        }
    }
}

/// Gives a document piece by piece.
trait Steps: Send + Unpin + 'static {
    /// The next step; empty after the last.
    fn step(&mut self) -> io::Result<Bytes>;
}

/// A document as it is kept.
struct Gzip {
    of: Arc<Sendable>,
    next: usize,
}

impl Steps for Gzip {
    /// Long pieces are sent as they are, short ones together.
    fn step(&mut self) -> io::Result<Bytes> {
        let mut step = BytesMut::new();
        while let Some(piece) = self.of.pieces.get(self.next) {
            if step.is_empty() && piece.len() >= STEP {
                self.next += 1;
                return Ok(piece.clone());
            }
            if step.len() + piece.len() > STEP {
                break;
            }
            step.extend_from_slice(piece);
            self.next += 1;
        }
        Ok(step.freeze())
    }
}

/// A document as it was before it was compressed.
struct Plain {
    of: Arc<Sendable>,
    next: usize,
    /// How much of the next piece has been read.
    read: usize,
    inflate: Decompress,
}

impl Steps for Plain {
    fn step(&mut self) -> io::Result<Bytes> {
        let mut step = Vec::with_capacity(STEP);
        while let Some(piece) = self.of.pieces.get(self.next)
            && step.len() < step.capacity()
        {
            let before = self.inflate.total_in();
            let status =
                self.inflate.decompress_vec(&piece[self.read..], &mut step, FlushDecompress::None)?;
            if status == Status::StreamEnd {
                break;
            }
            self.read += (self.inflate.total_in() - before) as usize;
            // Something may be left in it that there was no room for.
            if self.read == piece.len() && step.len() < step.capacity() {
                (self.next, self.read) = (self.next + 1, 0);
            }
        }
        Ok(step.into())
    }
}

/// A body whose length is known.
struct Sending<S> {
    left: u64,
    pieces: S,
}

impl<S: Steps> Sending<S> {
    /// The next step. Nothing is sent that is shorter or longer than was said.
    fn next(&mut self) -> io::Result<Bytes> {
        let step = self.pieces.step()?;
        let left = self.left.checked_sub(step.len() as u64).filter(|_| !step.is_empty());
        self.left = left.ok_or_else(|| io::Error::other("a document is not as long as it was"))?;
        Ok(step)
    }
}

impl<S: Steps> hyper::body::Body for Sending<S> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let step = (self.left > 0).then(|| self.next().map(Frame::data).map_err(BoxError::from));
        Poll::Ready(step)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
