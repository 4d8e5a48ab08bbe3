//! What one turn of a connection has to send, sent together.
//!
//! HTTP/2 flushes after every frame, and TLS then makes records and a system call of it: for a large answer hundreds
//! of calls, each with a record of 16 KiB and one of the nine bytes that were too many. A [`Cork`] keeps what is
//! written while a connection has its turn, and sends it when there is enough for a call or when the turn is over:
//! nothing waits for a clock, or for more to come.
//!
//! TLS copies what it is given into its records. The C library makes large copies with `rep movsb`, which on current
//! AMD processors is several times slower than a loop when the target is not aligned, and behind the header of a
//! record it never is: that copy would cost more than the encryption. Copies of small pieces are made by the loop.

use std::{
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is sent at once: what a system call and TLS take in one go.
const ENOUGH: usize = 64 * 1024;
/// What a buffer keeps when it is empty. Connections that rest are many, and need little.
const KEPT: usize = 4 * 1024;
/// What glibc never copies with `rep movsb`, whatever the processor.
const PIECE: usize = 2048;
/// How many pieces are written at once.
const PIECES: usize = ENOUGH / PIECE + 2;

/// The end of a stream where it is sent from, in turns.
pub(crate) struct Cork<S>(Arc<Mutex<Line<S>>>);

/// A stream whose writes wait until the turn is over. Outside of turns it is a stream like any other.
pub(crate) struct Corked<S>(Arc<Mutex<Line<S>>>);

/// Both ends share it, but only the task that has the connection uses it: nobody ever waits for the lock.
struct Line<S> {
    stream: S,
    /// What was written and not sent; of that, what comes before `sent` was.
    buffer: Vec<u8>,
    sent: usize,
    /// Whether the connection has its turn.
    turn: bool,
}

/// A stream and the cork on it.
pub(crate) fn cork<S>(stream: S) -> (Corked<S>, Cork<S>) {
    let line = Arc::new(Mutex::new(Line { stream, buffer: Vec::new(), sent: 0, turn: false }));
    (Corked(line.clone()), Cork(line))
}

impl<S: AsyncWrite + Unpin> Cork<S> {
    /// Gives `connection`, which writes to the stream, a turn, then sends what it wrote.
    ///
    /// # Errors
    ///
    /// If that could not be sent.
    pub(crate) fn poll_turn<T>(
        &self,
        context: &mut Context<'_>,
        connection: Pin<&mut impl Future<Output = T>>,
    ) -> Poll<io::Result<T>> {
        self.0.lock().turn = true;
        let polled = connection.poll(context);
        let mut line = self.0.lock();
        line.turn = false;
        // One that has ended is waited for by `flush`.
        match (polled, line.poll_flush(context)) {
            (Poll::Ready(ended), _) => Poll::Ready(Ok(ended)),
            (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            (Poll::Pending, _) => Poll::Pending,
        }
    }

    /// Sends what is left.
    ///
    /// # Errors
    ///
    /// If it could not be sent.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        poll_fn(|context| self.0.lock().poll_flush(context)).await
    }
}

impl<S: AsyncWrite + Unpin> Line<S> {
    /// Sends the buffer to its end.
    fn poll_empty(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.buffer.len() {
            let mut slots = [IoSlice::new(&[]); PIECES];
            let count = pieces(std::iter::once(&self.buffer[self.sent..]), &mut slots);
            let written = Pin::new(&mut self.stream).poll_write_vectored(context, &slots[..count]);
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        self.buffer.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_empty(context))?;
        if self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Takes what it has room for, after it has made some.
    fn poll_write<'a>(
        &mut self,
        context: &mut Context<'_>,
        buffers: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.len() >= ENOUGH {
            ready!(self.poll_empty(context))?;
        }
        let length = buffers.clone().map(<[u8]>::len).sum::<usize>();
        if self.buffer.is_empty() && (length >= ENOUGH || !self.turn) {
            let mut slots = [IoSlice::new(&[]); PIECES];
            let count = pieces(buffers, &mut slots);
            return Pin::new(&mut self.stream).poll_write_vectored(context, &slots[..count]);
        }
        let mut room = (ENOUGH - self.buffer.len()).min(length);
        self.buffer.reserve(room);
        let taken = room;
        for piece in buffers.flat_map(|buffer| buffer.chunks(PIECE)) {
            let part = &piece[..piece.len().min(room)];
            self.buffer.extend_from_slice(part);
            room -= part.len();
        }
        Poll::Ready(Ok(taken))
    }
}

/// As much of the buffers as fits into one write, in order.
fn pieces<'a>(buffers: impl Iterator<Item = &'a [u8]>, out: &mut [IoSlice<'a>; PIECES]) -> usize {
    let pieces = buffers.flat_map(|buffer| buffer.chunks(PIECE));
    out.iter_mut().zip(pieces).map(|(slot, piece)| *slot = IoSlice::new(piece)).count()
}

impl<S: AsyncRead + Unpin> AsyncRead for Corked<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        pin!(&mut self.0.lock().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Corked<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write(context, std::iter::once(buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write(context, buffers.iter().map(|buffer| &**buffer))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut line = self.0.lock();
        if line.turn { Poll::Ready(Ok(())) } else { line.poll_flush(context) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut line = self.0.lock();
        ready!(line.poll_empty(context))?;
        Pin::new(&mut line.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
