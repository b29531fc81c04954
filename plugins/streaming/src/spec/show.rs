//! Descriptions of mountpoints as they are written down: always with a list of streams, and without what has its
//! default.

use portunus_core::Object;
use portunus_resources::Id;
use serde_json::{Map, Value};

use super::{
    DataType, FileOffer, FileSpec, KeyframeSpec, MediaKind, MediaSpec, MountpointSpec, RtpSpec,
    RtspSpec, RtspTransport, SourceSpec, StreamCodec, WhipSpec,
};

impl MountpointSpec {
    /// The members that [`MountpointSpec::read`] makes the same of.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let (kind, source) = match &self.source {
            SourceSpec::Rtp(rtp) => ("rtp", rtp.show()),
            SourceSpec::Live(file) => ("live", file.show()),
            SourceSpec::OnDemand(file) => ("ondemand", file.show()),
            SourceSpec::Rtsp(rtsp) => ("rtsp", rtsp.show()),
            SourceSpec::Whip(whip) => ("whip", whip.show()),
        };
        let shown = Object::new()
            .with_some("name", self.name.as_deref())
            .with("type", kind)
            .with_some("id", self.id.as_ref().map(Id::to_json))
            .with_some("description", self.description.as_deref())
            .with_some("metadata", self.metadata.as_deref())
            .with_all(self.access.to_members())
            .with_all(source);
        match shown.into() {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// `true`, or nothing.
fn on(flag: bool) -> Option<bool> {
    flag.then_some(true)
}

/// The number, unless it is 0.
fn some(number: impl Into<u64>) -> Option<u64> {
    Some(number.into()).filter(|number| *number > 0)
}

fn media(media: &[MediaSpec]) -> Value {
    media.iter().map(MediaSpec::show).collect()
}

impl RtpSpec {
    fn show(&self) -> Object {
        let srtp = self.srtp.as_ref();
        Object::new()
            .with_some("collision", some(self.collision_ms))
            .with_all(self.keyframes.show())
            .with_some("threads", some(self.threads))
            .with_some("srtpsuite", srtp.map(|srtp| srtp.suite))
            .with_some("srtpcrypto", srtp.map(|srtp| srtp.crypto()))
            .with_some("e2ee", on(self.e2ee))
            .with_some("playoutdelay_ext", on(self.playoutdelay_ext))
            .with_some("abscapturetime_src_ext_id", self.abs_capture_time)
            .with("media", media(&self.media))
    }
}

impl KeyframeSpec {
    fn show(self) -> Object {
        Object::new()
            .with_some("bufferkf_ms", some(self.ms))
            .with_some("bufferkf_bytes", some(self.bytes))
    }
}

impl MediaSpec {
    fn show(&self) -> Value {
        let label = Some(self.label.as_str()).filter(|label| *label != self.kind.name());
        let msid = self.msid.as_ref();
        let is_data = self.kind == MediaKind::Data;
        let mut ports = self.more_ports.iter();
        Object::new()
            .with("type", self.kind.name())
            .with("mid", self.mid.as_str())
            .with_some("label", label)
            .with_some(
                "msid",
                msid.map(|(stream, track)| format!("{stream} {track}")),
            )
            .with("port", self.port)
            .with_some("port2", ports.next().copied())
            .with_some("port3", ports.next().copied())
            .with_some("mcast", self.mcast.map(|group| group.to_string()))
            .with_some("iface", self.iface.as_deref())
            .with_some("rtcpport", self.rtcpport)
            .with_some("pt", self.pt)
            .with_some("codec", self.codec.map(StreamCodec::name))
            .with_some("fmtp", self.fmtp.as_deref())
            .with_some("skew", on(self.skew))
            .with_some("simulcast", on(self.simulcast))
            .with_some("svc", on(self.svc))
            .with_some("h264sps", self.h264sps.as_deref())
            .with_some(
                "datatype",
                Some(self.datatype).filter(|_| is_data).map(DataType::name),
            )
            .with_some("buffermsg", on(self.buffermsg))
            .into()
    }
}

impl FileOffer {
    fn show(&self, name: &str) -> Object {
        Object::new()
            .with_some(&format!("{name}pt"), self.pt)
            .with_some(&format!("{name}codec"), self.codec.map(StreamCodec::name))
            .with_some(&format!("{name}fmtp"), self.fmtp.as_deref())
    }
}

fn offers([audio, video]: &[FileOffer; 2]) -> Object {
    audio.show("audio").with_all(video.show("video"))
}

impl FileSpec {
    fn show(&self) -> Object {
        Object::new()
            .with("filename", self.filename.as_str())
            .with("audio", self.audio)
            .with_some("video", self.video)
            .with_all(offers(&self.offer))
    }
}

impl RtspSpec {
    fn show(&self) -> Object {
        let login = self.login.as_ref();
        Object::new()
            .with("url", self.url.as_str())
            .with_some("rtsp_user", login.map(|(user, _)| user.as_str()))
            .with_some("rtsp_pwd", login.map(|(_, password)| password.as_str()))
            .with("audio", self.audio)
            .with("video", self.video)
            .with_all(offers(&self.offer))
            .with_all(self.keyframes.show())
            .with_some("threads", some(self.threads))
            .with_some(
                "rtsp_transport",
                Some(self.transport)
                    .filter(|transport| *transport != RtspTransport::Auto)
                    .map(RtspTransport::name),
            )
            .with_some("rtspiface", self.iface.as_deref())
            .with("rtsp_failcheck", self.failcheck)
            .with("rtsp_reconnect_delay", self.reconnect_delay.as_secs())
            .with_some(
                "rtsp_session_timeout",
                self.session_timeout.map(|timeout| timeout.as_secs()),
            )
            .with("rtsp_timeout", self.timeout.as_secs())
            .with("rtsp_conn_timeout", self.connect_timeout.as_secs())
            .with_some("rtsp_quirk", on(self.quirk))
            .with_some("rtsp_notify_changes", on(self.notify_changes))
    }
}

impl WhipSpec {
    fn show(&self) -> Object {
        Object::new()
            .with_some("token", self.token.as_deref())
            .with_all(self.keyframes.show())
            .with_some("e2ee", on(self.e2ee))
            .with_some("playoutdelay_ext", on(self.playoutdelay_ext))
            .with(
                "media",
                self.media
                    .iter()
                    .map(|stream| {
                        let mut shown = stream.show();
                        if let Value::Object(members) = &mut shown {
                            members.shift_remove("port");
                        }
                        shown
                    })
                    .collect::<Value>(),
            )
    }
}
