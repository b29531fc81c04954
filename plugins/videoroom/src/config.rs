//! The plugin's part of the configuration.

use portunus_core::configuration::{Configuration, Probe, Section};
use portunus_core::{Fields, Networks};
use portunus_resources::{
    ConfiguredOptions, Ids, Limits, RoomProblem, read_rooms, resource_config,
};
use serde_json::{Map, Value};

use crate::options::{OPTIONS, RoomOptions};
use crate::refusal::Refusal;

resource_config! {
    /// The configuration of the plugin.
    pub struct VideoRoomConfig (Limits::default()) {
        /// Whether forwarding to other machines needs the `admin_key`, if there is one.
        pub lock_rtp_forward: bool = false,
        /// The networks to which media may be forwarded: those of the server.
        #[serde(skip)]
        pub outgoing: Networks = Networks::default(),
        /// The rooms of the configuration.
        #[serde(
            rename = "room",
            skip_deserializing,
            skip_serializing_if = "Vec::is_empty"
        )]
        pub rooms: Vec<ConfiguredRoom> = Vec::new(),
    }
}

impl Configuration for VideoRoomConfig {
    const LIVE: &'static [&'static str] = &[
        "max_per_client",
        "max_from_clients",
        "unused_timeout",
        "room",
    ];

    fn read(section: &mut Section<'_>) -> Self {
        let mut videoroom: Self = section.keys();
        videoroom.rooms = read_rooms(section, videoroom.string_ids);
        videoroom
    }

    fn probe(&self, probe: &mut Probe) {
        self.probe_save(probe);
        for (index, room) in self.rooms.iter().enumerate() {
            let settings = &room.options.settings;
            if settings.recording.on {
                let key = format!("room[{index}].record");
                probe.records(&key, settings.recording.dir.as_deref());
            }
        }
    }
}

/// A room of the configuration.
pub type ConfiguredRoom = portunus_resources::ConfiguredRoom<RoomOptions>;

impl ConfiguredOptions for RoomOptions {
    fn check_keys(members: &Map<String, Value>) -> Result<(), RoomProblem> {
        OPTIONS.check_keys(members)
    }

    fn from_section(fields: Fields<'_>) -> Result<Self, RoomProblem> {
        Ok(RoomOptions::read(fields)?)
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
            Refusal::Value { name, reason } => RoomProblem::new(&name, reason),
            refusal => RoomProblem::new("room", refusal.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_older_server_is_read() {
        let old = concat!(
            "# Rooms that were made by requests with `permanent`. The server writes this file.\n\n",
            "removed = [1234]\n\n[[room]]\nroom = 5678\ndescription = \"Hall\"\nis_private = true\n",
            "secret = \"s\"\npin = \"p\"\npublishers = 6\n",
        );
        let written = rewrite_saved(old, false);
        let body = |text: &str| text.split_once("\n\n").map(|(_, body)| body.to_owned());
        assert_eq!(written.ok().as_deref().and_then(body), body(old));
    }
}
