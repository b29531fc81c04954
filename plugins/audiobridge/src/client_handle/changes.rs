//! Changing the settings and the PeerConnection of a participant.

use portunus_core::sdp::Direction;
use portunus_core::{Fields, Jsep, JsepKind, LocalJsep, Message, Rights};
use portunus_resources::Id;
use serde_json::{Value, json};

use super::rtp::RtpRequest;
use super::{Answer, Attached};
use crate::line::Wish;
use crate::refusal::Refusal;
use crate::room::{Link, RoomState};
use crate::settings::Configuring;
use crate::target;

impl Attached {
    pub(super) fn configure(&mut self, message: &Message, rights: Rights) -> Answer {
        let fields = Fields(&message.body);
        let jsep = message.jsep.as_ref();
        self.connection.check(jsep)?;
        if let Some(room) = self.listened_room() {
            return self.configure_listener(&room, jsep);
        }
        let (room, id) = self
            .participation()
            .ok_or(Refusal::NotInRoom("configure"))?;
        let asked: Configuring<'_> = fields.read()?;
        let rtp = RtpRequest::read(fields)?;
        let mut state = room.lock();
        let change = state.change(&id, &asked, rights)?;
        let remote = rtp.and_then(|rtp| rtp.remote);
        let remote = remote.filter(|_| state.awaits_remote(&id));
        if let Some(remote) = remote {
            target::check(remote.ip(), &self.shared.outgoing)?;
        }
        let local = self.negotiate(&mut state, &id, &asked, jsep)?;
        // Nothing is refused from here on.
        if let Some(change) = change {
            state.configure(&id, change);
        }
        if let Some(remote) = remote {
            state.rtp_came_up(&id, remote);
        }
        Ok((ok(), local))
    }

    /// Answers an offer, accepts an answer, or offers, as requested.
    fn negotiate(
        &mut self,
        state: &mut RoomState,
        id: &Id,
        asked: &Configuring<'_>,
        jsep: Option<&Jsep>,
    ) -> Result<Option<LocalJsep>, Refusal> {
        let Some(codec) = state.codec_of(id) else {
            return Ok(None);
        };
        let Some(jsep) = jsep else {
            let again = asked.update && self.connection.is_ours();
            if !again && !asked.generate_offer {
                return Ok(None);
            }
            let (connection, profile) = (&mut self.connection, &state.profile);
            let local =
                connection.offer(&self.handle, profile, codec, Direction::SendRecv, again)?;
            return Ok(Some(local));
        };
        let local = match jsep.kind {
            JsepKind::Offer => {
                let wish = Wish {
                    codecs: &[codec],
                    direction: Direction::SendRecv,
                };
                let offer = &jsep.description;
                let (connection, profile) = (&mut self.connection, &state.profile);
                Some(connection.answer(&self.handle, offer, profile, wish)?)
            }
            JsepKind::Answer => {
                self.connection.agreed(&self.handle, &jsep.description);
                None
            }
        };
        if let Some(link) = self.connection.link() {
            state.link(id, Link::Peer(link.clone()), self.connection.is_up());
        }
        Ok(local)
    }
}

/// Returns the event about a request that succeeded.
pub(crate) fn ok() -> Value {
    json!({ "audiobridge": "event", "result": "ok" })
}
