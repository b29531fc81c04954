//! RTP forwarders, as `rtp_forward` and the configuration describe them.

use portunus_core::media::ingest::{IngestSrtp, SrtpSuite};
use portunus_core::{Fields, Pt, Ssrc};
use portunus_dsp::AudioCodec;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::codec::{codec_name, named_codec};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::target::{Host, Target, port, srtp};

/// The default payload type of Opus.
const OPUS: u64 = 100;

/// The prefix of the keys in the configuration.
const PREFIX: &str = "rtp_forward_";

/// The stream of a forwarder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardSpec {
    pub(crate) codec: AudioCodec,
    pub(crate) pt: Pt,
    /// `None`: the forwarder's id.
    pub(crate) ssrc: Option<Ssrc>,
    /// Whether silence is sent while the room is empty.
    pub(crate) always_on: bool,
    pub(crate) srtp: Option<IngestSrtp>,
}

/// The members of `rtp_forward` except pin and secret. In the configuration, their names start with
/// `rtp_forward_`.
#[derive(Debug, Deserialize)]
pub(crate) struct ForwardMembers<'a> {
    ssrc: Option<u64>,
    codec: Option<&'a str>,
    ptype: Option<u64>,
    port: u64,
    host: &'a str,
    host_family: Option<&'a str>,
    srtp_suite: Option<u64>,
    srtp_crypto: Option<&'a str>,
    #[serde(default)]
    always_on: bool,
    group: Option<&'a str>,
}

/// The request `rtp_forward`, without the room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardRequest {
    pub(crate) spec: ForwardSpec,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) group: Option<String>,
}

impl ForwardMembers<'_> {
    /// Checks the members. The SRTP key is [checked](ForwardMembers::key) later, after the host.
    pub(crate) fn check(&self) -> Result<ForwardRequest, Refusal> {
        let codec = named_codec(self.codec)?;
        let pt = self.ptype.unwrap_or(OPUS);
        let pt = match codec {
            AudioCodec::Opus => u8::try_from(pt).ok().filter(|pt| *pt < 128),
            AudioCodec::Pcma => Some(8),
            AudioCodec::Pcmu => Some(0),
            AudioCodec::G722 => Some(9),
        };
        let pt = pt.ok_or_else(|| Refusal::value("ptype", "0 to 127"))?;
        let ssrc = self.ssrc.map(u32::try_from).transpose();
        let ssrc = ssrc.map_err(|_| Refusal::value("ssrc", "an SSRC has 32 bits"))?;
        Ok(ForwardRequest {
            spec: ForwardSpec {
                codec,
                pt: Pt(pt),
                ssrc: ssrc.filter(|ssrc| *ssrc > 0).map(Ssrc),
                always_on: self.always_on,
                srtp: None,
            },
            port: port(self.port)?,
            host: Host::new(self.host, self.host_family)?,
            group: self.group.map(str::to_owned),
        })
    }

    /// Returns the SRTP key, or `None` unless both of its members are present.
    pub(crate) fn key(&self) -> Result<Option<IngestSrtp>, Refusal> {
        srtp(self.srtp_suite, self.srtp_crypto)
    }
}

impl ForwardRequest {
    /// Returns the destination.
    pub(crate) fn target(&self) -> Target {
        Target {
            host: self.host.clone(),
            port: self.port,
        }
    }
}

/// A forwarder of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaticForwarder {
    /// `None`: any id.
    pub(crate) id: Option<u32>,
    pub(crate) request: ForwardRequest,
    /// The key as it is written in the configuration.
    crypto: Option<String>,
}

impl StaticForwarder {
    /// The keys of the configuration that describe it.
    pub(crate) const KEYS: &[&str] = &[
        "rtp_forward_id",
        "rtp_forward_host",
        "rtp_forward_host_family",
        "rtp_forward_port",
        "rtp_forward_ssrc",
        "rtp_forward_codec",
        "rtp_forward_ptype",
        "rtp_forward_group",
        "rtp_forward_srtp_suite",
        "rtp_forward_srtp_crypto",
        "rtp_forward_always_on",
    ];

    /// Reads the forwarder of a room. Returns `None` without host and port.
    pub(crate) fn read(fields: Fields<'_>, options: &RoomOptions) -> Result<Option<Self>, Refusal> {
        if !fields.has("rtp_forward_host") || !fields.has("rtp_forward_port") {
            return Ok(None);
        }
        let own = |(name, value): (&String, &Value)| {
            Some((name.strip_prefix(PREFIX)?.to_owned(), value.clone()))
        };
        let own = fields.0.iter().filter_map(own).collect();
        Self::of_members(Fields(&own), options)
            .map(Some)
            .map_err(|refusal| refusal.of_member_with(PREFIX))
    }

    fn of_members(fields: Fields<'_>, options: &RoomOptions) -> Result<Self, Refusal> {
        let members: ForwardMembers<'_> = fields.read()?;
        let mut request = members.check()?;
        request.spec.srtp = members.key()?;
        let id = fields.member("id")?.map(|id: u64| u32::try_from(id));
        let id = id.transpose();
        let id = id.map_err(|_| Refusal::value("id", "32 bits at most"))?;
        if let Some(group) = members.group.filter(|_| !options.groups.is_empty()) {
            let unknown = |_| Refusal::value("group", "no group of the room");
            options.group(group).map_err(unknown)?;
        }
        let crypto = members.srtp_crypto.filter(|_| request.spec.srtp.is_some());
        Ok(StaticForwarder {
            id: id.filter(|id| *id > 0),
            crypto: crypto.map(str::to_owned),
            request,
        })
    }

    /// Returns the keys from which [`StaticForwarder::read`] reads the same forwarder.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let ForwardRequest {
            spec,
            host,
            port,
            group,
        } = &self.request;
        let suite = spec.srtp.as_ref().map(|srtp| match srtp.suite {
            SrtpSuite::AesCm128HmacSha1_32 => 32,
            SrtpSuite::AesCm128HmacSha1_80 => 80,
        });
        let members = [
            ("id", self.id.map(Value::from)),
            ("host", Some(host.name().into())),
            ("host_family", host.family().map(Value::from)),
            ("port", Some((*port).into())),
            ("ssrc", spec.ssrc.map(|ssrc| ssrc.0.into())),
            ("codec", Some(codec_name(spec.codec).into())),
            ("ptype", Some(spec.pt.0.into())),
            ("group", group.as_deref().map(Value::from)),
            ("srtp_suite", suite.map(Value::from)),
            ("srtp_crypto", self.crypto.as_deref().map(Value::from)),
            ("always_on", spec.always_on.then_some(true.into())),
        ];
        let there = members
            .into_iter()
            .filter_map(|(name, value)| Some((format!("{PREFIX}{name}"), value?)));
        there.collect()
    }
}
