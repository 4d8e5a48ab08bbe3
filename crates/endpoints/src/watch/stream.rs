//! The events of one watch, in their time.

use std::{future::Future, pin::Pin};

use bytes::{Bytes, BytesMut};
use concord_meta::Status;
use concord_registry::{Watch, WatchEnd, WatchEvent};
use tokio::{
    task::yield_now,
    time::{Instant, Sleep, sleep_until},
};

use super::{
    encode::Encoder,
    pace::Pace,
    schedule::{Due, Schedule},
};

/// How much is put together before it is sent. More would only be copied once more on its way.
const CHUNK: usize = 32 * 1024;

/// The events of one watch, encoded.
///
/// It takes from the watch only what it is asked for. If the client does not read, nobody asks, and the registry
/// ends a watch that falls too far behind.
pub(super) struct EventStream {
    /// Gone when the last word has been said.
    watch: Option<Watch>,
    /// Said next, and then nothing more.
    last_word: Option<Bytes>,
    pace: Pace,
    encoder: Encoder,
    schedule: Schedule,
    timer: Pin<Box<Sleep>>,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whether the end of the initial state is told.
    tells_initial_end: bool,
}

impl EventStream {
    pub(super) fn new(
        watch: Result<Watch, WatchEnd>,
        encoder: Encoder,
        schedule: Schedule,
        tells_initial_end: bool,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let mut stream = Self {
            watch: None,
            last_word: None,
            pace: Pace::new(encoder.audience().clone()),
            encoder,
            timer: Box::pin(sleep_until(schedule.next())),
            schedule,
            shutdown: Box::pin(shutdown),
            tells_initial_end,
        };
        match watch {
            // Also a watch that is to last no time at all is one, in which nothing happens.
            Ok(watch) => stream.watch = Some(watch).filter(|_| stream.schedule.next() > Instant::now()),
            Err(end) => stream.end(end),
        }
        stream
    }

    /// The next event. `None` when the watch is over.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost between two calls.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(watch) = &mut self.watch else { return self.last_word.take() };
            let said = tokio::select! {
                // In this order, so that a busy watch ends in time too.
                biased;
                () = &mut self.shutdown => {
                    self.watch = None;
                    return None;
                }
                () = &mut self.timer => None,
                said = watch.next() => Some(said),
            };
            let frame = match said {
                None => self.time(),
                Some(Ok(event)) => self.encode(&event),
                Some(Err(end)) => {
                    self.end(end);
                    None
                }
            };
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// An event that is there already.
    pub(super) fn ready(&mut self) -> Option<Bytes> {
        loop {
            let watch = self.watch.as_mut()?;
            match watch.try_next() {
                Ok(Some(event)) => {
                    if let Some(frame) = self.encode(&event) {
                        return Some(frame);
                    }
                }
                Ok(None) => return None,
                Err(end) => self.end(end),
            }
        }
    }

    /// All events that are there, up to a size that is good to send at once.
    pub(super) async fn chunk(&mut self) -> Option<Bytes> {
        self.pace.rest().await;
        let first = self.next().await?;
        if first.len() >= CHUNK {
            self.pace.said(false);
            return Some(first);
        }
        // Who lets the others go first says more at once, too.
        yield_now().await;
        let chunk = self.with_more(first);
        self.pace.said(chunk.len() < CHUNK);
        Some(chunk)
    }

    fn with_more(&mut self, first: Bytes) -> Bytes {
        // A single event is shared with other watches and not copied.
        let Some(second) = self.ready() else { return first };
        let mut chunk = BytesMut::with_capacity(CHUNK.max(first.len() + second.len()));
        chunk.extend_from_slice(&first);
        chunk.extend_from_slice(&second);
        while chunk.len() < CHUNK {
            let Some(frame) = self.ready() else { break };
            chunk.extend_from_slice(&frame);
        }
        chunk.freeze()
    }

    /// What the clock has to say.
    fn time(&mut self) -> Option<Bytes> {
        let due = self.schedule.due(Instant::now());
        self.timer.as_mut().reset(self.schedule.next());
        match due {
            Due::Nothing => None,
            Due::End => {
                self.watch = None;
                None
            }
            Due::Bookmark => {
                let revision = self.watch.as_mut()?.bookmark()?;
                let frame = self.encoder.bookmark(revision, false);
                self.unless_failed(frame)
            }
        }
    }

    fn encode(&mut self, event: &WatchEvent) -> Option<Bytes> {
        match event {
            WatchEvent::Object { event, value, revision } => {
                let frame = self.encoder.event(*event, value, *revision);
                self.unless_failed(frame)
            }
            WatchEvent::InitialEventsEnd(_) if !self.tells_initial_end => None,
            WatchEvent::InitialEventsEnd(revision) => {
                let frame = self.encoder.bookmark(*revision, true);
                self.unless_failed(frame)
            }
        }
    }

    /// The frame, or the end of the watch.
    fn unless_failed(&mut self, frame: Result<Bytes, Status>) -> Option<Bytes> {
        frame.map_err(|status| self.fail(&status)).ok()
    }

    fn end(&mut self, end: WatchEnd) {
        match end {
            WatchEnd::Error(status) => self.fail(&status),
            WatchEnd::Closed => self.watch = None,
        }
    }

    fn fail(&mut self, status: &Status) {
        self.watch = None;
        self.last_word = Some(self.encoder.error(status));
    }
}
