//! The settings of a room.

use portunus_record::Format;
use portunus_sdp::{CodecName, Kind};

use crate::Refusal;

/// The settings of a room. A door keeps its own beside them: who may join, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomSettings {
    /// The room's name for people.
    pub description: String,
    /// Whether a subscription needs the private id of a participant. It is blocked when that
    /// participant is kicked.
    pub require_private_id: bool,
    /// Whether all that is published has to be encrypted end to end.
    pub require_e2ee: bool,
    /// The limit of publishers.
    pub publishers: u64,
    /// The cap on each publisher's bitrate, in bit/s; 0 means no cap.
    pub bitrate: u64,
    /// Whether the answer to a publisher states the cap.
    pub bitrate_cap: bool,
    /// The codecs, and what is negotiated with them.
    pub codecs: CodecSettings,
    /// The header extensions.
    pub extensions: ExtensionSettings,
    /// When a participant counts as talking.
    pub talk: RoomTalk,
    /// The requests for keyframes, and their cache.
    pub keyframes: KeyframeSettings,
    /// The recordings of participants.
    pub recording: RoomRecording,
    /// Whether all are told about participants who join, before they publish.
    pub notify_joining: bool,
    /// Whether all are told about the dominant speaker.
    pub dominant_speaker: bool,
    /// The placeholder publisher, if there is one.
    pub dummy: Option<Dummy>,
}

/// The codecs of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecSettings {
    /// The audio codecs, the preferred one first.
    pub audio: Vec<CodecName>,
    /// The video codecs, the preferred one first.
    pub video: Vec<CodecName>,
    /// The only profile of VP9. `None` means all.
    pub vp9_profile: Option<String>,
    /// The only profile of H.264. `None` means all.
    pub h264_profile: Option<String>,
    /// Whether publishers may use the forward error correction of Opus.
    pub opus_fec: bool,
    /// Whether publishers may use the discontinuous transmission of Opus.
    pub opus_dtx: bool,
}

/// The header extensions that a room negotiates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionSettings {
    /// The audio level.
    pub audio_level: bool,
    /// The video orientation.
    pub video_orientation: bool,
    /// The playout delay.
    pub playout_delay: bool,
    /// Transport-wide congestion control.
    pub transport_cc: bool,
}

/// When a participant counts as talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomTalk {
    /// Whether all are told who talks.
    pub notify: bool,
    /// The number of packets over which the level is averaged.
    pub packets: u64,
    /// The average level from which on a participant talks, in -dBov: 0 (loudest) to 127 (silence).
    pub level: u64,
}

/// The requests for keyframes, and their cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyframeSettings {
    /// The time without a keyframe after which publishers are asked for one, in s; 0 means never.
    pub interval_s: u64,
    /// The time for which video from a keyframe on is cached for new subscribers, in ms; 0 means
    /// no cache.
    pub cache_ms: u64,
}

/// The recordings of a room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomRecording {
    /// Whether participants who join are recorded.
    pub on: bool,
    /// The folder. `None` means that of the server.
    pub dir: Option<String>,
    /// The format. `None` means that of the server.
    pub format: Option<Format>,
}

impl RoomSettings {
    /// Checks whether a publisher with (`e2ee`) or without end-to-end encryption may be in the
    /// room.
    pub fn check_e2ee(&self, e2ee: bool) -> Result<(), Refusal> {
        match self.require_e2ee && !e2ee {
            true => Err(Refusal::E2eeNeeded),
            false => Ok(()),
        }
    }

    /// Returns the codecs for media of `kind`, the preferred one first.
    pub fn codecs(&self, kind: Kind) -> &[CodecName] {
        match kind {
            Kind::Audio => &self.codecs.audio,
            Kind::Video | Kind::Data => &self.codecs.video,
        }
    }

    /// Returns the only profile of `codec`, if there is one.
    pub(crate) fn profile(&self, codec: CodecName) -> Option<&str> {
        match codec {
            CodecName::Vp9 => self.codecs.vp9_profile.as_deref(),
            CodecName::H264 => self.codecs.h264_profile.as_deref(),
            _ => None,
        }
    }
}

impl Default for RoomSettings {
    fn default() -> Self {
        RoomSettings {
            description: String::new(),
            require_private_id: false,
            require_e2ee: false,
            publishers: 3,
            bitrate: 0,
            bitrate_cap: false,
            codecs: CodecSettings::default(),
            extensions: ExtensionSettings::default(),
            talk: RoomTalk::default(),
            keyframes: KeyframeSettings::default(),
            recording: RoomRecording::default(),
            notify_joining: false,
            dominant_speaker: false,
            dummy: None,
        }
    }
}

impl Default for CodecSettings {
    fn default() -> Self {
        CodecSettings {
            audio: vec![CodecName::Opus],
            video: vec![CodecName::Vp8],
            vp9_profile: None,
            h264_profile: None,
            opus_fec: true,
            opus_dtx: false,
        }
    }
}

impl Default for ExtensionSettings {
    fn default() -> Self {
        ExtensionSettings {
            audio_level: true,
            video_orientation: true,
            playout_delay: true,
            transport_cc: true,
        }
    }
}

impl Default for RoomTalk {
    fn default() -> Self {
        RoomTalk {
            notify: false,
            packets: 100,
            level: 25,
        }
    }
}

/// A placeholder publisher. It sends nothing; subscribers get m-lines from it that a switch gives
/// to later publishers without a negotiation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dummy {
    /// Its streams. Empty means one for each of the room's codecs.
    pub streams: Vec<DummyStream>,
    /// Whether it counts as encrypted end to end.
    pub e2ee: bool,
}

/// A stream of a placeholder publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DummyStream {
    /// Its codec.
    pub codec: CodecName,
    /// Its format parameters. `None` means those of the room.
    pub fmtp: Option<String>,
}

impl Dummy {
    /// The display name of placeholder publishers.
    pub(crate) const DISPLAY: &'static str = "Dummy publisher";
}
