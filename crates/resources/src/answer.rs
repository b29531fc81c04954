//! The answer to a change of a room, which may have to wait for the disk.

use portunus_core::record::Recorder;
use portunus_core::{Later, Object, Reply, recording_fault};

use crate::Writing;

/// The answer to a request. The answer to a permanent change is complete once the change is saved.
#[derive(Debug)]
#[must_use]
pub struct Answer {
    answer: Object,
    writing: Option<Writing>,
    recorded: Option<Box<RecordedRoom>>,
}

/// A room to be recorded. Its maker learns at once if that cannot work.
#[derive(Debug)]
pub struct RecordedRoom {
    /// The recorder.
    pub recorder: Recorder,
    /// The room, for the log.
    pub room: String,
    /// The folders. `None` is the configured one.
    pub dirs: Vec<Option<String>>,
}

impl Answer {
    /// Returns the answer to a change, with the member `permanent`: whether the change was saved,
    /// if it was to be.
    pub fn new(answer: Object, writing: Option<Writing>) -> Self {
        let answer = match writing {
            Some(_) => answer,
            None => answer.with("permanent", false),
        };
        Answer {
            answer,
            writing,
            recorded: None,
        }
    }

    /// Adds the member `recording_failed` with the reason, if this room is to be recorded and
    /// cannot be.
    pub fn recording(self, recorded: Option<RecordedRoom>) -> Self {
        let recorded = recorded.map(Box::new);
        Answer { recorded, ..self }
    }

    /// Returns the answer if it is complete. Otherwise the caller has to wait for
    /// [`Answer::complete`].
    pub fn now(self) -> Result<Object, Self> {
        match self.writing.is_none() && self.recorded.is_none() {
            true => Ok(self.answer),
            false => Err(self),
        }
    }

    /// Waits until the answer is complete.
    pub async fn complete(self) -> Object {
        let answer = match self.writing {
            Some(writing) => {
                let is_written = writing.done().await.is_ok();
                self.answer.with("permanent", is_written)
            }
            None => self.answer,
        };
        let fault = match self.recorded {
            Some(it) => recording_fault(&it.recorder, &it.room, &it.dirs).await,
            None => None,
        };
        answer.with_some("recording_failed", fault)
    }

    /// Replies with the answer once it is complete.
    pub fn reply(self) -> Reply {
        match self.now() {
            Ok(answer) => Reply::Success(answer.into()),
            Err(later) => Reply::Later(Later::new(async { later.complete().await.into() })),
        }
    }
}

/// A complete answer, of a request without a permanent change.
impl From<Object> for Answer {
    fn from(answer: Object) -> Self {
        Answer {
            answer,
            writing: None,
            recorded: None,
        }
    }
}
