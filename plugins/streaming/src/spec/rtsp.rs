//! Mountpoints that fetch their media from an RTSP server.

use portunus_core::Fields;
use portunus_resources::{Options, Place, place};
use serde_json::Value;

use super::SpecProblem;
use super::codec::{audio, video};
use super::file::FileOffers;
use super::rtp::KeyframeSpec;
use super::values::{Read, above_0, any_text, ignored, number16, number32, payload_type, seconds};

/// A mountpoint that pulls its media from an RTSP server.
#[derive(Clone, PartialEq, Eq)]
pub struct RtspSpec {
    /// `rtsp://…`
    pub url: String,
    /// Of the login, which needs a password as well.
    pub user: Option<String>,
    /// Of the login.
    pub password: Option<String>,
    /// Fetch audio.
    pub audio: bool,
    /// Fetch video.
    pub video: bool,
    /// The formats for viewers, where they differ from the server's.
    pub offer: FileOffers,
    /// The keyframe cache for new viewers.
    pub keyframes: KeyframeSpec,
    /// It is shown only, as for RTP.
    pub threads: u32,
    /// The transport of packets.
    pub transport: RtspTransport,
    /// Interface for the RTP ports.
    pub iface: Option<String>,
    /// There is no mountpoint if the server cannot be reached.
    pub failcheck: bool,
    /// The silence after which it reconnects, and the pause between attempts, in s.
    pub reconnect_delay: u64,
    /// The interval of keep-alives, in s. 0 means as the server says.
    pub session_timeout: u64,
    /// Seconds that a request may take.
    pub timeout: u64,
    /// Seconds that connecting may take.
    pub connect_timeout: u64,
    /// After a 404 to DESCRIBE, ask again with the path only.
    pub quirk: bool,
    /// Tell viewers about lost and new connections.
    pub notify_changes: bool,
}

/// The password is not for logs, and may stand in the URL too.
impl std::fmt::Debug for RtspSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RtspSpec({})", portunus_rtsp::shown_url(&self.url))
    }
}

/// The transport of packets from an RTSP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtspTransport {
    /// UDP, or TCP if no packets come by UDP.
    Auto,
    /// Over UDP only.
    Udp,
    /// Over the RTSP connection only.
    Tcp,
}

impl Default for RtspSpec {
    fn default() -> Self {
        RtspSpec {
            url: String::new(),
            user: None,
            password: None,
            audio: false,
            video: false,
            offer: FileOffers::default(),
            keyframes: KeyframeSpec::default(),
            threads: 0,
            transport: RtspTransport::Auto,
            iface: None,
            failcheck: true,
            reconnect_delay: 5,
            session_timeout: 0,
            timeout: 10,
            connect_timeout: 5,
            quirk: false,
            notify_changes: false,
        }
    }
}

type Opt = portunus_resources::Opt<RtspSpec, SpecProblem>;

pub(super) const OPTIONS: Options<RtspSpec, SpecProblem> = Options(&[
    Opt::new("url", place!(url, any_text))
        .required()
        .listed()
        .confidential(),
    Opt::new("audio", place!(audio)),
    Opt::new("video", VIDEO),
    Opt::new("threads", place!(threads, number, above_0)).listed(),
    Opt::new("rtsp_failcheck", place!(failcheck, failcheck)),
    Opt::new("rtsp_check", ignored()),
    Opt::new("rtsp_user", place!(user))
        .listed_if(|rtsp| rtsp.login().is_some())
        .confidential(),
    Opt::new("rtsp_pwd", place!(password))
        .listed_if(|rtsp| rtsp.login().is_some())
        .confidential(),
    Opt::new("audiopt", place!(offer.audio.pt, payload_type)),
    Opt::new("audiocodec", place!(offer.audio.codec, audio)),
    Opt::new("audiortpmap", ignored()),
    Opt::new("audiofmtp", place!(offer.audio.fmtp)),
    Opt::new("videopt", place!(offer.video.pt, payload_type)),
    Opt::new("videocodec", place!(offer.video.codec, video)),
    Opt::new("videortpmap", ignored()),
    Opt::new("videofmtp", place!(offer.video.fmtp)),
    Opt::new("bufferkf_ms", place!(keyframes.ms, number16, above_0)).listed(),
    Opt::new("bufferkf_bytes", place!(keyframes.bytes, number32, above_0)).listed(),
    Opt::new("videobufferkf", ignored()),
    Opt::new("rtsp_transport", place!(transport, transport)),
    Opt::new("rtspiface", place!(iface)),
    Opt::new("rtsp_reconnect_delay", place!(reconnect_delay, seconds)),
    Opt::new("rtsp_session_timeout", place!(session_timeout, seconds)),
    Opt::new("rtsp_timeout", place!(timeout, seconds)),
    Opt::new("rtsp_conn_timeout", place!(connect_timeout, seconds)),
    Opt::new("rtsp_quirk", place!(quirk))
        .listed_if(|rtsp| rtsp.quirk)
        .confidential(),
    Opt::new("rtsp_notify_changes", place!(notify_changes)),
]);

/// Whether video is fetched. Something has to be.
const VIDEO: Place<RtspSpec, SpecProblem> = Place {
    read: |rtsp, fields, name| {
        rtsp.video = fields.member(name)?.unwrap_or(false);
        let reason = "neither audio nor video is to be fetched";
        match rtsp.audio || rtsp.video {
            true => Ok(()),
            false => Err(SpecProblem::cannot_create(name, reason)),
        }
    },
    write: |rtsp| rtsp.video.into(),
};

/// Reads a number that is shown only. A number that is too large counts as absent.
fn number(fields: Fields<'_>, name: &str) -> Read<u32> {
    let number = fields.member::<u64>(name)?;
    Ok(number.and_then(|number| number.try_into().ok()))
}

/// Reads whether the server has to be reached. `rtsp_check` is the older name.
fn failcheck(fields: Fields<'_>, name: &str) -> Read<bool> {
    match fields.member(name)? {
        None => Ok(fields.member("rtsp_check")?),
        check => Ok(check),
    }
}

fn transport(fields: Fields<'_>, name: &str) -> Read<RtspTransport> {
    match fields.text(name)? {
        None => Ok(None),
        Some("auto") => Ok(Some(RtspTransport::Auto)),
        Some("udp") => Ok(Some(RtspTransport::Udp)),
        Some("tcp") => Ok(Some(RtspTransport::Tcp)),
        Some(_) => Err(SpecProblem::element(name, "expected auto, udp or tcp")),
    }
}

impl From<RtspTransport> for Value {
    fn from(transport: RtspTransport) -> Self {
        match transport {
            RtspTransport::Auto => "auto",
            RtspTransport::Udp => "udp",
            RtspTransport::Tcp => "tcp",
        }
        .into()
    }
}

impl RtspSpec {
    /// Returns user and password, if both are there.
    pub(crate) fn login(&self) -> Option<(&str, &str)> {
        self.user.as_deref().zip(self.password.as_deref())
    }
}
