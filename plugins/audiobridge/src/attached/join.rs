//! Joining a room.

use std::sync::Arc;

use portunus_core::sdp::Direction;
use portunus_core::{Fields, JsepKind, Message, Rights};

use super::rtp::{RtpRequest, shown};
use super::{Answered, Attached, Place};
use crate::line::Wish;
use crate::members::check;
use crate::refusal::Refusal;
use crate::room::{Join, Link, RecordWish};
use crate::settings::{JOINING, Settings};

impl Attached {
    pub(super) fn join(&mut self, message: &Message, rights: Rights) -> Answered {
        let fields = Fields(&message.body);
        let jsep = message.jsep.as_ref();
        self.connection.check(jsep)?;
        if self.here().is_some() {
            return Err(Refusal::AlreadyJoined);
        }
        if self.heard().is_some() {
            return Err(Refusal::Listening);
        }
        check(fields, JOINING)?;
        // With an offer it is of no use.
        let rtp = RtpRequest::read(fields)?.filter(|_| jsep.is_none());
        let ids = self.shared.rooms.ids();
        ids.required(fields, "room")?;
        let wanted = ids.wanted(fields, "id")?;
        let room = self.shared.rooms.named(fields)?;
        let mut state = room.lock();
        if rtp.is_some() && !state.options.allow_rtp {
            return Err(Refusal::Unauthorized("no plain RTP in this room"));
        }
        let admin = state.admit(fields, (&self.handle, &message.scope))?;
        let settings = Settings::joining(fields, &state.options)?;
        let id = state.free_id(wanted, ids)?;
        let record = RecordWish::read(fields, rights)?;
        if let Some(wish) = &record {
            state.check_recording(wish.base.as_deref())?;
        }

        let record = record.or_else(|| state.options.mjrs.then(RecordWish::default));

        let offers = fields.boolean("generate_offer")?.unwrap_or(false);
        let codec = settings.codec;
        let local = {
            let about = (&state.id, &state.options);
            match jsep.filter(|jsep| jsep.kind == JsepKind::Offer) {
                Some(jsep) => {
                    let wish = Wish {
                        codecs: &[codec],
                        direction: Direction::SendRecv,
                    };
                    let connection = &mut self.connection;
                    let offer = &jsep.description;
                    Some(connection.answer(&self.handle, offer, about, wish)?)
                }
                None if offers && rtp.is_none() => {
                    let wish = (codec, Direction::SendRecv);
                    Some(self.connection.offer(&self.handle, about, wish, false)?)
                }
                None => None,
            }
        };
        if let Some(jsep) = jsep.filter(|jsep| jsep.kind == JsepKind::Answer) {
            self.connection.agreed(&self.handle, &jsep.description);
        }
        let by_rtp = rtp
            .map(|rtp| rtp.open(&self.shared, codec, offers))
            .transpose()?;
        let told = by_rtp.as_ref().map(shown);
        let (link, setup) = match (by_rtp, self.connection.link()) {
            (Some(rtp), _) => {
                let setup = !rtp.offered;
                (Link::Rtp(rtp), setup)
            }
            (None, Some(link)) => (Link::Peer(link.clone()), self.connection.is_up()),
            (None, None) => (Link::None, false),
        };
        let is_rtp = told.is_some();
        state.join(
            &self.handle,
            Join {
                id: id.clone(),
                admin,
                settings,
                link,
                setup,
                record,
            },
        );
        // Nobody has seen its media yet, even if it flows.
        state.tell_joined(&id, false);
        if is_rtp && setup {
            state.tell_shown(&id);
        }
        let joined = state.welcome(&id, "joined").with_some("rtp", told);
        drop(state);
        self.place = Place::In(Arc::downgrade(&room), id);
        Ok((joined.into(), local))
    }
}
