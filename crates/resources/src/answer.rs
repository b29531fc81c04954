//! The answer to a change of a room, which may have to wait for the disk.

use portunus_core::record::Recorder;
use portunus_core::{Later, Object, Reply, recording_fault};

use crate::Writing;

/// The answer to a request. If it changes something for good, the answer is complete once that is written.
#[derive(Debug)]
#[must_use]
pub struct Answer {
    answer: Object,
    writing: Option<Writing>,
    recorded: Option<Box<RecordedRoom>>,
}

/// A room that is to be recorded: its maker learns at once if it cannot be.
#[derive(Debug)]
pub struct RecordedRoom {
    /// What it is recorded with.
    pub recorder: Recorder,
    /// The room, for the log.
    pub room: String,
    /// The folders that are written to. `None` is the configured one.
    pub dirs: Vec<Option<String>>,
}

impl Answer {
    /// The answer to a change, which gets the member `permanent`: whether the change was written, if it was to be.
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

    /// The answer gets the member `recording_failed`, with the reason, if this room is to be recorded and cannot be.
    pub fn recording(self, recorded: Option<RecordedRoom>) -> Self {
        let recorded = recorded.map(Box::new);
        Answer { recorded, ..self }
    }

    /// Returns the answer if it is known, else `Err`: it has to be waited for with [`Answer::complete`].
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

    /// Replies with the answer, as soon as it is known.
    pub fn reply(self) -> Reply {
        match self.now() {
            Ok(answer) => Reply::Success(answer.into()),
            Err(later) => Reply::Later(Later::new(async { later.complete().await.into() })),
        }
    }
}

/// An answer that is known, of a request that changes nothing for good.
impl From<Object> for Answer {
    fn from(answer: Object) -> Self {
        Answer {
            answer,
            writing: None,
            recorded: None,
        }
    }
}
