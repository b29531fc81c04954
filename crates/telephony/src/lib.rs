//! How telephones and audio rooms find each other: callers join rooms, and rooms call telephones.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::{Arc, OnceLock};

use portunus_audio::{AudioCodec, Leg};
use tokio::sync::mpsc;

/// The audio rooms and the telephone of a server. A plugin offers its own when it starts, and looks
/// up the other when it needs it. Offers must not keep their plugin alive, since the plugin keeps
/// this.
#[derive(Debug, Clone, Default)]
pub struct Telephony(Arc<Offered>);

#[derive(Default)]
struct Offered {
    audio_rooms: OnceLock<Arc<dyn AudioRooms>>,
    telephone: OnceLock<Arc<dyn Telephone>>,
    reception: OnceLock<Arc<dyn Reception>>,
}

impl fmt::Debug for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offered")
            .field("audio_rooms", &self.audio_rooms.get().is_some())
            .field("telephone", &self.telephone.get().is_some())
            .field("reception", &self.reception.get().is_some())
            .finish()
    }
}

impl Telephony {
    /// Offers audio rooms. A second offer has no effect.
    pub fn offer_audio_rooms(&self, rooms: Arc<dyn AudioRooms>) {
        // The rooms of the first offer stay.
        let _ = self.0.audio_rooms.set(rooms);
    }

    /// Returns the audio rooms, if a plugin has offered any.
    pub fn audio_rooms(&self) -> Option<&Arc<dyn AudioRooms>> {
        self.0.audio_rooms.get()
    }

    /// Offers a telephone. A second offer has no effect.
    pub fn offer_telephone(&self, telephone: Arc<dyn Telephone>) {
        let _ = self.0.telephone.set(telephone);
    }

    /// Offers a reception. It has to be there before the telephone starts. A second offer has no
    /// effect.
    pub fn offer_reception(&self, reception: Arc<dyn Reception>) {
        let _ = self.0.reception.set(reception);
    }

    /// Returns the reception, if there is one.
    pub fn reception(&self) -> Option<&Arc<dyn Reception>> {
        self.0.reception.get()
    }

    /// Returns the entrance of the room with this id: an audio room, or else one of the reception.
    pub fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>> {
        let audio_room = self.audio_rooms().and_then(|rooms| rooms.entrance(room));
        audio_room.or_else(|| self.reception()?.entrance(room))
    }

    /// Returns the telephone, if a plugin has offered one.
    pub fn telephone(&self) -> Option<&Arc<dyn Telephone>> {
        self.0.telephone.get()
    }
}

/// Audio rooms that callers can join.
pub trait AudioRooms: Send + Sync {
    /// Returns the entrance of the room with this id, or `None` if there is no such room.
    fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>>;
}

/// The entrance of an audio room.
pub trait Entrance: Send + Sync + fmt::Debug {
    /// The room's id.
    fn room(&self) -> String;

    /// Whether callers have to enter a pin.
    fn wants_pin(&self) -> bool;

    /// Whether `pin` is the room's pin.
    fn takes_pin(&self, pin: &str) -> bool;

    /// Lets a caller join.
    fn enter(&self, caller: Caller) -> Result<Stay, EntranceError>;
}

/// A caller on a telephone.
#[derive(Debug)]
pub struct Caller {
    /// Its call.
    pub call: DialId,
    /// The name that others see.
    pub display: Option<String>,
    /// The media: an audio leg whose far end is known. The room routes its mix into it.
    pub leg: Arc<Leg>,
    /// The codec in both directions.
    pub codec: AudioCodec,
    /// The pin that the caller has entered.
    pub pin: Option<String>,
    /// Whether the room has called the telephone. Then no pin is needed.
    pub is_invited: bool,
    /// Receives what the room does to the caller.
    pub tell: mpsc::Sender<CallerNews>,
}

/// An action of a room on a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerNews {
    /// The caller was removed, for example because the room has ended. The text gives the reason.
    Out(&'static str),
    /// The caller was muted (true) or unmuted.
    Muted(bool),
}

/// The reason why a caller cannot join.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntranceError {
    /// The room has ended meanwhile.
    #[error("the room has ended")]
    Ended,
    /// The pin is missing or wrong.
    #[error("the pin is wrong")]
    Pin,
    /// The room requires tokens.
    #[error("the room asks for tokens, which telephones do not have")]
    Tokens,
}

/// A caller's stay in a room. Dropping it ends the stay.
#[derive(Debug)]
pub struct Stay(Box<dyn Staying>);

/// A room's side of a stay. Dropping it removes the caller.
pub trait Staying: Send + Sync + fmt::Debug {
    /// The caller's id in the room.
    fn id(&self) -> String;

    /// Mutes or unmutes the caller. Returns whether it is muted now, or `None` if it has left.
    fn toggle_mute(&self) -> Option<bool>;

    /// Changes the codec in both directions.
    fn set_codec(&self, codec: AudioCodec);

    /// Takes a key that the caller has pressed.
    fn key(&self, _key: char) {}
}

impl Stay {
    /// A stay with this side of the room.
    pub fn new(stay: impl Staying + 'static) -> Self {
        Stay(Box::new(stay))
    }

    /// The caller's id in the room.
    pub fn id(&self) -> String {
        self.0.id()
    }

    /// Mutes or unmutes the caller. Returns whether it is muted now, or `None` if it has left.
    pub fn toggle_mute(&self) -> Option<bool> {
        self.0.toggle_mute()
    }

    /// Changes the codec in both directions.
    pub fn set_codec(&self, codec: AudioCodec) {
        self.0.set_codec(codec);
    }

    /// Takes a key that the caller has pressed.
    pub fn key(&self, key: char) {
        self.0.key(key);
    }
}

/// Calls telephones.
pub trait Telephone: Send + Sync {
    /// Starts to call a telephone, which joins a room when it answers. Returns immediately.
    fn dial(&self, call: Dialled) -> Result<DialId, DialError>;

    /// Ends a call of [`Telephone::dial`]. Returns false if there is no such call.
    fn end(&self, call: DialId) -> bool;

    /// Adds a trunk, or replaces the one of its name. Calls go on.
    fn set_trunk(&self, trunk: PhoneTrunk) -> Result<(), DialError> {
        Err(DialError::NoTrunk(trunk.name))
    }

    /// Removes a trunk of [`Telephone::set_trunk`]. Calls go on.
    fn remove_trunk(&self, _name: &str) {}

    /// Asks the far end of a call to call somebody else (REFER, RFC 3515): a `sip:` or `tel:` URI.
    /// The call ends once the far end has done so. Returns false if there is no such call.
    fn transfer(&self, _call: DialId, _to: &str) -> bool {
        false
    }
}

/// A call to a telephone.
#[derive(Debug)]
pub struct Dialled {
    /// A number, or a name known to the exchange.
    pub to: String,
    /// The trunk to use, or `None` for the first one.
    pub trunk: Option<String>,
    /// The name that others in the room see, or `None` for the number.
    pub display: Option<String>,
    /// The room that it joins.
    pub room: Arc<dyn Entrance>,
    /// Receives the progress of the call.
    pub tell: mpsc::Sender<DialNews>,
}

/// The id of a call that a room has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DialId(pub u64);

/// The progress of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialNews {
    /// It rings.
    Ringing,
    /// It was answered, and has this id in the room.
    Answered(String),
    /// It has ended or was not answered.
    Ended {
        /// The status code of SIP, 200 after a normal end.
        code: u16,
        /// Its text.
        reason: String,
    },
}

/// The reason why a telephone cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// There is no trunk with this name, or none at all.
    #[error("there is no trunk {0}")]
    NoTrunk(String),
    /// The text is neither a number nor a name.
    #[error("{0} is no number and no name of a telephone")]
    Address(String),
    /// The trunk may not call this number.
    #[error("the trunk does not call {0}")]
    Forbidden(String),
    /// All lines of the trunk are busy.
    #[error("all lines of the trunk are busy")]
    Busy,
    /// Another fault, such as no free media ports.
    #[error("{0}")]
    Fault(String),
}

/// A trunk that is set while the server runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhoneTrunk {
    /// Its name, which no other trunk has.
    pub name: String,
    /// The addresses and networks that call, such as `192.0.2.0/24`. Empty if it does not call.
    pub from: Vec<String>,
    /// The user of its digest when it calls. Empty if its address is enough.
    pub caller_user: String,
    /// The password of that user.
    pub caller_password: String,
    /// The numbers that may be called by it. Empty means all.
    pub called: Vec<String>,
    /// The numbers that may call. Empty means all.
    pub callers: Vec<String>,
    /// The server to call telephones by: a `sip:` URI. Empty disables it.
    pub server: String,
    /// The calling identity: a `sip:` URI. Needed with a server.
    pub identity: String,
    /// The user of the digest to the server. Empty for that of the identity.
    pub user: String,
    /// Its password.
    pub password: String,
    /// The maximum number of calls, in both directions.
    pub max_calls: usize,
}

/// A call that a [`PhoneTrunk`] brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingCall {
    /// The name of the trunk.
    pub trunk: String,
    /// The called number.
    pub called: String,
    /// The number of the caller, if it shows one.
    pub caller: Option<String>,
    /// The Call-ID.
    pub call_id: String,
}

/// The receiver of the calls of all [`PhoneTrunk`]s, whose rooms other trunks call as well.
pub trait Reception: Send + Sync {
    /// Returns the entrance for a call, or `None` to refuse it.
    fn receive(&self, call: &IncomingCall) -> Option<Arc<dyn Entrance>>;

    /// Returns the entrance of the room with this name, or `None` if there is no such room.
    fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>>;
}
