//! Large writes, handed to TLS in small pieces.
//!
//! TLS copies what it is given into records of 16 KiB. The C library makes large copies with `rep movsb`, which on
//! current AMD processors is several times slower than a loop when the target is not aligned, and behind the header of
//! a record it never is: for large answers, that copy costs more than their encryption. Copies of small pieces are
//! made by the loop.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What glibc never copies with `rep movsb`, whatever the processor.
const PIECE: usize = 2048;
/// How many are written at once. TLS buffers not much more than this anyway.
const PIECES: usize = 64;

/// A TLS stream that is written to in small pieces.
pub(crate) struct Pieces<S>(pub(crate) S);

impl<S: AsyncWrite + Unpin> Pieces<S> {
    fn inner(self: Pin<&mut Self>) -> Pin<&mut S> {
        Pin::new(&mut self.get_mut().0)
    }
}

/// As much of the buffers as fits into one write, in order.
fn pieces<'a>(buffers: impl Iterator<Item = &'a [u8]>, out: &mut [IoSlice<'a>; PIECES]) -> usize {
    let pieces = buffers.flat_map(|buffer| buffer.chunks(PIECE));
    out.iter_mut().zip(pieces).map(|(slot, piece)| *slot = IoSlice::new(piece)).count()
}

impl<S: AsyncRead + Unpin> AsyncRead for Pieces<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Pieces<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        if buffer.len() <= PIECE {
            return self.inner().poll_write(context, buffer);
        }
        let mut slots = [IoSlice::new(&[]); PIECES];
        let count = pieces(std::iter::once(buffer), &mut slots);
        self.inner().poll_write_vectored(context, &slots[..count])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut slots = [IoSlice::new(&[]); PIECES];
        let count = pieces(buffers.iter().map(|buffer| &**buffer), &mut slots);
        self.inner().poll_write_vectored(context, &slots[..count])
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[test]
    fn buffers_are_cut_in_order() {
        let (small, large) = ([1; 9], [2; PIECE * 2 + 1]);
        let mut slots = [IoSlice::new(&[]); PIECES];
        let count = pieces([&small[..], &large, &[]].into_iter(), &mut slots);
        let lengths: Vec<_> = slots[..count].iter().map(|slot| slot.len()).collect();
        assert_eq!(lengths, [9, PIECE, PIECE, 1]);
        let all: Vec<u8> = slots[..count].iter().flat_map(|slot| slot.iter().copied()).collect();
        assert_eq!(all, [&small[..], &large].concat());
    }

    #[test]
    fn what_does_not_fit_waits() {
        let much = vec![0; PIECE * (PIECES + 3)];
        let mut slots = [IoSlice::new(&[]); PIECES];
        assert_eq!(pieces(std::iter::once(&much[..]), &mut slots), PIECES);
    }

    #[tokio::test]
    async fn everything_arrives() {
        let (near, mut far) = duplex(10_000);
        let sent: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        let expected = sent.clone();
        let sending = tokio::spawn(async move {
            let mut stream = Pieces(near);
            stream.write_all(&sent[..3]).await?;
            stream.write_all(&sent[3..]).await?;
            stream.shutdown().await
        });
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.expect("received");
        sending.await.expect("no panic").expect("sent");
        assert_eq!(received, expected);
    }
}
