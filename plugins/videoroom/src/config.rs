//! The plugin's part of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use portunus_core::configuration::{Configuration, Probe, Section};
use portunus_core::{Fields, Networks};
use portunus_resources::{ConfiguredOptions, Ids, Limits, RoomProblem, check_keys, read_rooms};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::options::RoomOptions;
use crate::refusal::Refusal;

/// What the plugin can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VideoRoomConfig {
    /// Needed to create rooms, and to see private ones.
    #[serde(with = "portunus_core::configuration::optional")]
    pub admin_key: Option<String>,
    /// With an `admin_key`: forwarding to other machines needs it too.
    pub lock_rtp_forward: bool,
    /// The networks that media may be forwarded to: those of the server.
    #[serde(skip)]
    pub outgoing: Networks,
    /// Ids of rooms and participants are text.
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
    /// The rooms that are there from the start.
    #[serde(
        rename = "room",
        skip_deserializing,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub rooms: Vec<ConfiguredRoom>,
}

impl Default for VideoRoomConfig {
    fn default() -> Self {
        let limits = Limits::default();
        VideoRoomConfig {
            admin_key: None,
            lock_rtp_forward: false,
            outgoing: Networks::default(),
            string_ids: false,
            save: None,
            max_per_client: limits.max_per_client,
            max_from_clients: limits.max_from_clients,
            unused_timeout: limits.unused_timeout,
            max_wrong: 20,
            rooms: Vec::new(),
        }
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
        if let Some(file) = &self.save {
            probe.written_file("save", file);
        }
        for (index, room) in self.rooms.iter().enumerate() {
            let settings = &room.options.settings;
            if settings.record {
                let key = format!("room[{index}].record");
                probe.records(&key, settings.rec_dir.as_deref());
            }
        }
    }
}

impl VideoRoomConfig {
    /// What strangers may make.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_per_client: self.max_per_client,
            max_from_clients: self.max_from_clients,
            unused_timeout: self.unused_timeout,
        }
    }
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
            Refusal::Value { name, reason } => RoomProblem::new(&name, reason),
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
    "require_pvtid",
    "signed_tokens",
    "require_e2ee",
    "publishers",
    "bitrate",
    "bitrate_cap",
    "fir_freq",
    "audiocodec",
    "videocodec",
    "vp9_profile",
    "h264_profile",
    "opus_fec",
    "opus_dtx",
    "audiolevel_ext",
    "audiolevel_event",
    "audio_active_packets",
    "audio_level_average",
    "videoorient_ext",
    "playoutdelay_ext",
    "transport_wide_cc_ext",
    "record",
    "record_format",
    "rec_dir",
    "lock_record",
    "notify_joining",
    "dominant_speaker",
    "bufferkf_ms",
    "dummy_publisher",
    "dummy_streams",
    "dummy_e2ee",
    "threads",
];

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
