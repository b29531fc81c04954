//! Listening to a room without being in it, as WHEP does.

use std::sync::Arc;

use portunus_core::sdp::{Direction, Kind};
use portunus_core::{Fields, Jsep, JsepKind, Message};
use portunus_dsp::AudioCodec;
use portunus_resources::{Asker, RoomContent};
use serde::Deserialize;

use super::changes::ok;
use super::{Answer, Attached, Place};
use crate::codec::sdp_codec;
use crate::line::Wish;
use crate::refusal::Refusal;
use crate::room::Room;

/// The codecs for listeners, in order of preference.
const CODECS: [AudioCodec; 3] = [AudioCodec::Opus, AudioCodec::Pcma, AudioCodec::Pcmu];

/// The answer to a listener.
pub(super) const WISH: Wish<'static> = Wish {
    codecs: &CODECS,
    direction: Direction::SendOnly,
};

/// The members of `listen`.
#[derive(Deserialize)]
pub(crate) struct ListenRequest<'a> {
    #[serde(rename = "pin")]
    _pin: Option<&'a str>,
    pub(crate) token: Option<&'a str>,
    #[serde(rename = "secret")]
    _secret: Option<&'a str>,
}

impl Attached {
    /// Answers the offer of a listener, or offers if there is none.
    pub(super) fn listen(&mut self, message: &Message, asker: &Asker) -> Answer {
        let fields = Fields(&message.body);
        let jsep = message.jsep.as_ref();
        self.connection.check(jsep)?;
        self.check_not_elsewhere()?;
        if self.participation().is_some() {
            return Err(Refusal::AlreadyJoined);
        }
        if self.listened_room().is_some() {
            return Err(Refusal::Listening);
        }
        let ListenRequest { token, .. } = fields.read()?;
        let room = self.shared.rooms.named(fields)?;
        let state = &mut *room.lock();
        state.profile.admit(fields, token, asker)?;
        let profile = &state.profile;
        let connection = &mut self.connection;
        let local = match jsep {
            Some(jsep) => {
                check_codecs(jsep)?;
                connection.answer(&self.handle, &jsep.description, profile, WISH)?
            }
            None => {
                let codec = AudioCodec::Opus;
                connection.offer(&self.handle, profile, codec, Direction::SendOnly, false)?
            }
        };
        state.listeners.add(&self.handle);
        if let Some(link) = self.connection.link() {
            let (handle, line) = (self.handle.id(), link.line.clone());
            state
                .listeners
                .send_mix(handle, line, &state.mix, &state.profile);
        }
        let listening = state.message("listening");
        self.place = Place::Listening(Arc::downgrade(&room));
        Ok((listening.into(), Some(local)))
    }

    /// Takes the answer of a listener, or answers its new offer.
    pub(super) fn configure_listener(&mut self, room: &Arc<Room>, jsep: Option<&Jsep>) -> Answer {
        let Some(jsep) = jsep else {
            return Ok((ok(), None));
        };
        let state = &mut *room.lock();
        let local = match jsep.kind {
            JsepKind::Offer => {
                check_codecs(jsep)?;
                let (offer, profile) = (&jsep.description, &state.profile);
                Some(self.connection.answer(&self.handle, offer, profile, WISH)?)
            }
            JsepKind::Answer => {
                self.connection.agreed(&self.handle, &jsep.description);
                None
            }
        };
        if let Some(link) = self.connection.link() {
            let (handle, line) = (self.handle.id(), link.line.clone());
            state
                .listeners
                .send_mix(handle, line, &state.mix, &state.profile);
        }
        Ok((ok(), local))
    }
}

/// Checks that a listener offers a codec that rooms send.
pub(super) fn check_codecs(jsep: &Jsep) -> Result<(), Refusal> {
    let first = jsep.description.active(Kind::Audio).next();
    let offered = |codec: &AudioCodec| {
        let codec = sdp_codec(*codec);
        first.is_some_and(|media| media.codecs.iter().any(|it| codec.matches(it)))
    };
    match CODECS.iter().any(offered) {
        true => Ok(()),
        false => Err(Refusal::Sdp("no codec of this room is offered".to_owned())),
    }
}
