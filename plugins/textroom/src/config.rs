//! The plugin's part of the configuration.

use std::time::Duration;

use portunus_core::configuration::{Configuration, Probe, Section};
use portunus_core::{Fields, JsonForm, Networks};
use portunus_resources::{
    ConfiguredOptions, Ids, Limits, RoomProblem, read_rooms, resource_config,
};
use serde_json::{Map, Value};

use crate::options::{OPTIONS, RoomOptions};
use crate::pace::Rate;
use crate::post::Patience;
use crate::refusal::Refusal;
use crate::room::LONGEST;

resource_config! {
    /// The configuration of the plugin. A person writes at most one message a second. A program
    /// that shares a pointer or a drawing sends about 30. All others in the room get each of them.
    pub struct TextRoomConfig (Limits::default()) {
        /// The white space in the JSON of data channels.
        pub json: JsonForm = JsonForm::default(),
        /// The networks to which rooms of requests may post: those of the server.
        #[serde(skip)]
        pub outgoing: Networks = Networks::default(),
        /// The limit of messages from a client's data channels per second. 0 means no limit.
        pub message_rate: u32 = 50,
        /// Messages that may come at once.
        pub message_burst: u32 = 200,
        /// The limit of bytes from a client's data channels per second. 0 means no limit.
        pub byte_rate: u32 = 32 << 10,
        /// Bytes that may come at once.
        pub byte_burst: u32 = 256 << 10,
        /// Bytes of the longest message that may come.
        pub max_message: usize = 64 << 10,
        /// The timeout for a back-end's answer.
        #[serde(with = "portunus_core::configuration::seconds")]
        pub post_timeout: Duration = Duration::from_secs(5),
        /// The number of retries of a post.
        pub post_retries: u32 = 3,
        /// The rooms of the configuration.
        #[serde(
            rename = "room",
            skip_deserializing,
            skip_serializing_if = "Vec::is_empty"
        )]
        pub rooms: Vec<ConfiguredRoom> = Vec::new(),
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
        self.probe_save(probe);
    }
}

impl TextRoomConfig {
    /// Returns the limits of what a client may send.
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

    /// Returns the timeout and the retries for back-ends.
    pub(crate) fn patience(&self) -> Patience {
        Patience {
            timeout: self.post_timeout,
            retries: self.post_retries,
        }
    }
}

/// The limits of messages from a client's data channels.
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
        OPTIONS.check_keys(members)
    }

    fn from_section(fields: Fields<'_>) -> Result<Self, RoomProblem> {
        Ok(OPTIONS.read(fields)?)
    }

    fn to_section(&self) -> Map<String, Value> {
        OPTIONS.to_members(self)
    }
}

/// Reads the text of a file of saved rooms and writes it again.
pub fn rewrite_saved(text: &str, string_ids: bool) -> Result<String, String> {
    portunus_resources::rewrite_saved::<ConfiguredRoom>(text, Ids::of(string_ids))
}

/// The message for the author of a configuration.
impl From<Refusal> for RoomProblem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Field(error) => error.into(),
            Refusal::Value { name, reason } => RoomProblem::new(name, format!("expected {reason}")),
            refusal => RoomProblem::new("room", refusal.to_string()),
        }
    }
}
