//! The plugin's part of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use portunus_core::configuration::{Configuration, Entry, Section};
use portunus_core::{FieldError, Fields, JsonForm, Networks};
use portunus_resources::{Id, Ids, Limits, Written};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::options::RoomOptions;
use crate::pace::Rate;
use crate::post::Patience;
use crate::refusal::Refusal;
use crate::room::LONGEST;

/// What the plugin can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextRoomConfig {
    /// Needed to create rooms, and to see private ones.
    #[serde(with = "portunus_core::configuration::optional")]
    pub admin_key: Option<String>,
    /// How much white space the JSON of data channels has.
    pub json: JsonForm,
    /// The networks that requests may have messages posted to: those of the server.
    #[serde(skip)]
    pub outgoing: Networks,
    /// Ids of rooms are text.
    pub string_ids: bool,
    /// The file that permanent rooms are written to; none: there are none.
    #[serde(with = "portunus_core::configuration::optional")]
    pub save: Option<PathBuf>,
    /// Rooms that one client may make without the right to administer; 0: none.
    pub max_per_client: usize,
    /// The same of all such clients together.
    pub max_from_clients: usize,
    /// How long what such a client has made is there without being used; 0: for ever.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub unused_timeout: Duration,
    /// Messages a second that may come on a client's data channels; 0: any number.
    pub message_rate: u32,
    /// Messages that may come at once.
    pub message_burst: u32,
    /// Bytes a second that may come on a client's data channels; 0: any number.
    pub byte_rate: u32,
    /// Bytes that may come at once.
    pub byte_burst: u32,
    /// Bytes of the longest message that may come.
    pub max_message: usize,
    /// How long a back-end may take for an answer.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub post_timeout: Duration,
    /// How often a message is posted again after a failure.
    pub post_retries: u32,
    /// The rooms that are there from the start.
    #[serde(
        rename = "room",
        skip_deserializing,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub rooms: Vec<ConfiguredRoom>,
}

impl Default for TextRoomConfig {
    /// A person writes a message a second at most; a program that shares a pointer or a drawing sends some 30. What one member may
    /// send all others get.
    fn default() -> Self {
        let limits = Limits::default();
        TextRoomConfig {
            admin_key: None,
            json: JsonForm::default(),
            outgoing: Networks::default(),
            string_ids: false,
            save: None,
            max_per_client: limits.max_per_client,
            max_from_clients: limits.max_from_clients,
            unused_timeout: limits.unused_timeout,
            message_rate: 50,
            message_burst: 200,
            byte_rate: 32 << 10,
            byte_burst: 256 << 10,
            max_message: 64 << 10,
            post_timeout: Duration::from_secs(5),
            post_retries: 3,
            rooms: Vec::new(),
        }
    }
}

impl Configuration for TextRoomConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let mut textroom: Self = section.keys();
        section.range("max_message", textroom.max_message, 1_024..=LONGEST);
        section.range("message_burst", textroom.message_burst, 1..=1_000_000);
        let fits = textroom.byte_rate == 0 || textroom.byte_burst as usize >= textroom.max_message;
        section.require(
            &["byte_burst", "max_message"],
            fits,
            "expected byte_burst to be max_message at least",
        );
        let timeout = textroom.post_timeout.as_secs();
        section.range("post_timeout", timeout, 1..=60);
        section.range("post_retries", textroom.post_retries, 0..=100);
        for entry in section.list("room") {
            textroom.read_room(section, &entry);
        }
        textroom
    }
}

impl TextRoomConfig {
    /// What strangers may make.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_per_client: self.max_per_client,
            max_from_clients: self.max_from_clients,
            unused_timeout: self.unused_timeout,
        }
    }

    /// What a client may send.
    pub(crate) fn intake(&self) -> Intake {
        Intake {
            messages: Rate {
                rate: self.message_rate,
                burst: self.message_burst,
            },
            bytes: Rate {
                rate: self.byte_rate,
                burst: self.byte_burst,
            },
            longest: self.max_message,
        }
    }

    /// How long back-ends are waited for.
    pub(crate) fn patience(&self) -> Patience {
        Patience {
            timeout: self.post_timeout,
            retries: self.post_retries,
        }
    }

    fn read_room<'t>(&mut self, section: &mut Section<'t>, entry: &Entry<'t>) {
        let Some(members) = section.entry(entry) else {
            return;
        };
        match ConfiguredRoom::read(&members, self.string_ids) {
            Err(problem) => section.entry_mistake(entry, None, &problem.key, &problem),
            Ok(room) if self.rooms.iter().any(|other| other.id() == room.id()) => {
                section.entry_mistake(entry, None, "room", "another room has this id");
            }
            Ok(room) => self.rooms.push(room),
        }
    }
}

/// What may come on a client's data channels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intake {
    pub(crate) messages: Rate,
    pub(crate) bytes: Rate,
    /// Bytes of the longest message.
    pub(crate) longest: usize,
}

/// A room of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredRoom {
    pub(crate) id: Id,
    pub(crate) options: RoomOptions,
}

impl ConfiguredRoom {
    /// Reads a section; its `room` is a number, or text with `string_ids`.
    pub fn read(members: &Map<String, Value>, string_ids: bool) -> Result<Self, RoomProblem> {
        if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let text = format!("unknown key; there are {}", KEYS.join(", "));
            return Err(RoomProblem::new(key, text));
        }
        let ids = Ids::of(string_ids);
        let fields = Fields(members);
        let id = ids.wanted(fields, "room").map_err(Refusal::from)?;
        let id = id.ok_or_else(|| Refusal::from(FieldError::Missing("room".to_owned())))?;
        let options = RoomOptions::read(fields)?;
        Ok(ConfiguredRoom { id, options })
    }

    /// The section that it is read from.
    pub fn to_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("room".to_owned(), self.id.to_json());
        members.extend(self.options.to_members());
        members
    }

    /// Its id.
    pub fn id(&self) -> &Id {
        &self.id
    }
}

impl Serialize for ConfiguredRoom {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_members().serialize(to)
    }
}

impl Written for ConfiguredRoom {
    const ONE: &'static str = "room";
    const MANY: &'static str = "rooms";

    fn key(&self) -> Id {
        self.id.clone()
    }

    fn id(&self) -> Option<&Id> {
        Some(&self.id)
    }

    fn read(members: &Map<String, Value>, ids: Ids) -> Result<Self, String> {
        let room = ConfiguredRoom::read(members, ids == Ids::Texts);
        room.map_err(|problem| format!("{}: {problem}", problem.key))
    }

    fn to_members(&self) -> Map<String, Value> {
        ConfiguredRoom::to_members(self)
    }
}

/// Reads the text of a file of saved rooms and writes it again.
pub fn rewrite_saved(text: &str, string_ids: bool) -> Result<String, String> {
    portunus_resources::rewrite_saved::<ConfiguredRoom>(text, Ids::of(string_ids))
}

/// What is wrong with a section of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RoomProblem {
    /// The key that it is about.
    pub key: String,
    text: String,
}

impl RoomProblem {
    fn new(key: &str, text: String) -> Self {
        RoomProblem {
            key: key.to_owned(),
            text,
        }
    }
}

/// What was expected, for people who write a configuration.
impl From<Refusal> for RoomProblem {
    fn from(refusal: Refusal) -> Self {
        match &refusal {
            Refusal::Field(FieldError::Missing(name)) => {
                RoomProblem::new(name, format!("{name} is missing"))
            }
            Refusal::Field(FieldError::Type { name, wanted }) => {
                RoomProblem::new(name, format!("expected {wanted}"))
            }
            Refusal::Value { name, reason } => RoomProblem::new(name, format!("expected {reason}")),
            refusal => RoomProblem::new("room", refusal.to_string()),
        }
    }
}

/// The names of the keys that a room may have.
const KEYS: &[&str] = &[
    "room",
    "description",
    "is_private",
    "secret",
    "pin",
    "history",
    "post",
];
