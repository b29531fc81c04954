//! The plugin's section of the configuration.

use std::net::IpAddr;
use std::path::PathBuf;

use portunus_core::configuration::{Configuration, PortRange, Probe, Section};
use portunus_core::media::ingest::{IngestError, interface_address};
use portunus_core::{Fields, Networks};
use portunus_resources::{
    ConfiguredOptions, Ids, Limits, RoomProblem, read_rooms, resource_config,
};
use serde_json::{Map, Value};

use crate::forwarder_options::StaticForwarder;
use crate::options::{OPTIONS, RoomOptions, is_type, sampling_rate};
use crate::refusal::Refusal;

resource_config! {
    /// The keys of the section.
    pub struct AudioBridgeConfig (Limits::default()) {
        /// Whether forwarding needs the `admin_key`, if one is set.
        pub lock_rtp_forward: bool = false,
        /// Whether announcements need the `admin_key`, if one is set.
        pub lock_play_file: bool = false,
        /// The folders in which requests may name files for announcements. Empty: requests may name
        /// no files.
        pub folders: Vec<PathBuf> = Vec::new(),
        /// The networks that media may be sent to without a PeerConnection. They are those of the
        /// server.
        #[serde(skip)]
        pub outgoing: Networks = Networks::default(),
        /// The address in answers to plain RTP participants, or the name of the interface that has
        /// it. Default: the server's own address.
        #[serde(with = "portunus_core::configuration::optional")]
        pub local_ip: Option<String> = None,
        /// The range of the ports for plain RTP participants.
        pub rtp_port_range: PortRange = PortRange::default(),
        /// The rooms that exist from the start.
        #[serde(
            rename = "room",
            skip_deserializing,
            skip_serializing_if = "Vec::is_empty"
        )]
        pub rooms: Vec<ConfiguredRoom> = Vec::new(),
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
        self.probe_save(probe);
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
    /// Returns the address for plain RTP participants, or `None` if none is set or the interface is
    /// not there.
    pub(crate) fn announced_address(&self) -> Option<IpAddr> {
        let name = self.local_ip.as_deref()?;
        // It may belong to a router, and to no interface of this machine.
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

/// The options of a room, and its forwarder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomSetup {
    pub(crate) options: RoomOptions,
    /// A forwarder that exists as long as the room.
    pub(crate) forwarder: Option<StaticForwarder>,
}

impl ConfiguredOptions for RoomSetup {
    fn check_keys(members: &Map<String, Value>) -> Result<(), RoomProblem> {
        let is_known = |key: &str| {
            let mut known = OPTIONS.keys().chain(StaticForwarder::KEYS.iter().copied());
            key == "room" || known.any(|name| name == key)
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
        OPTIONS.check(fields, is_type)?;
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

/// Reads a file of saved rooms, and returns it as the plugin writes it.
pub fn rewrite_saved(text: &str, string_ids: bool) -> Result<String, String> {
    portunus_resources::rewrite_saved::<ConfiguredRoom>(text, Ids::of(string_ids))
}

/// The problem for people who write a configuration.
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
