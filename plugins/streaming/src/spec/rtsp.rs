//! Mountpoints that fetch their media from an RTSP server.

use std::time::Duration;

use portunus_core::Fields;
use portunus_core::sdp::Kind;

use super::SpecProblem;
use super::file::FileOffer;
use super::media::optional_text;
use super::rtp::KeyframeSpec;

/// A day: longer than any of the times here means, and far from overflow.
const LONGEST: u64 = 86_400;

/// A mountpoint whose media comes from an RTSP server.
#[derive(Clone, PartialEq, Eq)]
pub struct RtspSpec {
    /// `rtsp://…`
    pub url: String,
    /// User and password.
    pub login: Option<(String, String)>,
    /// Fetch audio.
    pub audio: bool,
    /// Fetch video.
    pub video: bool,
    /// What viewers are offered of audio and video, where it is not what the server says.
    pub offer: [FileOffer; 2],
    /// Which keyframes are kept for new viewers.
    pub keyframes: KeyframeSpec,
    /// Only told, as for RTP.
    pub threads: u32,
    /// How packets come.
    pub transport: RtspTransport,
    /// Interface for the RTP ports.
    pub iface: Option<String>,
    /// There is no mountpoint if the server cannot be reached.
    pub failcheck: bool,
    /// Silence after which it is connected anew, and the pause between tries.
    pub reconnect_delay: Duration,
    /// How often a keep-alive is sent at least; none: as the server says.
    pub session_timeout: Option<Duration>,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
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

/// How packets come from an RTSP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RtspTransport {
    /// Over UDP, or over TCP if that brings nothing.
    #[default]
    Auto,
    /// Over UDP only.
    Udp,
    /// Over the RTSP connection only.
    Tcp,
}

impl RtspTransport {
    const ALL: [Self; 3] = [Self::Auto, Self::Udp, Self::Tcp];

    /// As it is configured.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }

    fn read(fields: Fields<'_>) -> Result<Self, SpecProblem> {
        let Some(name) = optional_text(fields, "rtsp_transport")? else {
            return Ok(Self::default());
        };
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        let reason =
            || SpecProblem::element("rtsp_transport", "expected auto, udp or tcp".to_owned());
        found.ok_or_else(reason)
    }
}

pub(super) const KNOWN: [&str; 27] = [
    "url",
    "rtsp_user",
    "rtsp_pwd",
    "audio",
    "video",
    "audiopt",
    "audiocodec",
    "audiortpmap",
    "audiofmtp",
    "videopt",
    "videocodec",
    "videortpmap",
    "videofmtp",
    "bufferkf_ms",
    "bufferkf_bytes",
    "threads",
    "rtsp_transport",
    "rtspiface",
    "rtsp_failcheck",
    "rtsp_check",
    "rtsp_reconnect_delay",
    "rtsp_session_timeout",
    "rtsp_timeout",
    "rtsp_conn_timeout",
    "rtsp_quirk",
    "rtsp_notify_changes",
    "videobufferkf",
];

impl RtspSpec {
    pub(super) fn read(fields: Fields<'_>) -> Result<Self, SpecProblem> {
        let url = fields.required_string("url").map_err(SpecProblem::field)?;
        let flag = |name: &str| fields.boolean(name).map_err(SpecProblem::field);
        let seconds = |name: &str| -> Result<Option<Duration>, SpecProblem> {
            let seconds = fields.positive(name).map_err(SpecProblem::field)?;
            match seconds {
                Some(seconds) if seconds > LONGEST => Err(SpecProblem::element(
                    name,
                    format!("expected at most {LONGEST} seconds"),
                )),
                seconds => Ok(seconds.filter(|s| *s > 0).map(Duration::from_secs)),
            }
        };
        let (audio, video) = (flag("audio")?, flag("video")?);
        let (audio, video) = (audio.unwrap_or(false), video.unwrap_or(false));
        if !audio && !video {
            let reason = "neither audio nor video is to be fetched";
            return Err(SpecProblem::cannot_create("video", reason));
        }
        let threads = fields.positive("threads").map_err(SpecProblem::field)?;
        let failcheck = match flag("rtsp_failcheck")? {
            None => flag("rtsp_check")?,
            failcheck => failcheck,
        };
        let user = optional_text(fields, "rtsp_user")?;
        Ok(RtspSpec {
            url: url.to_owned(),
            login: user.zip(optional_text(fields, "rtsp_pwd")?),
            audio,
            video,
            offer: [
                FileOffer::read(fields, Kind::Audio, "audio")?,
                FileOffer::read(fields, Kind::Video, "video")?,
            ],
            keyframes: KeyframeSpec::read(fields)?,
            threads: threads.and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            transport: RtspTransport::read(fields)?,
            iface: optional_text(fields, "rtspiface")?,
            failcheck: failcheck.unwrap_or(true),
            reconnect_delay: seconds("rtsp_reconnect_delay")?.unwrap_or(RECONNECT_DELAY),
            session_timeout: seconds("rtsp_session_timeout")?,
            timeout: seconds("rtsp_timeout")?.unwrap_or(TIMEOUT),
            connect_timeout: seconds("rtsp_conn_timeout")?.unwrap_or(CONNECT_TIMEOUT),
            quirk: flag("rtsp_quirk")?.unwrap_or(false),
            notify_changes: flag("rtsp_notify_changes")?.unwrap_or(false),
        })
    }
}

const RECONNECT_DELAY: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
