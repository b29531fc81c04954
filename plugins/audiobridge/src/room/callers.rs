//! Callers by telephone, whom another plugin brings in.

use std::sync::{Arc, Weak};

use portunus_audio::RtpLeg;
use portunus_dsp::{AudioCodec, ParticipantId};
use portunus_resources::Id;
use portunus_telephony::{AudioRooms, Caller, Entrance, EntranceError, Stay, Staying};

use super::{Audience, Join, Link, RecordWish, Room, RoomState, Who};
use crate::plugin::Shared;
use crate::settings::Settings;

/// The way into a room for callers.
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

/// The rooms as they are offered to callers: without keeping the plugin, which itself keeps what is offered.
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
        room.is_some_and(|room| room.lock().options.access.pin.is_some())
    }

    fn takes_pin(&self, pin: &str) -> bool {
        let room = self.room.upgrade();
        room.is_some_and(|room| room.lock().options.access.takes_pin(Some(pin)))
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
        let number = state.bring(id.clone(), caller)?;
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
    /// Ids may be used again.
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
            state.gone(&self.id, Audience::All);
        }
    }
}

impl RoomState {
    /// Lets a caller in; the others are told.
    fn bring(&mut self, id: Id, caller: Caller) -> Result<ParticipantId, EntranceError> {
        if self.destroyed {
            return Err(EntranceError::Ended);
        }
        if !caller.is_invited {
            // A telephone has no token, and no client's signed one.
            if self.options.signed_tokens || self.allowed.check(None).is_err() {
                return Err(EntranceError::Tokens);
            }
            if !self.options.access.takes_pin(caller.pin.as_deref()) {
                return Err(EntranceError::Pin);
            }
        }
        let join = Join {
            id: id.clone(),
            admin: false,
            settings: Settings::of_caller(caller.display, caller.codec, &self.options),
            link: Link::Phone(Arc::new(RtpLeg::of(&self.media, caller.leg))),
            setup: true,
            record: self.options.mjrs.then(RecordWish::default),
        };
        self.join(Who::Caller(caller.tell), join);
        self.tell_joined(&id, true);
        let number = self.roster.get(&id).map(|person| person.number);
        number.ok_or(EntranceError::Ended)
    }

    /// A caller speaks another codec from now on.
    fn recode(&mut self, id: &Id, number: ParticipantId, codec: AudioCodec) {
        let person = self.roster.get_mut(id);
        if let Some(person) = person.filter(|it| it.number == number) {
            person.settings.codec = codec;
            self.remix(id);
        }
    }

    /// The participant `id`, if it is still this caller.
    fn caller(&self, id: &Id, number: ParticipantId) -> Option<&super::Participant> {
        self.roster.get(id).filter(|it| it.number == number)
    }
}
