//! Joining a room.

use std::sync::Arc;

use portunus_core::sdp::Direction;
use portunus_core::{Fields, JsepKind, Message};
use portunus_resources::{Asker, Id};

use super::rtp::{RtpRequest, shown};
use super::{Answer, Attached, Place};
use crate::line::Wish;
use crate::refusal::Refusal;
use crate::room::{Join, Link, RecordWish, RoomState, Who};
use crate::settings::{Joining, Settings};

impl Attached {
    pub(super) fn join(&mut self, message: &Message, asker: &Asker) -> Answer {
        let fields = Fields(&message.body);
        let jsep = message.jsep.as_ref();
        self.connection.check(jsep)?;
        if self.here().is_some() {
            return Err(Refusal::AlreadyJoined);
        }
        if self.heard().is_some() {
            return Err(Refusal::Listening);
        }
        let wish: Joining<'_> = fields.read()?;
        // With an offer it is of no use.
        let rtp = RtpRequest::read(fields)?.filter(|_| jsep.is_none());
        let ids = self.shared.rooms.ids();
        ids.required(fields, "room")?;
        let wanted = ids.wanted(fields, "id")?;
        let room = self.shared.rooms.named(fields)?;
        let by_rtp = match rtp {
            // It takes calls of the system: nobody in the room waits for them, and it may have changed by then.
            Some(rtp) => {
                let asked = (fields, &wish, wanted.clone());
                let join = self.admitted(&room.lock(), asked, asker, true)?;
                let offers = wish.generate_offer;
                Some(rtp.open(&self.shared, join.settings.codec, offers)?)
            }
            None => None,
        };
        let mut state = room.lock();
        let asked = (fields, &wish, wanted);
        let join = self.admitted(&state, asked, asker, by_rtp.is_some())?;

        let codec = join.settings.codec;
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
                None if wish.generate_offer && by_rtp.is_none() => {
                    let wish = (codec, Direction::SendRecv);
                    Some(self.connection.offer(&self.handle, about, wish, false)?)
                }
                None => None,
            }
        };
        if let Some(jsep) = jsep.filter(|jsep| jsep.kind == JsepKind::Answer) {
            self.connection.agreed(&self.handle, &jsep.description);
        }
        let told = by_rtp.as_ref().map(shown);
        let (link, setup) = match (by_rtp, self.connection.link()) {
            (Some(rtp), _) => {
                let setup = !rtp.offered;
                (Link::Rtp(rtp), setup)
            }
            (None, Some(link)) => (Link::Peer(link.clone()), self.connection.is_up()),
            (None, None) => (Link::None, false),
        };
        let (id, is_rtp) = (join.id.clone(), told.is_some());
        let join = Join {
            link,
            setup,
            ..join
        };
        state.join(Who::Client(self.handle.clone()), join);
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

    /// What a request asks for of a room that lets its client in; its media is still to be said.
    fn admitted(
        &self,
        room: &RoomState,
        (fields, wish, wanted): (Fields<'_>, &Joining<'_>, Option<Id>),
        asker: &Asker,
        by_rtp: bool,
    ) -> Result<Join, Refusal> {
        room.check_rtp(by_rtp)?;
        let admin = room.admit(fields, wish.token, asker)?;
        let settings = Settings::joining(wish, &room.options)?;
        let id = room.free_id(wanted, self.shared.rooms.ids())?;
        let (record, format) = (wish.record, wish.record_format);
        let record = RecordWish::new(record, wish.filename, format, asker.rights)?;
        if let Some(wish) = &record {
            room.check_recording(wish.base.as_deref())?;
        }
        Ok(Join {
            id,
            admin,
            settings,
            link: Link::None,
            setup: false,
            record: record.or_else(|| room.options.mjrs.then(RecordWish::default)),
        })
    }
}
