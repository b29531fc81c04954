//! Participants by plain RTP: the members of their requests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use portunus_audio::{RtpLeg, RtpLegOptions};
use portunus_core::{Fields, Object, Pt};
use portunus_dsp::AudioCodec;
use serde::Deserialize;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::room::RtpLink;
use crate::shared::Shared;
use crate::target;

/// The members of `rtp`.
#[derive(Deserialize)]
struct Members<'a> {
    ip: Option<&'a str>,
    port: Option<i64>,
    payload_type: Option<i64>,
    audiolevel_ext: Option<i64>,
    #[serde(default)]
    fec: bool,
}

/// The default payload type of Opus.
const OPUS: u8 = 100;

/// The object `rtp` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RtpRequest {
    pub(super) remote: Option<SocketAddr>,
    payload_type: u8,
    audio_level: Option<u8>,
    fec: bool,
}

impl RtpRequest {
    /// Reads the object. Returns `None` if the request has none.
    pub(super) fn read(fields: Fields<'_>) -> Result<Option<Self>, Refusal> {
        let Some(rtp) = fields.member::<Members<'_>>("rtp")? else {
            return Ok(None);
        };
        let ip = rtp.ip.filter(|ip| !ip.is_empty());
        let ip = ip.map(str::parse::<IpAddr>).transpose();
        let ip = ip.map_err(|_| Refusal::value("ip", "an IP address"))?;
        let port = rtp.port.map(u16::try_from).transpose();
        let port = port.map_err(|_| Refusal::value("port", "0 to 65535"))?;
        let remote = ip.zip(port.filter(|port| *port > 0));
        let payload_type = rtp.payload_type.map(u8::try_from).transpose();
        let payload_type = payload_type.ok().filter(|pt| pt.is_none_or(|pt| pt < 128));
        let wrong = || Refusal::value("payload_type", "0 to 127");
        let extension = rtp.audiolevel_ext.filter(|id| *id > 0).map(u8::try_from);
        let extension = extension.transpose().ok();
        let extension = extension.filter(|id| id.is_none_or(|id| id <= 14));
        Ok(Some(RtpRequest {
            remote: remote.map(SocketAddr::from),
            payload_type: payload_type.ok_or_else(wrong)?.unwrap_or(OPUS),
            audio_level: extension.ok_or_else(|| Refusal::value("audiolevel_ext", "1 to 14"))?,
            fec: rtp.fec,
        }))
    }

    /// Opens the leg of a participant. If `offered`, its address may follow later.
    pub(super) fn open(
        &self,
        shared: &Shared,
        codec: AudioCodec,
        offered: bool,
    ) -> Result<RtpLink, Refusal> {
        if let Some(remote) = self.remote {
            target::check(remote.ip(), &shared.outgoing)?;
        }
        let pt = match codec {
            AudioCodec::Opus => self.payload_type,
            AudioCodec::Pcma => 8,
            AudioCodec::Pcmu => 0,
            AudioCodec::G722 => 9,
        };
        let options = RtpLegOptions {
            ports: shared.ports.first()..=shared.ports.last(),
            remote: self.remote,
            codec,
            pt: Pt(pt),
            audio_level: self.audio_level,
        };
        let leg = RtpLeg::open(&shared.media, options.clone());
        let leg = leg.map_err(|error| Refusal::Unknown(error.to_string()))?;
        Ok(RtpLink {
            leg: Arc::new(leg),
            options,
            fec: self.fec && codec == AudioCodec::Opus,
            levels: self.audio_level.is_some(),
            local_ip: shared.local_ip.to_string(),
            awaits_remote: offered && self.remote.is_none(),
        })
    }
}

/// Returns the server's address for a participant.
pub(super) fn address_json(link: &RtpLink) -> Value {
    Object::new()
        .with("ip", link.local_ip.as_str())
        .with("port", link.leg.port())
        .with("payload_type", link.options.pt.0)
        .into()
}
