//! What is forwarded to where: as `rtp_forward` and the configuration say it.

use portunus_core::media::ingest::{IngestSrtp, SrtpSuite};
use portunus_core::{Fields, Pt, Ssrc};
use portunus_dsp::AudioCodec;
use serde_json::{Map, Value};

use crate::codec::{codec_name, named_codec};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::target::{Host, Target, port, srtp};

/// The payload type of Opus where none is asked for.
const OPUS: u64 = 100;

/// What a forwarder sends, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardSpec {
    pub(crate) codec: AudioCodec,
    pub(crate) pt: Pt,
    /// None: the forwarder's id.
    pub(crate) ssrc: Option<Ssrc>,
    /// Silence is sent while nobody is in the room.
    pub(crate) always_on: bool,
    pub(crate) srtp: Option<IngestSrtp>,
}

/// How members are called: `rtp_forward` is short of it, and the configuration has `rtp_forward_` before each.
struct Names(&'static str);

impl Names {
    fn of(&self, name: &str) -> String {
        format!("{}{name}", self.0)
    }
}

impl ForwardSpec {
    /// Reads codec, payload type and SSRC; the key is still to be read, because of the order of checks.
    fn read(fields: Fields<'_>, names: &Names) -> Result<Self, Refusal> {
        let codec = named_codec(fields.string(&names.of("codec"))?)?;
        let (pt_name, ssrc_name) = (names.of("ptype"), names.of("ssrc"));
        let pt = fields.positive(&pt_name)?.unwrap_or(OPUS);
        let pt = match codec {
            AudioCodec::Opus => u8::try_from(pt).ok().filter(|pt| *pt < 128),
            AudioCodec::Pcma => Some(8),
            AudioCodec::Pcmu => Some(0),
            AudioCodec::G722 => Some(9),
        };
        let pt = pt.ok_or_else(|| Refusal::value(&pt_name, "0 to 127"))?;
        let ssrc = fields.positive(&ssrc_name)?.map(u32::try_from).transpose();
        let ssrc = ssrc.map_err(|_| Refusal::value(&ssrc_name, "an SSRC has 32 bits"))?;
        Ok(ForwardSpec {
            codec,
            pt: Pt(pt),
            ssrc: ssrc.filter(|ssrc| *ssrc > 0).map(Ssrc),
            always_on: fields.boolean(&names.of("always_on"))?.unwrap_or(false),
            srtp: None,
        })
    }
}

/// The request `rtp_forward`, without the room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardRequest {
    pub(crate) spec: ForwardSpec,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) group: Option<String>,
}

impl ForwardRequest {
    /// Reads it but for the key; see [`ForwardRequest::read_key`].
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let spec = ForwardSpec::read(fields, &Names(""))?;
        let port = port(fields, "port")?;
        Ok(ForwardRequest {
            spec,
            port,
            host: Host::read(fields, "host", "host_family")?,
            group: fields.string("group")?.map(str::to_owned),
        })
    }

    /// Where is sent to.
    pub(crate) fn target(&self) -> Target {
        Target {
            host: self.host.clone(),
            port: self.port,
        }
    }

    /// Reads the key.
    pub(crate) fn read_key(&mut self, fields: Fields<'_>) -> Result<(), Refusal> {
        self.spec.srtp = srtp(fields, "srtp_suite", "srtp_crypto")?;
        Ok(())
    }
}

/// A forwarder of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaticForwarder {
    /// None: any.
    pub(crate) id: Option<u32>,
    pub(crate) request: ForwardRequest,
    /// The key as it is written.
    crypto: Option<String>,
}

impl StaticForwarder {
    /// The keys that it is read from.
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

    /// Reads the one of a room; none without host and port.
    pub(crate) fn read(fields: Fields<'_>, options: &RoomOptions) -> Result<Option<Self>, Refusal> {
        if !fields.has("rtp_forward_host") || !fields.has("rtp_forward_port") {
            return Ok(None);
        }
        let mut spec = ForwardSpec::read(fields, &Names("rtp_forward_"))?;
        spec.srtp = srtp(fields, "rtp_forward_srtp_suite", "rtp_forward_srtp_crypto")?;
        let id = fields.positive("rtp_forward_id")?.map(u32::try_from);
        let id = id.transpose();
        let id = id.map_err(|_| Refusal::value("rtp_forward_id", "32 bits at most"))?;
        let group = fields.string("rtp_forward_group")?.map(str::to_owned);
        if let Some(group) = group.as_deref().filter(|_| !options.groups.is_empty()) {
            let unknown = |_| Refusal::value("rtp_forward_group", "no group of the room");
            options.group(group).map_err(unknown)?;
        }
        let crypto = fields.string("rtp_forward_srtp_crypto")?;
        let request = ForwardRequest {
            spec,
            host: Host::read(fields, "rtp_forward_host", "rtp_forward_host_family")?,
            port: port(fields, "rtp_forward_port")?,
            group,
        };
        Ok(Some(StaticForwarder {
            id: id.filter(|id| *id > 0),
            crypto: crypto
                .filter(|_| request.spec.srtp.is_some())
                .map(str::to_owned),
            request,
        }))
    }

    /// The keys that [`StaticForwarder::read`] makes the same of.
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
            .filter_map(|(name, value)| Some((format!("rtp_forward_{name}"), value?)));
        there.collect()
    }
}
