use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

/// Counts the writes that reach it, and takes at most so many bytes of each.
struct Counting {
    stream: DuplexStream,
    writes: Arc<Mutex<Vec<usize>>>,
    flushes: Arc<Mutex<usize>>,
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, buffer))?;
        self.writes.lock().push(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let joined: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
        self.poll_write(context, &joined)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        *self.flushes.lock() += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Keeps what it cannot send, as TLS does.
struct Tls<S> {
    stream: S,
    kept: Vec<u8>,
    most: usize,
}

impl<S: AsyncWrite + Unpin> Tls<S> {
    fn new(stream: S) -> Self {
        Self { stream, kept: Vec::new(), most: KEPT_BY_TLS }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.kept.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.kept))?;
            self.kept.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tls<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tls<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = buffer.len().min(self.most.saturating_sub(self.kept.len()));
        self.kept.extend_from_slice(&buffer[..taken]);
        match self.poll_send(context)? {
            Poll::Pending if taken == 0 => Poll::Pending,
            _ => Poll::Ready(Ok(taken)),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write(
            context,
            &buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect::<Vec<_>>(),
        )
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

type Gated = Tls<Gate<DuplexStream>>;

fn gated_cork(stream: DuplexStream) -> (Corked<Gated>, Cork<Gated>) {
    let (gated, turn) = gate(stream);
    cork(Tls::new(gated), turn)
}

fn numbers(length: usize) -> Vec<u8> {
    (0..length).map(|number| (number % 251) as u8).collect()
}

/// Runs `connection` in turns to its end, then sends what is left.
async fn in_turns<S: AsyncWrite + Unpin, T>(cork: &Cork<S>, connection: impl Future<Output = T>) -> T {
    let mut connection = pin!(connection);
    let ended = poll_fn(|context| cork.poll_turn(context, connection.as_mut())).await.expect("sent");
    cork.flush().await.expect("sent");
    ended
}

#[test]
fn buffers_are_cut_in_order() {
    let (small, large) = ([1; 9], [2; PIECE * 2 + 1]);
    let mut slots = [IoSlice::new(&[]); PIECES];
    let count = pieces([&small[..], &large, &[]].into_iter(), &mut slots);
    let lengths: Vec<_> = slots[..count].iter().map(|slot| slot.len()).collect();
    assert_eq!(lengths, [9, PIECE, PIECE, 1]);
    let much = vec![0; PIECE * (PIECES + 3)];
    assert_eq!(pieces(std::iter::once(&much[..]), &mut slots), PIECES, "what does not fit waits");
}

#[tokio::test]
async fn what_is_written_and_flushed_in_one_turn_is_sent_at_once() {
    let (near, mut far) = duplex(1 << 20);
    let (writes, flushes) = (Arc::default(), Arc::default());
    let counting = Counting { stream: near, writes: Arc::clone(&writes), flushes: Arc::clone(&flushes) };
    let (gated, turn) = gate(counting);
    let (mut stream, cork) = cork(Tls::new(gated), turn);
    let sent = numbers(150_000);
    in_turns(&cork, async {
        for frame in sent.chunks(10_000) {
            stream.write_all(&[7; 9]).await.expect("taken");
            stream.write_all(frame).await.expect("taken");
            stream.flush().await.expect("nothing to do yet");
        }
    })
    .await;
    assert_eq!(*writes.lock(), [70_063, 70_063, 10_009], "as soon as there is enough");
    let mut received = vec![0; 150_000 + 15 * 9];
    far.read_exact(&mut received).await.expect("all there");
    let expected: Vec<u8> = sent.chunks(10_000).flat_map(|frame| [&[7; 9], frame].concat()).collect();
    assert!(received == expected);
}

#[tokio::test]
async fn a_turn_that_ends_waiting_has_sent_everything() {
    let (near, mut far) = duplex(1 << 20);
    let (mut stream, cork) = gated_cork(near);
    let connection = async {
        stream.write_all(b"question").await.expect("taken");
        let mut answer = [0; 6];
        stream.read_exact(&mut answer).await.expect("an answer");
        answer
    };
    let answering = async {
        let mut question = [0; 8];
        far.read_exact(&mut question).await.expect("the question");
        far.write_all(b"answer").await.expect("taken");
        question
    };
    let (answer, question) = tokio::join!(in_turns(&cork, connection), answering);
    assert_eq!((&answer, &question), (b"answer", b"question"));
}

#[tokio::test]
async fn outside_of_turns_it_is_a_stream_like_any_other() {
    let (near, mut far) = duplex(1 << 20);
    let (mut stream, cork) = gated_cork(near);
    in_turns(&cork, async { stream.write_all(b"before ").await.expect("taken") }).await;
    stream.write_all(b"after").await.expect("taken");
    stream.flush().await.expect("sent");
    let mut received = [0; 12];
    far.read_exact(&mut received).await.expect("all there");
    assert_eq!(&received, b"before after");
}

#[tokio::test]
async fn everything_arrives_through_a_narrow_pipe() {
    for length in [0, 1, KEPT, ENOUGH - 1, ENOUGH, ENOUGH + 1, 5 * ENOUGH + 3] {
        for step in [1_000, 16_393, ENOUGH, 4 * ENOUGH] {
            let (near, mut far) = duplex(10_000);
            let (mut stream, cork) = gated_cork(near);
            let sent = numbers(length);
            let sending = async {
                in_turns(&cork, async {
                    for part in sent.chunks(step) {
                        stream.write_all(part).await?;
                        stream.flush().await?;
                    }
                    stream.shutdown().await
                })
                .await
                .expect("sent");
            };
            let mut received = Vec::new();
            let (received_all, ()) = tokio::join!(far.read_to_end(&mut received), sending);
            received_all.expect("received");
            assert!(received == sent, "{length} in steps of {step}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_rests_keeps_little() {
    let (near, mut far) = duplex(1 << 20);
    let (mut stream, cork) = gated_cork(near);
    in_turns(&cork, async {
        for part in numbers(50_000).chunks(1_000) {
            stream.write_all(part).await.expect("taken");
        }
    })
    .await;
    assert!(cork.0.lock().buffer.capacity() <= KEPT);
    far.read_exact(&mut vec![0; 50_000]).await.expect("all there");
}

#[tokio::test]
async fn a_stream_that_broke_ends_the_turn() {
    let (near, far) = duplex(1 << 20);
    let (mut stream, cork) = gated_cork(near);
    drop(far);
    let mut connection = pin!(async {
        stream.write_all(b"to nobody").await.expect("taken");
        std::future::pending::<()>().await;
    });
    let ended = poll_fn(|context| cork.poll_turn(context, connection.as_mut())).await;
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
}

/// A writer that TLS has no room for waits for nobody: the end of the turn makes room, and it has another one.
#[tokio::test]
async fn who_found_no_room_goes_on_when_the_turn_is_over() {
    let (near, mut far) = duplex(1 << 20);
    let (gated, turn) = gate(near);
    let (mut stream, cork) = cork(Tls { stream: gated, kept: Vec::new(), most: 10_000 }, turn);
    let sent = numbers(100_000);
    in_turns(&cork, stream.write_all(&sent)).await.expect("sent");
    let mut received = vec![0; sent.len()];
    far.read_exact(&mut received).await.expect("all there");
    assert!(received == sent);
}
