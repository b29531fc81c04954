//! The order of an answer and an end: a client hears of the end of its session only after the
//! answer to its current request.

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
    /// The session has ended meanwhile. The `status` is for the client, if there is one.
    Ending(Option<&'static str>),
}

impl Viewer {
    /// Notes that a request is being answered. Until [`Viewer::answered`] the client hears of no
    /// end.
    pub(super) fn begin_answer(&self) {
        *self.turn() = Turn::Answering;
    }

    /// Notes that the request is answered.
    pub(super) fn answered(&self) {
        let turn = mem::take(&mut *self.turn());
        if let Turn::Ending(status) = turn {
            // A session that the request has started meanwhile ends too.
            self.leave();
            self.send_end(status);
        }
    }

    /// Ends the PeerConnection, and tells the client after the answer to its current request.
    pub(super) fn end(&self, status: Option<&'static str>) {
        let mut turn = self.turn();
        match &*turn {
            Turn::Free => {
                drop(turn);
                self.send_end(status);
            }
            Turn::Answering | Turn::Ending(_) => *turn = Turn::Ending(status),
        }
    }

    fn send_end(&self, status: Option<&'static str>) {
        if let Some(status) = status {
            self.push_result(json!({ "status": status }));
        }
        self.handle.close_pc();
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
