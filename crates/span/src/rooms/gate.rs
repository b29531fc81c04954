//! The way of clients to rooms of all nodes: where they wait until a room is known as the other nodes
//! have it, and until its home has answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use portunus_room::{Answered, ClaimError, FarRoom, OtherNodes, Unprepared, Work};
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
    /// Its door tells the same door at other nodes something about a room.
    Tell { name: String, message: Vec<u8> },
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
    messages: mpsc::Sender<(String, Vec<u8>)>,
    /// Messages of doors that were dropped.
    dropped: AtomicU64,
    listing: Listing,
    questions: Arc<Semaphore>,
}

impl Gate {
    /// Returns the way by these commands. Its task ends with it.
    pub(crate) fn new(commands: mpsc::Sender<Command>, listing: Listing) -> Self {
        let (messages, waiting) = mpsc::channel(MESSAGES);
        tokio::spawn(pace(waiting, commands.clone()));
        Gate {
            commands,
            messages,
            dropped: AtomicU64::new(0),
            listing,
            questions: Arc::new(Semaphore::new(QUESTIONS)),
        }
    }
}

/// Passes on messages of doors, with pauses.
async fn pace(mut waiting: mpsc::Receiver<(String, Vec<u8>)>, commands: mpsc::Sender<Command>) {
    let (mut count, mut bytes) = (0_usize, 0_usize);
    while let Some((name, message)) = waiting.recv().await {
        count = count.saturating_add(1);
        bytes = bytes.saturating_add(message.len());
        if commands
            .send(Command::Tell { name, message })
            .await
            .is_err()
        {
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
        if self.messages.try_send((name.to_owned(), message)).is_err() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed);
            if dropped.is_multiple_of(1_000) {
                tracing::warn!(dropped, "cluster: too many messages of a room's door wait");
            }
        }
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

    fn has(&self, name: &str) -> bool {
        self.listing.has(name)
    }
}
