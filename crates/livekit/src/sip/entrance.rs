//! The ways of telephones into rooms.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use livekit_protocol::participant_info;
use portunus_telephony::{Caller, Entrance, EntranceError, IncomingCall, Stay};
use tokio::sync::mpsc;

use super::dispatch::{Choice, RoomName};
use super::line::Line;
use super::{CallEntry, Sip, attribute};
use crate::guest::{Guest, GuestNews, GuestProfile};
use crate::hall::Hall;
use crate::ids::IdKind;

/// The entrance for a call that comes in.
#[derive(Debug)]
pub(super) struct IncomingEntrance {
    pub(super) sip: Sip,
    /// The rooms that it may enter, by their pins.
    pub(super) choices: Vec<Choice>,
    /// The call. `None` for a trunk of the configuration, whose calls name a room.
    pub(super) call: Option<IncomingCall>,
}

impl IncomingEntrance {
    fn choice(&self, pin: Option<&str>) -> Option<&Choice> {
        let pin = pin.unwrap_or_default();
        self.choices.iter().find(|choice| choice.pin == pin)
    }

    /// Returns how the caller is seen.
    fn profile(&self, choice: &Choice, display: Option<String>) -> GuestProfile {
        let number = self.call.as_ref().and_then(|call| call.caller.clone());
        let number = number.or_else(|| display.clone());
        let number = number.unwrap_or_else(|| "unknown".to_owned());
        let mut attributes = choice.attributes.clone();
        let mut set = |name: &str, value: &str| {
            attributes.insert(name.to_owned(), value.to_owned());
        };
        set(attribute::CALL_ID, &IdKind::SipCall.random());
        set(attribute::STATUS, "active");
        if let Some(call) = &self.call {
            set(attribute::FULL_CALL_ID, &call.call_id);
            set(attribute::TRUNK, &call.trunk);
            set(attribute::TRUNK_NUMBER, &call.called);
            set(attribute::RULE, &choice.rule);
        }
        let shown = match choice.hides_number {
            // The last digits tell callers apart.
            true => {
                let skipped = number.chars().count().saturating_sub(4);
                number.chars().skip(skipped).collect()
            }
            false => {
                set(attribute::NUMBER, &number);
                number.clone()
            }
        };
        let identity = match choice.hides_number {
            true => IdKind::SipCall.random().replace("SCL_", ""),
            false => number,
        };
        GuestProfile {
            identity: format!("sip_{identity}"),
            name: display
                .filter(|_| !choice.hides_number)
                .unwrap_or_else(|| format!("Phone {shown}")),
            metadata: choice.metadata.clone(),
            attributes,
            kind: participant_info::Kind::Sip,
        }
    }
}

impl Entrance for IncomingEntrance {
    fn room(&self) -> String {
        match (&self.call, self.choices.first()) {
            (Some(call), _) => call.trunk.clone(),
            (None, Some(choice)) => choice.room.name(),
            (None, None) => String::new(),
        }
    }

    fn wants_pin(&self) -> bool {
        self.choices.iter().all(|choice| !choice.pin.is_empty())
    }

    fn takes_pin(&self, pin: &str) -> bool {
        self.choice(Some(pin)).is_some()
    }

    fn enter(&self, caller: Caller) -> Result<Stay, EntranceError> {
        let choice = self.choice(caller.pin.as_deref());
        let choice = choice.ok_or(EntranceError::Pin)?;
        let means = self.sip.means().ok_or(EntranceError::Ended)?;
        let name = choice.room.name();
        let hall = means.halls.open(&name, choice.room_config.as_ref());
        let hall = hall.map_err(|error| {
            tracing::warn!(room = name, "a telephone is not let in: {error}");
            EntranceError::Ended
        })?;
        let mut profile = self.profile(choice, caller.display.clone());
        let id = hall.id_of(&profile.identity);
        if hall.room.lock().person(&id).is_some() {
            // The same number calls twice.
            let random = IdKind::SipCall.random();
            profile.identity = format!("{}_{}", profile.identity, random.replace("SCL_", ""));
        }
        let identity = profile.identity.clone();
        let entered = Guest::enter(&hall, &means.media, profile);
        let entered = entered.map_err(|_| EntranceError::Ended)?;
        let entry = CallEntry {
            room: hall.name.clone(),
            identity,
        };
        connect(&self.sip, caller, entered, entry)
    }
}

/// The entrance for a telephone that is called. Its guest waits in the room.
#[derive(Debug)]
pub(super) struct OutgoingEntrance {
    pub(super) sip: Sip,
    pub(super) entry: CallEntry,
    pub(super) waiting: Waiting,
}

/// A guest whose telephone has not answered yet. `None` once it has.
pub(super) type Waiting = std::sync::Arc<Mutex<Option<(Guest, mpsc::Receiver<GuestNews>)>>>;

impl Entrance for OutgoingEntrance {
    fn room(&self) -> String {
        self.entry.room.clone()
    }

    fn wants_pin(&self) -> bool {
        false
    }

    fn takes_pin(&self, _: &str) -> bool {
        true
    }

    fn enter(&self, caller: Caller) -> Result<Stay, EntranceError> {
        let waiting = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.take()
        };
        let (guest, news) = waiting.ok_or(EntranceError::Ended)?;
        guest.set_attributes([(attribute::STATUS.to_owned(), "active".to_owned())]);
        connect(&self.sip, caller, (guest, news), self.entry.clone())
    }
}

fn connect(
    sip: &Sip,
    caller: Caller,
    entered: (Guest, mpsc::Receiver<GuestNews>),
    entry: CallEntry,
) -> Result<Stay, EntranceError> {
    let means = sip.means().ok_or(EntranceError::Ended)?;
    let call = caller.call;
    let line = Line::connect(caller, entered, &means.audio, &means.media, sip.clone());
    let line = line.map_err(|error| {
        tracing::warn!(room = entry.room, "a telephone has no line: {error}");
        EntranceError::Ended
    })?;
    sip.begins(call, entry);
    Ok(Stay::new(line))
}

/// Returns the way into a room that a trunk of the configuration calls by its name.
pub(super) fn by_name(sip: Sip, hall: &Hall) -> IncomingEntrance {
    IncomingEntrance {
        sip,
        choices: vec![Choice {
            rule: String::new(),
            pin: String::new(),
            room: RoomName::Fixed(hall.name.clone()),
            metadata: String::new(),
            attributes: HashMap::new(),
            hides_number: false,
            room_config: None,
        }],
        call: None,
    }
}
