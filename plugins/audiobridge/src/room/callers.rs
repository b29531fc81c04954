//! Callers by telephone, from other plugins.

use std::sync::{Arc, Weak};

use portunus_audio::RtpLeg;
use portunus_core::media::MediaPlane;

use portunus_dsp::{AudioCodec, ParticipantId};
use portunus_resources::Id;
use portunus_telephony::{AudioRooms, Caller, Entrance, EntranceError, Stay, Staying};

use super::{Audience, Join, Link, RecordWish, Room, RoomState, Who};
use crate::settings::Settings;
use crate::shared::Shared;

/// The entrance of a room for callers.
#[derive(Debug)]
pub(crate) struct PhoneEntrance {
    room: Weak<Room>,
    id: Id,
    shared: Weak<Shared>,
}

impl PhoneEntrance {
    pub(crate) fn of(room: &Arc<Room>, shared: &Shared) -> Self {
        PhoneEntrance {
            room: Arc::downgrade(room),
            id: room.id.clone(),
            shared: shared.own.clone(),
        }
    }
}

/// All rooms, for plugins with callers. It holds the plugin weakly, because the plugin holds it.
pub(crate) struct PhoneRooms(pub(crate) Weak<Shared>);

impl AudioRooms for PhoneRooms {
    fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>> {
        let shared = self.0.upgrade()?;
        let room = shared.rooms.get(&shared.rooms.ids().parse(room)?).ok()?;
        Some(Arc::new(PhoneEntrance::of(&room, &shared)))
    }
}

impl Entrance for PhoneEntrance {
    fn room(&self) -> String {
        self.id.to_string()
    }

    fn wants_pin(&self) -> bool {
        let room = self.room.upgrade();
        room.is_some_and(|room| room.lock().profile.options().access.pin.is_some())
    }

    fn takes_pin(&self, pin: &str) -> bool {
        let room = self.room.upgrade();
        room.is_some_and(|room| room.lock().profile.options().access.takes_pin(Some(pin)))
    }

    fn enter(&self, caller: Caller) -> Result<Stay, EntranceError> {
        let (room, shared) = self
            .room
            .upgrade()
            .zip(self.shared.upgrade())
            .ok_or(EntranceError::Ended)?;
        let mut state = room.lock();
        let id = state
            .free_id(None, shared.rooms.ids())
            .map_err(|_| EntranceError::Ended)?;
        let number = state.bring(id.clone(), caller, &shared.media)?;
        drop(state);
        Ok(Stay::new(PhoneStay {
            room: Arc::downgrade(&room),
            id,
            number,
        }))
    }
}

/// A caller's stay in a room.
#[derive(Debug)]
struct PhoneStay {
    room: Weak<Room>,
    id: Id,
    /// Tells stays apart: ids may be used again.
    number: ParticipantId,
}

impl Staying for PhoneStay {
    fn id(&self) -> String {
        self.id.to_string()
    }

    fn toggle_mute(&self) -> Option<bool> {
        let room = self.room.upgrade()?;
        let mut state = room.lock();
        let muted = !state.caller(&self.id, self.number)?.settings.muted;
        state.mute(&self.id, muted, None).ok()?;
        Some(muted)
    }

    fn set_codec(&self, codec: AudioCodec) {
        if let Some(room) = self.room.upgrade() {
            room.lock().recode(&self.id, self.number, codec);
        }
    }
}

impl Drop for PhoneStay {
    fn drop(&mut self) {
        let Some(room) = self.room.upgrade() else {
            return;
        };
        let mut state = room.lock();
        if state.caller(&self.id, self.number).is_some() {
            state.remove_and_notify(&self.id, Audience::All);
        }
    }
}

impl RoomState {
    /// Lets a caller in, and tells the others.
    fn bring(
        &mut self,
        id: Id,
        caller: Caller,
        media: &MediaPlane,
    ) -> Result<ParticipantId, EntranceError> {
        if self.profile.has_ended() {
            return Err(EntranceError::Ended);
        }
        let options = self.profile.options();
        if !caller.is_invited {
            // A telephone has no token.
            if options.signed_tokens || self.profile.check_token(None).is_err() {
                return Err(EntranceError::Tokens);
            }
            if !options.access.takes_pin(caller.pin.as_deref()) {
                return Err(EntranceError::Pin);
            }
        }
        let join = Join {
            id: id.clone(),
            admin: false,
            settings: Settings::of_caller(caller.display, caller.codec, options),
            link: Link::Phone(Arc::new(RtpLeg::of(media, caller.leg))),
            setup: true,
            record: options.mjrs.then(RecordWish::default),
        };
        let number = self.join(Who::Caller(caller.tell), join);
        self.notify_joined(&id, true);
        Ok(number)
    }

    /// Changes the codec of a caller.
    fn recode(&mut self, id: &Id, number: ParticipantId, codec: AudioCodec) {
        let person = self.roster.get_mut(id);
        if let Some(person) = person.filter(|it| it.number == number) {
            person.settings.codec = codec;
            self.update(id);
        }
    }

    /// Returns the participant `id` if it is still this caller.
    fn caller(&self, id: &Id, number: ParticipantId) -> Option<&super::Participant> {
        self.roster.get(id).filter(|it| it.number == number)
    }
}
