//! A participant of LiveKit's rooms whose connection is served in the background: further offers are
//! answered, and the session is resumed.

use std::sync::{Arc, Weak};

use livekit_protocol::{
    SessionDescription, SignalTarget, SyncState, UpdateSubscription, signal_request,
    signal_response,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::announcements::{answer, candidate};
use super::join_error::{JoinError, PATIENCE};
use super::shared::Shared;
use crate::client::ClientError;
use crate::client::livekit::{Pass, Responses, Signal};
use crate::viewer::{Answering, PeerId};

use signal_request::Message as Request;
use signal_response::Message as Response;

/// A participant in a room. It leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    orders: UnboundedSender<Order>,
    /// Its PeerConnections.
    pub(super) peers: Vec<PeerId>,
}

/// What is asked of a participant's connection.
#[derive(Debug)]
pub(super) enum Order {
    /// Break off, and resume.
    Resume(oneshot::Sender<Result<(), JoinError>>),
    /// Leave.
    Leave(oneshot::Sender<()>),
}

/// The connection of a participant.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) signal: Signal,
    pub(super) responses: Responses,
    pub(super) pass: Pass,
    /// The PeerConnection for all that it receives.
    pub(super) receiving: Option<Receiving>,
}

/// A PeerConnection whose server offers again.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) peer: PeerId,
    pub(super) answering: Answering,
    /// The last answer.
    pub(super) answer: String,
}

impl Guest {
    /// Serves the connection of a participant with these PeerConnections.
    pub(super) fn new(line: Line, peers: Vec<PeerId>, shared: &Arc<Shared>) -> Self {
        let (orders, queue) = unbounded_channel();
        tokio::spawn(line.serve(queue, Arc::downgrade(shared)));
        Self { orders, peers }
    }

    /// Returns where it takes orders.
    pub(super) fn orders(&self) -> UnboundedSender<Order> {
        self.orders.clone()
    }

    /// Leaves the room.
    pub(super) async fn leave(self) {
        let (done, left) = oneshot::channel();
        if self.orders.send(Order::Leave(done)).is_ok() {
            let _ = left.await;
        }
    }
}

impl Receiving {
    /// Answers an offer of the server.
    pub(super) fn answer(
        &mut self,
        shared: &Shared,
        offer: &SessionDescription,
    ) -> Result<Request, JoinError> {
        let answered = self.answering.answer(&offer.sdp);
        let (text, agreed) = answered.map_err(|error| JoinError::Prepare(error.into()))?;
        shared.load.agree(self.peer, agreed);
        self.answer.clone_from(&text);
        Ok(answer(offer, text))
    }
}

impl Line {
    async fn serve(mut self, mut orders: UnboundedReceiver<Order>, shared: Weak<Shared>) {
        let mut is_open = true;
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Resume(done)) => {
                        let Some(shared) = shared.upgrade() else { return };
                        let resuming = timeout(PATIENCE, self.resume(&shared)).await;
                        let outcome = resuming.unwrap_or(Err(JoinError::NotConnected));
                        is_open = true;
                        let _ = done.send(outcome);
                    }
                    Some(Order::Leave(done)) => {
                        self.signal.leave().await;
                        let _ = done.send(());
                        return;
                    }
                    None => return,
                },
                response = self.responses.recv(), if is_open => match response {
                    Some(response) => {
                        let Some(shared) = shared.upgrade() else { return };
                        // The load thread notices that packets are missing.
                        let _ = self.take(&shared, &response);
                    }
                    None => is_open = false,
                },
            }
        }
    }

    /// Takes a response. Returns whether it was an offer.
    fn take(&mut self, shared: &Shared, response: &Response) -> Result<bool, JoinError> {
        let Some(receiving) = &mut self.receiving else {
            return Ok(false);
        };
        match response {
            Response::Offer(offer) => {
                self.signal.send(receiving.answer(shared, offer)?);
                return Ok(true);
            }
            Response::Trickle(trickle) if trickle.target() == SignalTarget::Subscriber => {
                if let Some(candidate) = candidate(trickle) {
                    shared.load.add_candidate(receiving.peer, candidate);
                }
            }
            Response::Leave(leave) => {
                let reason = leave.reason().as_str_name();
                return Err(JoinError::Dismissed(reason.to_owned()));
            }
            _ => {}
        }
        Ok(false)
    }

    /// Breaks the connection off and resumes the session, as SDKs do: with its state, and until the
    /// ICE restart that the server offers is answered.
    async fn resume(&mut self, shared: &Shared) -> Result<(), JoinError> {
        self.signal.break_off();
        (self.signal, self.responses) = Signal::resume(&self.pass, &shared.manners.trust).await?;
        let last = self.receiving.as_ref().map(|it| SessionDescription {
            r#type: "answer".to_owned(),
            sdp: it.answer.clone(),
            ..SessionDescription::default()
        });
        self.signal.send(Request::SyncState(SyncState {
            answer: last,
            subscription: Some(UpdateSubscription::default()),
            ..SyncState::default()
        }));
        if self.receiving.is_none() {
            return Ok(());
        }
        loop {
            let response = self.responses.recv().await.ok_or(ClientError::Closed)?;
            if self.take(shared, &response)? {
                return Ok(());
            }
        }
    }
}
