//! The plugin's part of the configuration.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use portunus_core::configuration::{Configuration, PortRange, Probe, Section};
use portunus_core::media::ingest::{IngestError, interface_address};
use portunus_core::{Fields, Networks};
use portunus_resources::{ConfiguredOptions, Ids, Limits, RoomProblem, read_rooms};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::forward::StaticForwarder;
use crate::members;
use crate::options::{MEMBERS, RoomOptions, sampling_rate};
use crate::refusal::Refusal;

/// What the plugin can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AudioBridgeConfig {
    /// Needed to create rooms, and to see private ones.
    #[serde(with = "portunus_core::configuration::optional")]
    pub admin_key: Option<String>,
    /// With an `admin_key`: forwarding to other machines needs it too.
    pub lock_rtp_forward: bool,
    /// With an `admin_key`: announcements need it too.
    pub lock_play_file: bool,
    /// The folders that requests may name files in, to be played as announcements; none: requests may name no files.
    pub folders: Vec<PathBuf>,
    /// The networks that media may be sent to without a PeerConnection: those of the server.
    #[serde(skip)]
    pub outgoing: Networks,
    /// The address that plain RTP participants are told, or the name of an interface that has it; none: the server's own.
    #[serde(with = "portunus_core::configuration::optional")]
    pub local_ip: Option<String>,
    /// Where the ports of plain RTP participants are taken from.
    pub rtp_port_range: PortRange,
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

impl Default for AudioBridgeConfig {
    fn default() -> Self {
        let limits = Limits::default();
        AudioBridgeConfig {
            admin_key: None,
            lock_rtp_forward: false,
            lock_play_file: false,
            folders: Vec::new(),
            outgoing: Networks::default(),
            local_ip: None,
            rtp_port_range: PortRange::default(),
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

impl Configuration for AudioBridgeConfig {
    const LIVE: &'static [&'static str] = &[
        "max_per_client",
        "max_from_clients",
        "unused_timeout",
        "room",
    ];

    fn read(section: &mut Section<'_>) -> Self {
        let mut bridge: Self = section.keys();
        bridge.rooms = read_rooms(section, bridge.string_ids);
        bridge
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(file) = &self.save {
            probe.written_file("save", file);
        }
        for folder in &self.folders {
            probe.folder("folders", folder);
        }
        for (index, room) in self.rooms.iter().enumerate() {
            let options = &room.options.options;
            for (key, is_on, dir) in [
                ("record", options.record, &options.record_dir),
                ("mjrs", options.mjrs, &options.mjrs_dir),
            ] {
                if is_on {
                    probe.records(&format!("room[{index}].{key}"), dir.as_deref());
                }
            }
        }
    }
}

impl AudioBridgeConfig {
    /// What strangers may make.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_per_client: self.max_per_client,
            max_from_clients: self.max_from_clients,
            unused_timeout: self.unused_timeout,
        }
    }

    /// The address that plain RTP participants are told, where one is set and is there.
    pub(crate) fn told_address(&self) -> Option<IpAddr> {
        let name = self.local_ip.as_deref()?;
        // One that a router has for us is none of our interfaces.
        if let Ok(address) = name.parse() {
            return Some(address);
        }
        let found = interface_address(name);
        let log = |error: &IngestError| {
            tracing::warn!("audiobridge.local_ip: {error}; the server's own address is told");
        };
        found.inspect_err(log).ok()
    }
}

/// A room of the configuration.
pub type ConfiguredRoom = portunus_resources::ConfiguredRoom<RoomSetup>;

/// What a room is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomSetup {
    pub(crate) options: RoomOptions,
    /// A forwarder that is there as long as the room is.
    pub(crate) forwarder: Option<StaticForwarder>,
}

impl ConfiguredOptions for RoomSetup {
    fn check_keys(members: &Map<String, Value>) -> Result<(), RoomProblem> {
        let is_known = |key: &str| {
            let mut options = MEMBERS.iter().map(|(name, _)| *name);
            let is_option = options.any(|name| name == key) && !NOT_CONFIGURED.contains(&key);
            key == "room" || is_option || StaticForwarder::KEYS.contains(&key)
        };
        match members.keys().find(|key| !is_known(key)) {
            None => Ok(()),
            Some(key) => {
                let text = "unknown key; see docs/audiobridge.md for those of a room";
                Err(RoomProblem::new(key, text))
            }
        }
    }

    fn from_section(fields: Fields<'_>) -> Result<Self, RoomProblem> {
        members::check(fields, MEMBERS)?;
        let rate = sampling_rate(fields)?.ok_or_else(|| Refusal::missing("sampling_rate"))?;
        let options = RoomOptions {
            rate,
            ..RoomOptions::read(fields)?
        };
        let forwarder = StaticForwarder::read(fields, &options)?;
        Ok(RoomSetup { options, forwarder })
    }

    fn to_section(&self) -> Map<String, Value> {
        let mut members = self.options.to_members();
        if let Some(forwarder) = &self.forwarder {
            members.extend(forwarder.to_members());
        }
        members
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
            Refusal::NotAString(name) => RoomProblem::new(name, refusal.to_string()),
            Refusal::SamplingRate(_) => {
                let rates = "expected 8000, 12000, 16000, 24000 or 48000";
                RoomProblem::new("sampling_rate", rates)
            }
            refusal => RoomProblem::new("room", refusal.to_string()),
        }
    }
}

/// What a request says and the configuration does not.
const NOT_CONFIGURED: [&str; 3] = ["permanent", "allowed", "sampling"];
