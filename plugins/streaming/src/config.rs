//! The plugin's part of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use portunus_core::Networks;
use portunus_core::configuration::{Configuration, Entry, PortRange, Probe, Protocol, Section};
use portunus_core::media::ingest::{interface_address, probe_interface};
use portunus_resources::{Id, Ids, Limits};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::spec::{MountpointSpec, Origin, SourceSpec, SpecProblem};

/// What the plugin can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamingConfig {
    /// Needed to create mountpoints, and to see private ones.
    #[serde(with = "portunus_core::configuration::optional")]
    pub admin_key: Option<String>,
    /// Where ports are picked from: the first and the last.
    pub rtp_port_range: PortRange,
    /// The folders that requests may name files in; none: requests may name no files.
    pub folders: Vec<PathBuf>,
    /// The networks that the RTSP servers of requests may be in: those of the server.
    #[serde(skip)]
    pub outgoing: Networks,
    /// Ids of mountpoints are text.
    pub string_ids: bool,
    /// The file that permanent mountpoints are written to; none: there are none.
    #[serde(with = "portunus_core::configuration::optional")]
    pub save: Option<PathBuf>,
    /// Mountpoints that one client may make without the right to administer; 0: none.
    pub max_per_client: usize,
    /// The same of all such clients together.
    pub max_from_clients: usize,
    /// How long what such a client has made is there without being used; 0: for ever.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub unused_timeout: Duration,
    /// Wrong secrets, pins and tokens that such a client may show at once for one mountpoint, and wrong admin keys; 0: any number.
    pub max_wrong: u32,
    /// The mountpoints that are there from the start.
    #[serde(
        rename = "mountpoint",
        skip_deserializing,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub mountpoints: Vec<ConfiguredMountpoint>,
}

impl Default for StreamingConfig {
    fn default() -> Self {
        StreamingConfig {
            admin_key: None,
            rtp_port_range: PortRange::default(),
            folders: Vec::new(),
            outgoing: Networks::default(),
            string_ids: false,
            save: None,
            // Each of them may have some 60 sockets.
            max_per_client: 10,
            max_from_clients: 100,
            unused_timeout: Limits::default().unused_timeout,
            max_wrong: 20,
            mountpoints: Vec::new(),
        }
    }
}

impl Configuration for StreamingConfig {
    const LIVE: &'static [&'static str] = &[
        "max_per_client",
        "max_from_clients",
        "unused_timeout",
        "mountpoint",
    ];

    fn read(section: &mut Section<'_>) -> Self {
        let mut streaming: Self = section.keys();
        for entry in section.list("mountpoint") {
            streaming.read_mountpoint(section, &entry);
        }
        streaming
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(file) = &self.save {
            probe.written_file("save", file);
        }
        for folder in &self.folders {
            probe.folder("folders", folder);
        }
        for (index, mountpoint) in self.mountpoints.iter().enumerate() {
            probe.section(&format!("mountpoint[{index}]"), |it| mountpoint.probe(it));
        }
    }
}

impl StreamingConfig {
    /// What strangers may make.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_per_client: self.max_per_client,
            max_from_clients: self.max_from_clients,
            unused_timeout: self.unused_timeout,
        }
    }

    fn read_mountpoint<'t>(&mut self, section: &mut Section<'t>, entry: &Entry<'t>) {
        let Some(members) = section.entry(entry) else {
            return;
        };
        let mountpoint = match ConfiguredMountpoint::read(&members, self.string_ids) {
            Ok(mountpoint) => mountpoint,
            Err(problem) => {
                let within = problem.media.map(|index| ("media", index));
                return section.entry_mistake(entry, within, &problem.key, &problem);
            }
        };
        let mut others = self.mountpoints.iter();
        let same_id =
            |other: &ConfiguredMountpoint| other.id().is_some() && other.id() == mountpoint.id();
        let twice = others.find_map(|other| match other.name() == mountpoint.name() {
            true => Some("name"),
            false => same_id(other).then_some("id"),
        });
        match twice {
            Some(key) => {
                let text = format!("another mountpoint has this {key}");
                section.entry_mistake(entry, None, key, text);
            }
            None => {
                mountpoint.listen(section, entry);
                self.mountpoints.push(mountpoint);
            }
        }
    }
}

/// A mountpoint of the configuration: its members, which are in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredMountpoint(MountpointSpec);

impl ConfiguredMountpoint {
    /// Reads a section; with `string_ids` its id is text.
    pub fn read(members: &Map<String, Value>, string_ids: bool) -> Result<Self, SpecProblem> {
        let ids = Ids::of(string_ids);
        MountpointSpec::read(members, ids, Origin::Configuration).map(Self)
    }

    /// The section that it is read from.
    pub fn to_members(&self) -> Map<String, Value> {
        self.0.to_members()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.name.as_deref().unwrap_or_default()
    }

    /// Its id, if it has one of its own.
    pub fn id(&self) -> Option<&Id> {
        self.0.id.as_ref()
    }

    /// Says which ports it listens on. A group of multicast may be listened to twice.
    fn listen<'t>(&self, section: &mut Section<'t>, entry: &Entry<'t>) {
        let SourceSpec::Rtp(rtp) = &self.0.source else {
            return;
        };
        for (index, stream) in rtp.media.iter().enumerate() {
            let (within, prefix) = match rtp.flat {
                true => (None, stream.kind.name()),
                false => (Some(("media", index)), ""),
            };
            let interface = stream.iface.as_deref().filter(|name| !name.is_empty());
            let addresses = match interface.map(interface_address) {
                None => Vec::new(),
                Some(Ok(address)) => vec![address],
                Some(Err(_)) => continue,
            };
            let on = (Protocol::Udp, addresses.as_slice());
            if stream.mcast.is_none() {
                let ports = [stream.port].into_iter().chain(stream.more_ports.clone());
                for (key, port) in ["port", "port2", "port3"].into_iter().zip(ports) {
                    section.entry_listens(entry, within, &format!("{prefix}{key}"), on, port);
                }
            }
            if let Some(port) = stream.rtcpport {
                let key = format!("{prefix}rtcpport");
                section.entry_listens(entry, within, &key, on, port);
            }
        }
    }

    /// Looks for its files and interfaces.
    fn probe(&self, probe: &mut Probe) {
        match &self.0.source {
            SourceSpec::Live(file) | SourceSpec::OnDemand(file) => {
                probe.file("filename", file.filename.as_ref());
            }
            SourceSpec::Rtp(rtp) => {
                for (index, stream) in rtp.media.iter().enumerate() {
                    let key = match rtp.flat {
                        true => format!("{}iface", stream.kind.name()),
                        false => format!("media[{index}].iface"),
                    };
                    probe_interface(probe, &key, stream.iface.as_deref().unwrap_or_default());
                }
            }
            SourceSpec::Rtsp(_) | SourceSpec::Whip(_) => {}
        }
    }

    pub(crate) fn source(&self) -> &SourceSpec {
        &self.0.source
    }

    pub(crate) fn into_spec(self) -> MountpointSpec {
        self.0
    }
}

impl Serialize for ConfiguredMountpoint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_members().serialize(to)
    }
}

/// Reads the text of a file of saved mountpoints and writes it again.
pub fn rewrite_saved(text: &str, string_ids: bool) -> Result<String, String> {
    portunus_resources::rewrite_saved::<MountpointSpec>(text, Ids::of(string_ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_older_server_is_read() {
        let old = concat!(
            "# Mountpoints that were made by requests with `permanent`. The server writes this file.\n\n",
            "removed = [\"hall\"]\n\n[[mountpoint]]\nname = \"cam\"\ntype = \"rtp\"\nid = 7\n",
            "is_private = true\nsecret = \"s\"\npin = \"p\"\n\n[[mountpoint.media]]\ntype = \"audio\"\n",
            "mid = \"a\"\nport = 5002\npt = 111\ncodec = \"opus\"\n",
        );
        let written = rewrite_saved(old, false);
        let body = |text: &str| text.split_once("\n\n").map(|(_, body)| body.to_owned());
        assert_eq!(written.ok().as_deref().and_then(body), body(old));
    }
}
