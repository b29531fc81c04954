//! Where plugins meet: callers by telephone come into the audio rooms of one plugin by another, and rooms call telephones.

use std::fmt;
use std::sync::{Arc, OnceLock};

use portunus_audio::{AudioCodec, Leg};
use tokio::sync::mpsc;

/// What plugins offer each other. Each sets its own when it starts, and looks for the others' when it needs them. What is offered does
/// not keep its plugin, which has these doors: neither would ever end.
#[derive(Debug, Clone, Default)]
pub struct Doors(Arc<Offered>);

#[derive(Default)]
struct Offered {
    audio_rooms: OnceLock<Arc<dyn AudioRooms>>,
    telephone: OnceLock<Arc<dyn Telephone>>,
}

impl fmt::Debug for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offered")
            .field("audio_rooms", &self.audio_rooms.get().is_some())
            .field("telephone", &self.telephone.get().is_some())
            .finish()
    }
}

impl Doors {
    /// Offers audio rooms; of two plugins the first does.
    pub fn offer_audio_rooms(&self, rooms: Arc<dyn AudioRooms>) {
        // The second one keeps its rooms to itself.
        let _ = self.0.audio_rooms.set(rooms);
    }

    /// The audio rooms, if a plugin has any.
    pub fn audio_rooms(&self) -> Option<&Arc<dyn AudioRooms>> {
        self.0.audio_rooms.get()
    }

    /// Offers a telephone; of two plugins the first does.
    pub fn offer_telephone(&self, telephone: Arc<dyn Telephone>) {
        let _ = self.0.telephone.set(telephone);
    }

    /// The telephone, if a plugin has one.
    pub fn telephone(&self) -> Option<&Arc<dyn Telephone>> {
        self.0.telephone.get()
    }
}

/// Audio rooms that callers are brought into.
pub trait AudioRooms: Send + Sync {
    /// The way into the room with this id; none if there is no such room.
    fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>>;
}

/// The way into an audio room.
pub trait Entrance: Send + Sync + fmt::Debug {
    /// The room's id.
    fn room(&self) -> String;

    /// Whether callers have to show a pin.
    fn wants_pin(&self) -> bool;

    /// Whether this is its pin.
    fn takes_pin(&self, pin: &str) -> bool;

    /// Brings a caller in.
    fn enter(&self, caller: Caller) -> Result<Stay, EntranceError>;
}

/// Somebody on a telephone.
#[derive(Debug)]
pub struct Caller {
    /// What others see.
    pub display: Option<String>,
    /// The media: an audio leg whose far end is known. The room routes its mix into it.
    pub leg: Arc<Leg>,
    /// What is sent both ways.
    pub codec: AudioCodec,
    /// The pin that the caller has shown.
    pub pin: Option<String>,
    /// The room has called: no pin is asked for.
    pub is_invited: bool,
    /// Where the caller is told what the room does to it.
    pub tell: mpsc::Sender<CallerNews>,
}

/// What a room does to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerNews {
    /// It is out: thrown out, or the room has ended. The text says why.
    Out(&'static str),
    /// It was muted, or is heard again.
    Muted(bool),
}

/// Why a caller does not come in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntranceError {
    /// The room has ended meanwhile.
    #[error("the room has ended")]
    Ended,
    /// The pin is missing or wrong.
    #[error("the pin is wrong")]
    Pin,
    /// The room takes only those who show a token.
    #[error("the room asks for tokens, which telephones do not have")]
    Tokens,
}

/// A caller's stay in a room, which ends when this is dropped.
#[derive(Debug)]
pub struct Stay(Box<dyn Staying>);

/// How a room keeps a caller: its drop takes the caller out.
pub trait Staying: Send + Sync + fmt::Debug {
    /// The caller's id in the room.
    fn id(&self) -> String;

    /// Mutes the caller or lets it be heard; returns what it is now, none if it is out.
    fn toggle_mute(&self) -> Option<bool>;

    /// The caller is sent, and sends, another codec from now on.
    fn set_codec(&self, codec: AudioCodec);
}

impl Stay {
    /// The stay that a room keeps so.
    pub fn new(stay: impl Staying + 'static) -> Self {
        Stay(Box::new(stay))
    }

    /// The caller's id in the room.
    pub fn id(&self) -> String {
        self.0.id()
    }

    /// Mutes the caller or lets it be heard; returns what it is now, none if it is out.
    pub fn toggle_mute(&self) -> Option<bool> {
        self.0.toggle_mute()
    }

    /// The caller is sent, and sends, another codec from now on.
    pub fn set_codec(&self, codec: AudioCodec) {
        self.0.set_codec(codec);
    }
}

/// What calls telephones.
pub trait Telephone: Send + Sync {
    /// Calls a telephone and brings it into a room. It returns at once.
    fn dial(&self, call: Dialled) -> Result<DialId, DialError>;

    /// Ends a call that [`Telephone::dial`] began; false if there is none.
    fn end(&self, call: DialId) -> bool;
}

/// A call to a telephone.
#[derive(Debug)]
pub struct Dialled {
    /// A number, or a name that the exchange knows.
    pub to: String,
    /// The trunk to call by; none: the first.
    pub trunk: Option<String>,
    /// What others in the room see; none: the number.
    pub display: Option<String>,
    /// The room.
    pub room: Arc<dyn Entrance>,
    /// Where is told how it goes.
    pub tell: mpsc::Sender<DialNews>,
}

/// A call that a room has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DialId(pub u64);

/// How a call goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialNews {
    /// It rings.
    Ringing,
    /// It was answered, and is in the room under this id.
    Answered(String),
    /// It has ended, or was not answered: the code of SIP and its text.
    Ended {
        /// The status code; 200 after an end in order.
        code: u16,
        /// Its text.
        reason: String,
    },
}

/// Why nobody is called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// There is no trunk of this name, or none at all.
    #[error("there is no trunk {0}")]
    NoTrunk(String),
    /// It is no number and no name.
    #[error("{0} is no number and no name of a telephone")]
    Address(String),
    /// The trunk is not to call there.
    #[error("the trunk does not call {0}")]
    Forbidden(String),
    /// All lines of the trunk are busy.
    #[error("all lines of the trunk are busy")]
    Busy,
    /// No media ports, or another fault of ours.
    #[error("{0}")]
    Fault(String),
}
