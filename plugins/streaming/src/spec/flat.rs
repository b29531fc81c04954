//! The older form of RTP mountpoints: at most one stream of each kind, its options at the root.

use portunus_core::sdp::Kind;
use portunus_core::{Fields, Mid};

use super::media::{
    DataType, MediaKind, MediaSpec, more_ports, multicast, optional_text, payload_type, port,
};
use super::{SpecProblem, StreamCodec};

pub(super) const KNOWN: [&str; 34] = [
    "audio",
    "video",
    "data",
    "audioport",
    "audiomcast",
    "audioiface",
    "audiortcpport",
    "audiopt",
    "audiocodec",
    "audiortpmap",
    "audiofmtp",
    "audioskew",
    "videoport",
    "videomcast",
    "videoiface",
    "videortcpport",
    "videopt",
    "videocodec",
    "videortpmap",
    "videofmtp",
    "videoskew",
    "videosimulcast",
    "videoport2",
    "videoport3",
    "videosvc",
    "h264sps",
    "videobufferkf",
    "dataport",
    "datamcast",
    "dataiface",
    "datatype",
    "databuffermsg",
    "buffermsg",
    "media",
];

/// Reads the streams, with mids `a`, `v` and `d`.
pub(super) fn read(fields: Fields<'_>) -> Result<Vec<MediaSpec>, SpecProblem> {
    let mut media = Vec::new();
    for (kind, mid) in [
        (MediaKind::Audio, "a"),
        (MediaKind::Video, "v"),
        (MediaKind::Data, "d"),
    ] {
        let wanted = fields.boolean(kind.name()).map_err(SpecProblem::field)?;
        if let Some(mid) = Mid::new(mid).filter(|_| wanted == Some(true)) {
            media.push(read_stream(fields, kind, mid)?);
        }
    }
    match media.is_empty() {
        true => Err(SpecProblem::cannot_create(
            "media",
            "there is no audio, video or data",
        )),
        false => Ok(media),
    }
}

fn read_stream(fields: Fields<'_>, kind: MediaKind, mid: Mid) -> Result<MediaSpec, SpecProblem> {
    let name = |option: &str| format!("{}{option}", kind.name());
    let mut spec = MediaSpec::new(kind, mid);
    spec.port = port(fields, &name("port"))?.ok_or_else(|| SpecProblem::missing(&name("port")))?;
    spec.mcast = multicast(fields, &name("mcast"))?;
    spec.iface = optional_text(fields, &name("iface"))?;
    let flag = |name: &str| -> Result<bool, SpecProblem> {
        let flag = fields.boolean(name).map_err(SpecProblem::field)?;
        Ok(flag.unwrap_or(false))
    };
    if kind == MediaKind::Data {
        spec.datatype = DataType::read(fields, "datatype")?.unwrap_or_default();
        spec.buffermsg = flag("databuffermsg")? || flag("buffermsg")?;
        spec.check()?;
        return Ok(spec);
    }
    spec.rtcpport = port(fields, &name("rtcpport"))?;
    let pt = payload_type(fields, &name("pt"))?;
    spec.pt = Some(pt.ok_or_else(|| SpecProblem::missing(&name("pt")))?);
    let names = (name("codec"), name("rtpmap"));
    spec.codec = StreamCodec::read(fields, Kind::from(kind), (&names.0, &names.1))?;
    spec.fmtp = optional_text(fields, &name("fmtp"))?;
    spec.skew = flag(&name("skew"))?;
    if kind == MediaKind::Video {
        spec.simulcast = flag("videosimulcast")?;
        spec.svc = flag("videosvc")?;
        spec.h264sps = optional_text(fields, "h264sps")?;
        if spec.simulcast {
            spec.more_ports = more_ports(fields, ["videoport2", "videoport3"])?;
        }
    }
    spec.check().map_err(|problem| {
        let key = format!("{}{}", kind.name(), problem.key);
        SpecProblem { key, ..problem }
    })?;
    Ok(spec)
}
