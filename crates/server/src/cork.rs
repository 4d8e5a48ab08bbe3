//! What one turn of a connection has to send, sent together.
//!
//! HTTP/2 flushes after every frame, and TLS then makes records and a system call of it: for a large answer hundreds
//! of calls. A [`Cork`] above TLS puts what is small together into one record; what is large goes into records at once,
//! and is copied only there. A [`Gate`] below TLS keeps the records until there is enough of them for a call, or the
//! turn of the connection is over: nothing waits for a clock, or for more to come.
//!
//! TLS copies what it is given into its records. The C library makes large copies with `rep movsb`, which on current
//! AMD processors is several times slower than a loop when the target is not aligned, and behind the header of a
//! record it never is: that copy would cost more than the encryption. Copies of small pieces are made by the loop.

use std::{
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is sent at once: what a system call takes in one go.
const ENOUGH: usize = 64 * 1024;
/// How much TLS may keep of what is not sent; more than is [`ENOUGH`], with a record to spare.
pub(crate) const KEPT_BY_TLS: usize = 2 * ENOUGH;
/// What is at least as large is worth a record of its own.
const LARGE: usize = 4 * 1024;
/// What is put together: what a record has room for.
const TOGETHER: usize = 16 * 1024;
/// What a buffer keeps when it is empty. Connections that rest are many, and need little.
const KEPT: usize = 4 * 1024;
/// What glibc never copies with `rep movsb`, whatever the processor.
const PIECE: usize = 2048;
/// How many pieces are written at once.
const PIECES: usize = ENOUGH / PIECE + 2;

/// Whether a connection has its turn. Only the task that has the connection uses it; it is shared so that what is
/// above TLS and what is below it agree.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<AtomicBool>);

impl Turn {
    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}

/// A stream that takes nothing small while a connection has its turn. Whoever is turned away is not woken: the end of the
/// turn sends what is left, and gives a connection that could not go on another turn.
pub(crate) struct Gate<S> {
    pub(crate) stream: S,
    turn: Turn,
}

/// A stream, the gate before it and what closes it.
pub(crate) fn gate<S>(stream: S) -> (Gate<S>, Turn) {
    let turn = Turn::default();
    (Gate { stream, turn: turn.clone() }, turn)
}

/// The end of a stream where it is sent from, in turns.
pub(crate) struct Cork<S>(Arc<Mutex<Line<S>>>);

/// A stream whose writes wait until the turn is over. Outside of turns it is a stream like any other.
pub(crate) struct Corked<S>(Arc<Mutex<Line<S>>>);

/// Both ends share it, but only the task that has the connection uses it: nobody ever waits for the lock.
struct Line<S> {
    stream: S,
    /// What was written and not given to the stream; of that, what comes before `given` was.
    buffer: Vec<u8>,
    given: usize,
    turn: Turn,
    /// Whether somebody could not write in this turn.
    starved: bool,
}

/// A stream and the cork on it, which closes the gate below.
pub(crate) fn cork<S>(stream: S, turn: Turn) -> (Corked<S>, Cork<S>) {
    let line = Line { stream, buffer: Vec::new(), given: 0, turn, starved: false };
    let line = Arc::new(Mutex::new(line));
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
        mut connection: Pin<&mut impl Future<Output = T>>,
    ) -> Poll<io::Result<T>> {
        loop {
            self.0.lock().begin();
            let polled = connection.as_mut().poll(context);
            let mut line = self.0.lock();
            line.turn.set(false);
            // One that has ended is waited for by `flush`.
            return match (polled, line.poll_flush(context)) {
                (Poll::Ready(ended), _) => Poll::Ready(Ok(ended)),
                (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
                // There is room again, which nobody else would tell.
                (Poll::Pending, Poll::Ready(Ok(()))) if line.starved => continue,
                (Poll::Pending, _) => Poll::Pending,
            };
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
    fn begin(&mut self) {
        self.turn.set(true);
        self.starved = false;
    }

    /// Gives the stream the buffer to its end.
    fn poll_empty(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.given < self.buffer.len() {
            let mut slots = [IoSlice::new(&[]); PIECES];
            let count = pieces(std::iter::once(&self.buffer[self.given..]), &mut slots);
            let written = Pin::new(&mut self.stream).poll_write_vectored(context, &slots[..count]);
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.given += written,
            }
        }
        self.buffer.clear();
        self.given = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_empty(context))?;
        if self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Takes what is small, and gives the stream what is not.
    fn poll_write<'a>(
        &mut self,
        context: &mut Context<'_>,
        buffers: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Poll<io::Result<usize>> {
        let length = buffers.clone().map(<[u8]>::len).sum::<usize>();
        let small = length < LARGE && self.turn.is_on();
        if !small || self.buffer.len() + length > TOGETHER {
            ready!(self.poll_empty(context))?;
        }
        if !small {
            let mut slots = [IoSlice::new(&[]); PIECES];
            let count = pieces(buffers, &mut slots);
            return Pin::new(&mut self.stream).poll_write_vectored(context, &slots[..count]);
        }
        buffers.for_each(|buffer| self.buffer.extend_from_slice(buffer));
        Poll::Ready(Ok(length))
    }

    /// The same, and remembers who could not write.
    fn poll_write_or_starve<'a>(
        &mut self,
        context: &mut Context<'_>,
        buffers: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Poll<io::Result<usize>> {
        let written = self.poll_write(context, buffers);
        self.starved |= written.is_pending();
        written
    }
}

/// As much of the buffers as fits into one write, in order.
fn pieces<'a>(buffers: impl Iterator<Item = &'a [u8]>, out: &mut [IoSlice<'a>; PIECES]) -> usize {
    let pieces = buffers.flat_map(|buffer| buffer.chunks(PIECE));
    out.iter_mut().zip(pieces).map(|(slot, piece)| *slot = IoSlice::new(piece)).count()
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.turn.is_on() && buffer.len() < ENOUGH {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.turn.is_on() && buffers.iter().map(|buffer| buffer.len()).sum::<usize>() < ENOUGH {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
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
        self.0.lock().poll_write_or_starve(context, std::iter::once(buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write_or_starve(context, buffers.iter().map(|buffer| &**buffer))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut line = self.0.lock();
        if line.turn.is_on() { Poll::Ready(Ok(())) } else { line.poll_flush(context) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut line = self.0.lock();
        // Nothing comes after it that it could wait for.
        line.turn.set(false);
        ready!(line.poll_empty(context))?;
        Pin::new(&mut line.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
