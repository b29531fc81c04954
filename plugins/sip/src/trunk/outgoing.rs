//! Calls of audio rooms to telephones.

use std::sync::Arc;

use portunus_telephony::{DialNews, Entrance};
use tokio::sync::mpsc;

use super::Line;
use super::talk::{Deed, Talk};
use super::visit::{Farewell, Pin};

/// A call by a room.
pub(super) struct Outgoing {
    pub(super) room: Arc<dyn Entrance>,
    /// The name that others in the room see.
    pub(super) display: String,
    pub(super) tell: mpsc::Sender<DialNews>,
    /// Held until the call ends.
    pub(super) line: Line,
}

/// Attends a call to its end.
pub(super) async fn attend(mut talk: Talk, outgoing: Outgoing) {
    let farewell = converse(&mut talk, &outgoing).await;
    let (code, reason) = match farewell {
        Farewell::Ended { code, reason } => (code, reason),
        Farewell::HangUp => {
            talk.hang_up();
            loop {
                if let Deed::End { code, reason } = talk.next(None).await {
                    break (code, reason);
                }
            }
        }
    };
    // The requester may be gone.
    let _ = outgoing.tell.try_send(DialNews::Ended { code, reason });
    drop(outgoing.line);
}

async fn converse(talk: &mut Talk, outgoing: &Outgoing) -> Farewell {
    let mut rings = false;
    loop {
        match talk.next(None).await {
            Deed::Progress if !std::mem::replace(&mut rings, true) => {
                let _ = outgoing.tell.try_send(DialNews::Ringing);
            }
            Deed::Answer(answered) => {
                let taken = answered.map(|sdp| talk.media.accept_answer(&sdp));
                match taken {
                    Some(Ok(())) => break,
                    Some(Err(error)) => {
                        tracing::info!(call = %talk.call, "an answer is of no use: {error}")
                    }
                    None => tracing::info!(call = %talk.call, "an answer has no description"),
                }
                return Farewell::HangUp;
            }
            Deed::End { code, reason } => {
                // 487: the requester has cancelled it.
                if code != 487 {
                    tracing::info!(call = %talk.call, code, reason, "a telephone is not reached");
                }
                return Farewell::Ended { code, reason };
            }
            Deed::Gone => return Farewell::HangUp,
            _ => {}
        }
    }
    let Some(codec) = talk.media.codec() else {
        return Farewell::HangUp;
    };
    let display = Some(outgoing.display.clone());
    match talk.enter(&*outgoing.room, display, codec, Pin::Waived) {
        Ok(visit) => {
            let _ = outgoing.tell.try_send(DialNews::Answered(visit.stay.id()));
            talk.stay(visit).await
        }
        Err(error) => {
            tracing::info!(call = %talk.call, "a telephone is not let in: {error}");
            Farewell::HangUp
        }
    }
}
