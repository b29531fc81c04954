//! The plugin's part of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use portunus_core::configuration::{Configuration, Probe, Section};
use portunus_core::{Fields, JsonForm, Networks};
use portunus_resources::{ConfiguredOptions, Ids, Limits, RoomProblem, check_keys, read_rooms};
use serde::{Deserialize, Serialize};
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
    /// Wrong secrets, pins and tokens that such a client may show at once for one room, and wrong admin keys; 0: any number.
    pub max_wrong: u32,
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
            max_wrong: 20,
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
    const LIVE: &'static [&'static str] = &[
        "max_per_client",
        "max_from_clients",
        "unused_timeout",
        "room",
    ];

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
        textroom.rooms = read_rooms(section, textroom.string_ids);
        textroom
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(file) = &self.save {
            probe.written_file("save", file);
        }
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
pub type ConfiguredRoom = portunus_resources::ConfiguredRoom<RoomOptions>;

impl ConfiguredOptions for RoomOptions {
    fn check_keys(members: &Map<String, Value>) -> Result<(), RoomProblem> {
        check_keys(members, KEYS)
    }

    fn from_section(fields: Fields<'_>) -> Result<Self, RoomProblem> {
        Ok(RoomOptions::read(fields)?)
    }

    fn to_section(&self) -> Map<String, Value> {
        self.to_members()
    }
}

/// Reads the text of a file of saved rooms and writes it again.
pub fn rewrite_saved(text: &str, string_ids: bool) -> Result<String, String> {
    portunus_resources::rewrite_saved::<ConfiguredRoom>(text, Ids::of(string_ids))
}

/// What was expected, for people who write a configuration.
impl From<Refusal> for RoomProblem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Field(error) => error.into(),
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
