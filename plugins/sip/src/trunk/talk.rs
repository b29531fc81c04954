//! A running call of a trunk: the actions of the far end, one after the other.

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
use crate::descriptions::sdp_body;
use crate::forks::Forks;
use crate::sip_message::SipMessage;

/// A call of a trunk.
pub(super) struct Talk {
    pub(super) office: Arc<Office>,
    pub(super) call: CallId,
    pub(super) media: ServerCall,
    pub(super) legs: mpsc::Receiver<LegNews>,
    pub(super) events: mpsc::Receiver<AgentEvent>,
    /// The far end has asked for an offer in the call, and its ACK has the answer.
    offers: bool,
    keys: Keys,
    /// The descriptions of the far end before it accepted our call.
    forks: Forks,
}

/// An action of the far end.
#[derive(Debug)]
pub(super) enum Deed {
    /// It presses a key.
    Key(char),
    /// It rings, or sends early media.
    Progress,
    /// It has accepted our call, with this description.
    Answer(Option<String>),
    /// It has acknowledged our answer.
    Acknowledge(Arc<Request>),
    /// It has changed the call.
    Change,
    /// It is silent, or cannot be reached.
    Gone,
    /// The call has ended.
    End { code: u16, reason: String },
    /// Nothing, within the time limit.
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

    /// Returns the next action of the far end before `until`. Changes by the far end were answered.
    pub(super) async fn next(&mut self, until: Option<Instant>) -> Deed {
        // A century, instead of no limit.
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
                if let Some(sdp) = SipMessage::from(&response).sdp() {
                    self.forks.note(&dialog, &sdp);
                }
                Deed::Progress
            }
            Some(AgentEvent::Accepted {
                dialog, response, ..
            }) => {
                let forks = std::mem::take(&mut self.forks);
                let early = || forks.accepted(&dialog).map(str::to_owned);
                Deed::Answer(SipMessage::from(&response).sdp().or_else(early))
            }
            Some(AgentEvent::Acknowledged { request, .. }) => {
                if !std::mem::take(&mut self.offers) {
                    return Some(Deed::Acknowledge(request));
                }
                self.answered(&SipMessage::from(&request));
                Deed::Change
            }
            Some(AgentEvent::Ended { code, reason, .. }) => Deed::End { code, reason },
            Some(AgentEvent::Reinvite { request, .. }) => {
                self.change(&SipMessage::from(&request));
                // The telephone may be another one now.
                self.keys = Keys::default();
                Deed::Change
            }
            Some(AgentEvent::Request { request, .. }) => {
                let key = dtmf::key(&request)?;
                return self.keys.count(Way::Info).then_some(Deed::Key(key));
            }
            // The plugin ends, or the events exceeded their limit: the call must not remain.
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

    /// Answers a change by the far end.
    fn change(&mut self, invite: &SipMessage) {
        let sdp = invite.sdp();
        let offer = match &sdp {
            Some(sdp) => self.media.answer(sdp),
            // It asks for an offer, and gets the present media.
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

    /// Takes the far end's answer to the offer that it asked for.
    fn answered(&mut self, ack: &SipMessage) {
        let taken = ack.sdp().map(|answer| self.media.accept_answer(&answer));
        match taken {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::debug!(call = %self.call, "the answer to a change is of no use: {error}");
            }
            None => tracing::debug!(call = %self.call, "a change is not answered"),
        }
    }

    /// Ends the call. [`Deed::End`] still follows.
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

    /// Accepts the call.
    pub(super) fn accept(&self, sdp: String) {
        let body: Option<Body> = Some(sdp_body(sdp));
        self.office.command(Command::Accept {
            call: self.call,
            headers: Vec::new(),
            body,
        });
    }
}
