//! A call of a trunk while it goes on: what the far end does, one thing after the other.

use std::sync::Arc;
use std::time::Duration;

use portunus_call::{LegEvent, LegNews, LegSide, ServerCall};
use portunus_sip::agent::{AgentEvent, Body, CallId, Command};
use portunus_sip::dtmf;
use portunus_sip::message::Request;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::Office;
use super::keys::{Keys, Way};
use crate::calling::sdp_body;
use crate::forks::Forks;
use crate::seen::Seen;

/// A call of a trunk.
pub(super) struct Talk {
    pub(super) office: Arc<Office>,
    pub(super) call: CallId,
    pub(super) media: ServerCall,
    pub(super) legs: mpsc::Receiver<LegNews>,
    pub(super) events: mpsc::Receiver<AgentEvent>,
    /// The far end has asked for an offer within the call, and answers it with its ACK.
    offers: bool,
    keys: Keys,
    /// What the far end has described before it took our call.
    forks: Forks,
}

/// What the far end does.
#[derive(Debug)]
pub(super) enum Deed {
    /// It presses a key.
    Key(char),
    /// It rings, or plays something while it does.
    Progress,
    /// It has answered our call, with this description.
    Answer(Option<String>),
    /// It has acknowledged our answer.
    Acknowledge(Arc<Request>),
    /// It has changed the call.
    Change,
    /// It is not heard any more, or cannot be sent to.
    Gone,
    /// The call has ended.
    End { code: u16, reason: String },
    /// Nothing, for as long as was waited.
    Nothing,
}

impl Talk {
    pub(super) fn new(
        office: Arc<Office>,
        call: CallId,
        (media, legs): (ServerCall, mpsc::Receiver<LegNews>),
        events: mpsc::Receiver<AgentEvent>,
    ) -> Self {
        Talk {
            office,
            call,
            media,
            legs,
            events,
            offers: false,
            keys: Keys::default(),
            forks: Forks::default(),
        }
    }

    /// The next thing that the far end does, if it does anything before `until`. Changes that it asks for have been answered.
    pub(super) async fn next(&mut self, until: Option<Instant>) -> Deed {
        // A century: nothing is waited for.
        let until = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(3_000_000_000));
        loop {
            let waited = timeout_at(until, async {
                tokio::select! {
                    event = self.events.recv() => Ok(event),
                    Some(news) = self.legs.recv() => Err(news),
                }
            });
            match waited.await {
                Err(_) => return Deed::Nothing,
                Ok(Ok(event)) => {
                    if let Some(deed) = self.of_event(event) {
                        return deed;
                    }
                }
                Ok(Err(news)) => match news.event {
                    LegEvent::Key {
                        by: LegSide::FarEnd,
                        ..
                    } => {
                        let key = news.event.digit();
                        if let Some(key) = key.filter(|_| self.keys.count(Way::Sound)) {
                            return Deed::Key(key);
                        }
                    }
                    LegEvent::Silent | LegEvent::Failed => return Deed::Gone,
                    _ => {}
                },
            }
        }
    }

    fn of_event(&mut self, event: Option<AgentEvent>) -> Option<Deed> {
        Some(match event {
            Some(AgentEvent::Provisional {
                dialog, response, ..
            }) => {
                if let Some(sdp) = Seen::from(&response).sdp() {
                    self.forks.note(&dialog, &sdp);
                }
                Deed::Progress
            }
            Some(AgentEvent::Accepted {
                dialog, response, ..
            }) => {
                let forks = std::mem::take(&mut self.forks);
                let early = || forks.accepted(&dialog).map(str::to_owned);
                Deed::Answer(Seen::from(&response).sdp().or_else(early))
            }
            Some(AgentEvent::Acknowledged { request, .. }) => {
                if !std::mem::take(&mut self.offers) {
                    return Some(Deed::Acknowledge(request));
                }
                self.answered(&Seen::from(&request));
                Deed::Change
            }
            Some(AgentEvent::Ended { code, reason, .. }) => Deed::End { code, reason },
            Some(AgentEvent::Reinvite { request, .. }) => {
                self.change(&Seen::from(&request));
                // It may be another telephone from now on.
                self.keys = Keys::default();
                Deed::Change
            }
            Some(AgentEvent::Request { request, .. }) => {
                let key = dtmf::key(&request)?;
                return self.keys.count(Way::Info).then_some(Deed::Key(key));
            }
            // The plugin ends, or the far end did more than there was room for: the call is not left to itself.
            None => {
                self.hang_up();
                Deed::End {
                    code: 500,
                    reason: String::new(),
                }
            }
            Some(_) => return None,
        })
    }

    /// The far end changes the call, holds it, or only says that it is there.
    fn change(&mut self, invite: &Seen) {
        let sdp = invite.sdp();
        let offer = match &sdp {
            Some(sdp) => self.media.answer(sdp),
            // It asks for an offer: it gets what there is.
            None => self.media.offer(),
        };
        self.offers = sdp.is_none() && offer.is_ok();
        self.office.command(match offer {
            Ok(sdp) => Command::AcceptReinvite {
                call: self.call,
                headers: Vec::new(),
                body: Some(sdp_body(sdp)),
            },
            Err(error) => {
                tracing::debug!(call = %self.call, "a change of a call is refused: {error}");
                Command::RejectReinvite {
                    call: self.call,
                    code: 488,
                    headers: Vec::new(),
                }
            }
        });
    }

    /// The far end has answered the offer that it has asked for.
    fn answered(&mut self, ack: &Seen) {
        let taken = ack.sdp().map(|answer| self.media.accept_answer(&answer));
        match taken {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::debug!(call = %self.call, "the answer to a change is of no use: {error}");
            }
            None => tracing::debug!(call = %self.call, "a change is not answered"),
        }
    }

    /// Ends the call from this side; [`Deed::End`] still comes.
    pub(super) fn hang_up(&self) {
        self.office.command(Command::Hangup {
            call: self.call,
            headers: Vec::new(),
        });
    }

    /// Refuses the call.
    pub(super) fn reject(&self, code: u16) {
        self.office.command(Command::Reject {
            call: self.call,
            code,
            reason: None,
            headers: Vec::new(),
        });
    }

    /// Takes the call.
    pub(super) fn accept(&self, sdp: String) {
        let body: Option<Body> = Some(sdp_body(sdp));
        self.office.command(Command::Accept {
            call: self.call,
            headers: Vec::new(),
            body,
        });
    }
}
