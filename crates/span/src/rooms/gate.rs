//! The way of clients to rooms of all nodes: where they wait until a room is known as the other nodes
//! have it, and until its home has answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portunus_room::{Answered, ClaimError, FarRoom, OtherNodes, Unprepared, Whom, Work};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::listing::Listing;

/// How long a client waits for what other nodes say of a room.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a home has time to answer.
const ANSWERING: Duration = Duration::from_secs(3);
/// How long the bus has time to confirm the name of a new room.
const CLAIMING: Duration = Duration::from_secs(5);
/// The questions that wait for answers at the same time. Others wait for these, since a link with
/// 1,000 messages that wait is reset.
const QUESTIONS: usize = 400;

/// The messages of doors that wait. More are dropped.
const MESSAGES: usize = 1_024;
/// Those of them that may be lost, besides the others.
const FRAMES: usize = 256;
/// The messages, and their bytes, after which there is a pause, as a link with 1,000 messages that
/// wait is reset.
const BURST: usize = 64;
const BURST_BYTES: usize = 256 << 10;
const PAUSE: Duration = Duration::from_millis(10);

/// Something that a client needs of the other nodes.
#[derive(Debug)]
pub(crate) enum Command {
    /// It wants to join a room.
    Visit(Visit),
    /// Its question goes to the home of a room.
    Ask(Ask),
    /// It makes a room of this name.
    Claim {
        name: String,
        done: oneshot::Sender<Result<(), ClaimError>>,
    },
    /// Its door tells the same door at a node, or at all that have participants, something about a
    /// room.
    Tell {
        name: String,
        to: Option<String>,
        message: Vec<u8>,
        may_be_lost: bool,
    },
    /// Its door asks the same door at another node, in base64.
    AskDoor { ask: Ask, whom: Whom },
    /// It has ended the room of this name for all nodes.
    Destroyed { name: String, permanently: bool },
    /// It has changed the room of this name permanently.
    Kept(String),
}

/// A client that wants to join a room.
#[derive(Debug)]
pub(crate) struct Visit {
    /// The name of the room.
    pub(crate) name: String,
    /// Closes or resolves when the room is ready.
    pub(crate) done: Waiting,
}

/// A client that waits for a room.
pub(crate) type Waiting = oneshot::Sender<Result<(), Unprepared>>;

/// A question to the home of a room.
#[derive(Debug)]
pub(crate) struct Ask {
    /// The name of the room.
    pub(crate) name: String,
    pub(crate) question: String,
    /// Resolves with the answer, or with `None` if this node has to decide. It closes when the home
    /// is lost.
    pub(crate) answer: oneshot::Sender<Option<String>>,
    /// The home, once it was asked.
    pub(crate) asked: Arc<OnceLock<String>>,
}

/// The way of clients to rooms.
#[derive(Debug)]
pub(crate) struct Gate {
    commands: mpsc::Sender<Command>,
    messages: mpsc::Sender<Message>,
    /// Those that may be lost.
    frames: mpsc::Sender<Message>,
    /// Messages of doors that were dropped.
    dropped: AtomicU64,
    listing: Listing,
    questions: Arc<Semaphore>,
    door_questions: Arc<Semaphore>,
}

/// A message of a door about the room `name`, for one node or for all.
#[derive(Debug)]
struct Message {
    name: String,
    to: Option<String>,
    content: Vec<u8>,
    may_be_lost: bool,
}

impl Gate {
    /// Returns the way by these commands. Its task ends with it.
    pub(crate) fn new(commands: mpsc::Sender<Command>, listing: Listing) -> Self {
        let (messages, waiting) = mpsc::channel(MESSAGES);
        let (frames, passing) = mpsc::channel(FRAMES);
        tokio::spawn(pace(waiting, passing, commands.clone()));
        Gate {
            commands,
            messages,
            frames,
            dropped: AtomicU64::new(0),
            listing,
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            door_questions: Arc::new(Semaphore::new(QUESTIONS)),
        }
    }

    fn pass(&self, queue: &mpsc::Sender<Message>, message: Message) {
        if queue.try_send(message).is_err() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed);
            if dropped.is_multiple_of(1_000) {
                tracing::warn!(dropped, "cluster: too many messages of a room's door wait");
            }
        }
    }
}

/// Passes on messages of doors, with pauses. Those that may be lost wait for the others.
async fn pace(
    mut waiting: mpsc::Receiver<Message>,
    mut passing: mpsc::Receiver<Message>,
    commands: mpsc::Sender<Command>,
) {
    let (mut count, mut bytes) = (0_usize, 0_usize);
    loop {
        let next = tokio::select! {
            biased;
            next = waiting.recv() => next,
            Some(next) = passing.recv() => Some(next),
        };
        let Some(Message {
            name,
            to,
            content,
            may_be_lost,
        }) = next
        else {
            return;
        };
        count = count.saturating_add(1);
        bytes = bytes.saturating_add(content.len());
        let message = content;
        let tell = Command::Tell {
            name,
            to,
            message,
            may_be_lost,
        };
        if commands.send(tell).await.is_err() {
            return;
        }
        if count >= BURST || bytes >= BURST_BYTES {
            sleep(PAUSE).await;
            (count, bytes) = (0, 0);
        }
    }
}

impl OtherNodes for Gate {
    fn prepare(&self, name: &str) -> Work<Result<(), Unprepared>> {
        let (done, ready) = oneshot::channel();
        let visit = Visit {
            name: name.to_owned(),
            done,
        };
        let commands = self.commands.clone();
        Box::pin(async move {
            let waits = async {
                match commands.send(Command::Visit(visit)).await {
                    // Without a word there is nothing to wait for.
                    Ok(()) => ready.await.unwrap_or(Ok(())),
                    Err(_) => Ok(()),
                }
            };
            // Then the room is as it is here.
            timeout(PATIENCE, waits).await.unwrap_or(Ok(()))
        })
    }

    fn ask(&self, name: &str, question: String) -> Work<Answered> {
        let (answer, answered) = oneshot::channel();
        let asked = Arc::new(OnceLock::new());
        let ask = Ask {
            name: name.to_owned(),
            question,
            answer,
            asked: asked.clone(),
        };
        let (commands, questions) = (self.commands.clone(), self.questions.clone());
        Box::pin(async move {
            let asking = async {
                // It is never closed.
                let _permit = questions.acquire().await.ok()?;
                commands.send(Command::Ask(ask)).await.ok()?;
                answered.await.ok()
            };
            match timeout(ANSWERING, asking).await {
                Ok(Some(Some(answer))) => Answered::Answer(answer),
                Ok(Some(None)) => Answered::Here,
                Ok(None) | Err(_) => match asked.get() {
                    Some(node) => Answered::Silent(node.clone()),
                    None => Answered::Here,
                },
            }
        })
    }

    fn ask_door(
        &self,
        name: &str,
        whom: Whom,
        question: Vec<u8>,
        patience: Duration,
    ) -> Work<Answered<Vec<u8>>> {
        let (answer, answered) = oneshot::channel();
        let asked = Arc::new(OnceLock::new());
        let ask = Ask {
            name: name.to_owned(),
            question: STANDARD.encode(question),
            answer,
            asked: asked.clone(),
        };
        let (commands, questions) = (self.commands.clone(), self.door_questions.clone());
        Box::pin(async move {
            let asking = async {
                // It is never closed.
                let _permit = questions.acquire().await.ok()?;
                commands.send(Command::AskDoor { ask, whom }).await.ok()?;
                answered.await.ok()
            };
            let answer = timeout(patience, asking).await.ok().flatten().flatten();
            let answer = answer.and_then(|answer| STANDARD.decode(answer).ok());
            match (answer, asked.get()) {
                (Some(answer), _) => Answered::Answer(answer),
                (None, Some(node)) => Answered::Silent(node.clone()),
                (None, None) => Answered::Here,
            }
        })
    }

    fn claim(&self, name: &str) -> Work<Result<(), ClaimError>> {
        if self.listing.has(name) {
            return Box::pin(async { Err(ClaimError::Taken) });
        }
        let (done, claimed) = oneshot::channel();
        let name = name.to_owned();
        let commands = self.commands.clone();
        Box::pin(async move {
            let claiming = async {
                let sent = commands.send(Command::Claim { name, done }).await;
                sent.ok()?;
                claimed.await.ok()
            };
            let unknown = || ClaimError::Unknown("the cluster does not answer".to_owned());
            let claimed = timeout(CLAIMING, claiming).await;
            claimed.ok().flatten().unwrap_or_else(|| Err(unknown()))
        })
    }

    fn tell(&self, name: &str, message: Vec<u8>) {
        let message = Message {
            name: name.to_owned(),
            to: None,
            content: message,
            may_be_lost: false,
        };
        self.pass(&self.messages, message);
    }

    fn tell_node(&self, node: &str, name: &str, message: Vec<u8>, may_be_lost: bool) {
        let message = Message {
            name: name.to_owned(),
            to: Some(node.to_owned()),
            content: message,
            may_be_lost,
        };
        let queue = match may_be_lost {
            true => &self.frames,
            false => &self.messages,
        };
        self.pass(queue, message);
    }

    fn destroyed(&self, name: &str, permanently: bool) {
        let name = name.to_owned();
        // With a full queue the other nodes keep the room, which nobody uses.
        let _ = self
            .commands
            .try_send(Command::Destroyed { name, permanently });
    }

    fn changed_permanently(&self, name: &str) {
        // With a full queue the files of the other nodes stay as they are.
        let _ = self.commands.try_send(Command::Kept(name.to_owned()));
    }

    fn rooms(&self) -> Vec<FarRoom> {
        self.listing.rooms()
    }

    fn room(&self, name: &str) -> Option<FarRoom> {
        self.listing.room(name)
    }

    fn has(&self, name: &str) -> bool {
        self.listing.has(name)
    }
}
