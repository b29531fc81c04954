//! The plugin's part of the configuration.

use std::path::PathBuf;

use portunus_core::Networks;
use portunus_core::configuration::{Configuration, Entry, PortRange, Probe, Protocol, Section};
use portunus_core::media::ingest::{interface_address, probe_interface};
use portunus_resources::{Id, Ids, Limits, resource_config};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::spec::{MountpointSpec, Origin, SourceSpec, SpecProblem};

pub(crate) const PACKAGE: &str = "janus.plugin.streaming";

resource_config! {
    /// The configuration of the plugin. A mountpoint of a client may have about 60 sockets.
    pub struct StreamingConfig (Limits { max_per_client: 10, max_from_clients: 100, ..Limits::default() }) {
        /// The range of ports to pick from.
        pub rtp_port_range: PortRange = PortRange::default(),
        /// The folders in which requests may name files. Without any, requests may name no files.
        pub folders: Vec<PathBuf> = Vec::new(),
        /// The networks in which RTSP servers of requests may be: those of the server.
        #[serde(skip)]
        pub outgoing: Networks = Networks::default(),
        /// The mountpoints of the configuration.
        #[serde(
            rename = "mountpoint",
            skip_deserializing,
            skip_serializing_if = "Vec::is_empty"
        )]
        pub mountpoints: Vec<ConfiguredMountpoint> = Vec::new(),
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
        self.probe_save(probe);
        for folder in &self.folders {
            probe.folder("folders", folder);
        }
        for (index, mountpoint) in self.mountpoints.iter().enumerate() {
            probe.section(&format!("mountpoint[{index}]"), |it| mountpoint.probe(it));
        }
    }
}

impl StreamingConfig {
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
    /// Reads a section. With `string_ids` its id is a text.
    pub fn read(members: &Map<String, Value>, string_ids: bool) -> Result<Self, SpecProblem> {
        let ids = Ids::of(string_ids);
        MountpointSpec::read(members, ids, Origin::Configuration).map(Self)
    }

    /// Returns the section from which it can be read.
    pub fn to_members(&self) -> Map<String, Value> {
        self.0.to_members()
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.0.name.as_deref().unwrap_or_default()
    }

    /// Returns its id, if the configuration gives one.
    pub fn id(&self) -> Option<&Id> {
        self.0.id.as_ref()
    }

    /// Declares the ports on which it listens. Several mountpoints may share those of a multicast
    /// group.
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
            SourceSpec::Rtsp(_) | SourceSpec::Whip(_) | SourceSpec::Relayed(_) => {}
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
