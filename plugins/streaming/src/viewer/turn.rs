//! The order in which a client hears of an answer and of an end: nobody is told of an end before the request that was
//! under way is answered.

use std::mem;
use std::sync::{MutexGuard, PoisonError};

use serde_json::json;

use super::Viewer;

/// Whether a request of the client is being answered.
#[derive(Debug, Default)]
pub(super) enum Turn {
    #[default]
    Free,
    Answering,
    /// What the handle did has ended meanwhile; with the `status` that the client is told, if any.
    Ending(Option<&'static str>),
}

impl Viewer {
    /// A request is being answered: until [`Viewer::answered`] the client is told of no end.
    pub(super) fn begin_answer(&self) {
        *self.turn() = Turn::Answering;
    }

    /// The request is answered.
    pub(super) fn answered(&self) {
        let turn = mem::take(&mut *self.turn());
        if let Turn::Ending(status) = turn {
            // What the request began meanwhile goes with the PeerConnection.
            self.leave();
            self.tell_end(status);
        }
    }

    /// What the handle did has ended, and with it the PeerConnection: the client is told, once it has the answer that it
    /// waits for.
    pub(super) fn end(&self, status: Option<&'static str>) {
        let mut turn = self.turn();
        match &*turn {
            Turn::Free => {
                drop(turn);
                self.tell_end(status);
            }
            Turn::Answering | Turn::Ending(_) => *turn = Turn::Ending(status),
        }
    }

    fn tell_end(&self, status: Option<&'static str>) {
        if let Some(status) = status {
            self.push_result(json!({ "status": status }));
        }
        self.handle.close_pc();
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
