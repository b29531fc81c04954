//! Joining a room.

use std::sync::Arc;

use portunus_core::sdp::Direction;
use portunus_core::{Fields, JsepKind, Message};
use portunus_resources::{Asker, Id};

use super::rtp::{RtpRequest, address_json};
use super::{Answer, Attached, Place};
use crate::line::Wish;
use crate::refusal::Refusal;
use crate::room::{Join, Link, RecordWish, RoomState, Who};
use crate::settings::{Joining, Settings};
use crate::shared::Shared;

/// A request to join, with the id that it wants.
pub(crate) struct JoinRequest<'a, 'b> {
    fields: Fields<'a>,
    wish: &'b Joining<'a>,
    wanted: Option<Id>,
}

impl<'a, 'b> JoinRequest<'a, 'b> {
    /// Reads the ids of a request.
    pub(crate) fn read(
        fields: Fields<'a>,
        wish: &'b Joining<'a>,
        shared: &Shared,
    ) -> Result<Self, Refusal> {
        let ids = shared.rooms.ids();
        ids.required(fields, "room")?;
        let wanted = ids.wanted(fields, "id")?;
        Ok(JoinRequest {
            fields,
            wish,
            wanted,
        })
    }
}

impl Attached {
    pub(super) fn join(&mut self, message: &Message, asker: &Asker) -> Answer {
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
        let wish: Joining<'_> = fields.read()?;
        // With an offer, plain RTP is ignored.
        let rtp = RtpRequest::read(fields)?.filter(|_| jsep.is_none());
        let request = JoinRequest::read(fields, &wish, &self.shared)?;
        let room = self.shared.rooms.named(fields)?;
        let by_rtp = match rtp {
            // Opening a leg takes system calls, so the room is not locked meanwhile. It may change.
            Some(rtp) => {
                let join = self.shared.admitted(&room.lock(), &request, asker, true)?;
                let offers = wish.generate_offer;
                Some(rtp.open(&self.shared, join.settings.codec, offers)?)
            }
            None => None,
        };
        let mut state = room.lock();
        let join = self
            .shared
            .admitted(&state, &request, asker, by_rtp.is_some())?;

        let codec = join.settings.codec;
        let local = {
            let profile = &state.profile;
            match jsep.filter(|jsep| jsep.kind == JsepKind::Offer) {
                Some(jsep) => {
                    let wish = Wish {
                        codecs: &[codec],
                        direction: Direction::SendRecv,
                    };
                    let connection = &mut self.connection;
                    let offer = &jsep.description;
                    Some(connection.answer(&self.handle, offer, profile, wish)?)
                }
                None if wish.generate_offer && by_rtp.is_none() => {
                    let (connection, direction) = (&mut self.connection, Direction::SendRecv);
                    Some(connection.offer(&self.handle, profile, codec, direction, false)?)
                }
                None => None,
            }
        };
        if let Some(jsep) = jsep.filter(|jsep| jsep.kind == JsepKind::Answer) {
            self.connection.agreed(&self.handle, &jsep.description);
        }
        let address = by_rtp.as_ref().map(address_json);
        let (link, setup) = match (by_rtp, self.connection.link()) {
            (Some(rtp), _) => {
                let setup = !rtp.awaits_remote;
                (Link::Rtp(rtp), setup)
            }
            (None, Some(link)) => (Link::Peer(link.clone()), self.connection.is_up()),
            (None, None) => (Link::None, false),
        };
        let (id, is_rtp) = (join.id.clone(), address.is_some());
        let join = Join {
            link,
            setup,
            ..join
        };
        state.join(Who::Client(self.handle.clone()), join);
        // The others see its media later, even if it flows already.
        state.notify_joined(&id, false);
        if is_rtp && setup {
            state.send_state(&id);
        }
        let joined = state.welcome(&id, "joined").with_some("rtp", address);
        drop(state);
        self.place = Place::In(Arc::downgrade(&room), id);
        Ok((joined.into(), local))
    }
}

impl Shared {
    /// Checks a request, and returns the participant without its media.
    pub(crate) fn admitted(
        &self,
        room: &RoomState,
        request: &JoinRequest<'_, '_>,
        asker: &Asker,
        by_rtp: bool,
    ) -> Result<Join, Refusal> {
        let (fields, wish) = (request.fields, request.wish);
        room.profile.check_rtp(by_rtp)?;
        let admin = room.profile.admit(fields, wish.token, asker)?;
        let settings = Settings::joining(wish, room.profile.options())?;
        let id = room.free_id(request.wanted.clone(), self.rooms.ids())?;
        let (record, format) = (wish.record, wish.record_format);
        let record = RecordWish::new(record, wish.filename, format, asker.rights)?;
        if let Some(wish) = &record {
            room.people_recorder
                .check(&room.profile, wish.base.as_deref())?;
        }
        Ok(Join {
            id,
            admin,
            settings,
            link: Link::None,
            setup: false,
            record: record.or_else(|| room.profile.options().mjrs.then(RecordWish::default)),
        })
    }
}
