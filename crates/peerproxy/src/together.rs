//! The same question of several clients, asked once.
//!
//! Programs begin with a list, and when a server comes back many do so at once. Where another server has it, each would cost
//! two servers the work of one. So whoever asks for what somebody is just asking for waits for the next round, which asks once for
//! all who came meanwhile, as a commit of a log is for all who wait for one.
//!
//! What holds always: **nobody gets an answer to a question that was sent before he asked.** A round takes nobody any more once it
//! is sent. So an answer is as new as if it had been asked for alone, whatever that means to whoever gives it; revisions are not
//! looked at. What is paid for it is the wait for the head of the answer before, and no more than [`PATIENCE`].

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use concord_server::{Body, Response};
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    room::Room,
    same::Same,
    split::{Reader, Split, WINDOW},
};

/// How long a round waits for the head of the answer before it. Long enough for most; of a peer that hangs the next round, which
/// may go to another one, does not wait for ever.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many bytes of bodies may be kept in all, for clients that are slower than others. Who finds no room asks alone.
const MOST_BYTES: usize = 8 * WINDOW;

/// What is being asked.
pub(crate) struct Together(Arc<Table>);

struct Table {
    questions: Mutex<HashMap<Arc<Same>, Question>>,
    numbers: AtomicU64,
    room: Arc<Room>,
}

/// One question that somebody asks: there is an answer to wait for, or a round that is about to ask.
#[derive(Default)]
struct Question {
    /// The one that was sent last, until the head of its answer is there; and what tells then.
    sent: Option<(u64, CancellationToken)>,
    /// The round that was not sent yet.
    next: Option<(u64, Weak<Round>)>,
}

/// A place among the questions, given up when it is dropped.
pub(crate) struct Asking {
    table: Arc<Table>,
    same: Arc<Same>,
    number: u64,
    is_over: CancellationToken,
}

/// Some clients who ask together.
struct Round {
    body: Arc<Split>,
    answer: watch::Receiver<Answer>,
    sent_to: Arc<OnceLock<String>>,
    /// What asks. It ends with the round: when the last one who waits for it is gone.
    task: OnceLock<AbortOnDropHandle<()>>,
}

/// What a round begins with: its place, what tells when it may ask, and whom to tell what was answered.
struct Begins {
    asking: Asking,
    before: CancellationToken,
    tell: watch::Sender<Answer>,
}

#[derive(Clone, Default)]
enum Answer {
    #[default]
    None,
    /// There is none that could be shared.
    Failed,
    /// The body is in the round.
    Head(Arc<HeaderMap>),
}

/// When a client's question is asked.
pub(crate) enum Turn {
    /// Now, by the client itself; others wait for it for as long as it keeps its place.
    Now(Option<Asking>),
    /// Together with others.
    Together(Member),
}

/// One of those who ask together.
pub(crate) struct Member {
    round: Arc<Round>,
    reader: Reader,
}

impl Together {
    pub(crate) fn new() -> Self {
        let room = Room::new(MOST_BYTES);
        Self(Arc::new(Table { questions: Mutex::default(), numbers: AtomicU64::new(0), room }))
    }

    /// Says when to ask. `fetch` makes what asks for all of a round; it says whom, and gives an answer only if everybody can
    /// have it.
    pub(crate) fn join<F>(&self, same: Same, fetch: impl FnOnce(Arc<OnceLock<String>>) -> F) -> Turn
    where
        F: Future<Output = Option<Response>> + Send + 'static,
    {
        let (turn, begins) = self.0.turn(same);
        // Without the lock: where everything ends, tasks end before they begin, and give up their places.
        if let (Turn::Together(member), Some(begins)) = (&turn, begins) {
            member.round.begin(begins, fetch(member.round.sent_to.clone()));
        }
        turn
    }

    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.0.questions.lock().is_empty() && self.0.room.taken() == 0
    }
}

impl Table {
    /// When this is asked, and what it takes to begin the round if it is a new one.
    fn turn(self: &Arc<Self>, same: Same) -> (Turn, Option<Begins>) {
        let mut questions = self.questions.lock();
        let question = questions.get_mut(&same);
        let gathering = question.as_ref().and_then(|question| question.next.as_ref()?.1.upgrade());
        if let Some(round) = gathering {
            return (Turn::Together(round.member()), None);
        }
        let sent = question.as_ref().and_then(|question| question.sent.clone());
        let (Some(question), Some((_, before))) = (question, sent) else {
            // Nobody asks; or a round was about to, and has just lost the last of its clients.
            let asking = self.asking(same);
            let question = Question { sent: Some(asking.sent()), next: None };
            questions.insert(asking.same.clone(), question);
            return (Turn::Now(Some(asking)), None);
        };
        let Some(reserved) = self.room.reserve(WINDOW) else { return (Turn::Now(None), None) };
        let asking = self.asking(same);
        let (tell, answer) = watch::channel(Answer::None);
        let round = Arc::new(Round::new(Split::new(reserved), answer));
        question.next = Some((asking.number, Arc::downgrade(&round)));
        (Turn::Together(round.member()), Some(Begins { asking, before, tell }))
    }

    fn asking(self: &Arc<Self>, same: Same) -> Asking {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        Asking { table: self.clone(), same: Arc::new(same), number, is_over: CancellationToken::new() }
    }
}

impl Asking {
    fn sent(&self) -> (u64, CancellationToken) {
        (self.number, self.is_over.clone())
    }

    /// From here on nobody joins.
    fn close(&self) {
        let mut questions = self.table.questions.lock();
        let question = questions.entry(self.same.clone()).or_default();
        question.next.take_if(|(number, _)| *number == self.number);
        question.sent = Some(self.sent());
    }
}

impl Drop for Asking {
    /// Its answer is there, or it will not come: the next round may ask.
    fn drop(&mut self) {
        {
            let mut questions = self.table.questions.lock();
            if let Some(question) = questions.get_mut(&self.same) {
                question.next.take_if(|(number, _)| *number == self.number);
                question.sent.take_if(|(number, _)| *number == self.number);
                if question.next.is_none() && question.sent.is_none() {
                    questions.remove(&self.same);
                }
            }
        }
        self.is_over.cancel();
    }
}

impl Round {
    fn new(body: Arc<Split>, answer: watch::Receiver<Answer>) -> Self {
        Self { body, answer, sent_to: Arc::default(), task: OnceLock::new() }
    }

    fn begin(
        &self,
        Begins { asking, before, tell }: Begins,
        fetched: impl Future<Output = Option<Response>> + Send + 'static,
    ) {
        let body = self.body.clone();
        let task = tokio::spawn(async move {
            // Whether it has come or not: after so long it is asked again.
            timeout(PATIENCE, before.cancelled()).await.ok();
            asking.close();
            let answer = fetched.await.map_or(Answer::Failed, |response| {
                let (head, source) = response.into_parts();
                body.begin(source);
                Answer::Head(Arc::new(head.headers))
            });
            tell.send_replace(answer);
        });
        self.task.get_or_init(|| AbortOnDropHandle::new(task));
    }

    fn member(self: Arc<Self>) -> Member {
        let reader = self.body.clone().reader();
        Member { round: self, reader }
    }
}

impl Member {
    /// Whom it was asked, if it was.
    pub(crate) fn sent_to(&self) -> Option<&str> {
        self.round.sent_to.get().map(String::as_str)
    }

    /// The headers of the answer; `None` if there is none that could be shared.
    ///
    /// # Cancel safety
    ///
    /// Who goes away is one less; if it was the last, nobody asks any more.
    pub(crate) async fn head(&self) -> Option<HeaderMap> {
        let mut answer = self.round.answer.clone();
        // If the one who asks has panicked there is no answer.
        let answer = answer.wait_for(|answer| !matches!(answer, Answer::None)).await.ok()?;
        match &*answer {
            Answer::Head(headers) => Some(HeaderMap::clone(headers)),
            Answer::None | Answer::Failed => None,
        }
    }

    /// The body of the answer whose head is there.
    pub(crate) fn into_body(self) -> Body {
        self.reader.into_body()
    }
}
