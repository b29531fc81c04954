//! What a room is like.

use portunus_record::Format;
use portunus_sdp::{CodecName, Kind};

use crate::Refusal;

/// The settings of a room. A door has those of its own beside them: who may come in, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomSettings {
    /// What people call it.
    pub description: String,
    /// A subscription needs the private id of a participant, and is blocked when that one is thrown out.
    pub require_pvtid: bool,
    /// Only what is encrypted end to end may be published.
    pub require_e2ee: bool,
    /// The most publishers.
    pub publishers: u64,
    /// What each publisher may send, in bit/s; 0 means no cap.
    pub bitrate: u64,
    /// The cap is in the answer to the publisher, too.
    pub bitrate_cap: bool,
    /// Publishers are asked for a keyframe when none has come for so many seconds; 0 means never.
    pub fir_freq: u64,
    /// The codecs of audio, the preferred one first.
    pub audiocodec: Vec<CodecName>,
    /// The codecs of video, the preferred one first.
    pub videocodec: Vec<CodecName>,
    /// The profile of VP9, if there is to be one only.
    pub vp9_profile: Option<String>,
    /// The profile of H.264, if there is to be one only.
    pub h264_profile: Option<String>,
    /// Publishers may send Opus with forward error correction.
    pub opus_fec: bool,
    /// Publishers may send nothing while nobody speaks.
    pub opus_dtx: bool,
    /// Packets say how loud they are.
    pub audiolevel_ext: bool,
    /// All are told who talks.
    pub audiolevel_event: bool,
    /// The packets over which the level is averaged.
    pub audio_active_packets: u64,
    /// The average from which on somebody talks, in -dBov: 0 is the loudest, 127 silence.
    pub audio_level_average: u64,
    /// Packets say how the picture is turned.
    pub videoorient_ext: bool,
    /// Packets say how long the viewer shall delay them.
    pub playoutdelay_ext: bool,
    /// Transport-wide congestion control.
    pub transport_wide_cc_ext: bool,
    /// Whoever joins is recorded.
    pub record: bool,
    /// The folder of recordings; `None` means that of the server.
    pub rec_dir: Option<String>,
    /// The format of recordings; `None` means that of the server.
    pub record_format: Option<Format>,
    /// All are told who joins, before anything is published.
    pub notify_joining: bool,
    /// All are told who has the floor.
    pub dominant_speaker: bool,
    /// How long video is kept from a keyframe on, in ms, for new subscribers; 0 means not at all.
    pub bufferkf_ms: u64,
    /// The placeholder publisher, if there is one.
    pub dummy: Option<Dummy>,
}

impl RoomSettings {
    /// Checks that a publisher who is encrypted end to end, or is not, may be in the room.
    pub fn check_e2ee(&self, e2ee: bool) -> Result<(), Refusal> {
        match self.require_e2ee && !e2ee {
            true => Err(Refusal::E2eeNeeded),
            false => Ok(()),
        }
    }

    /// The codecs for media of `kind`, the preferred one first.
    pub fn codecs(&self, kind: Kind) -> &[CodecName] {
        match kind {
            Kind::Audio => &self.audiocodec,
            Kind::Video | Kind::Data => &self.videocodec,
        }
    }

    /// The profile of `codec`, if there is to be one only.
    pub(crate) fn profile(&self, codec: CodecName) -> Option<&str> {
        match codec {
            CodecName::Vp9 => self.vp9_profile.as_deref(),
            CodecName::H264 => self.h264_profile.as_deref(),
            _ => None,
        }
    }
}

impl Default for RoomSettings {
    fn default() -> Self {
        RoomSettings {
            description: String::new(),
            require_pvtid: false,
            require_e2ee: false,
            publishers: 3,
            bitrate: 0,
            bitrate_cap: false,
            fir_freq: 0,
            audiocodec: vec![CodecName::Opus],
            videocodec: vec![CodecName::Vp8],
            vp9_profile: None,
            h264_profile: None,
            opus_fec: true,
            opus_dtx: false,
            audiolevel_ext: true,
            audiolevel_event: false,
            audio_active_packets: 100,
            audio_level_average: 25,
            videoorient_ext: true,
            playoutdelay_ext: true,
            transport_wide_cc_ext: true,
            record: false,
            rec_dir: None,
            record_format: None,
            notify_joining: false,
            dominant_speaker: false,
            bufferkf_ms: 0,
            dummy: None,
        }
    }
}

/// The placeholder publisher of a room: it sends nothing, and holds the places of publishers who are still to come. Whoever
/// subscribes to it has m-lines that a switch gives to others later, without a negotiation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dummy {
    /// Its streams; empty means one for each of the room's codecs.
    pub streams: Vec<DummyStream>,
    /// It counts as encrypted end to end.
    pub e2ee: bool,
}

/// A stream of a placeholder publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DummyStream {
    /// Its codec.
    pub codec: CodecName,
    /// Its format parameters, if they are not those of the room.
    pub fmtp: Option<String>,
}

impl Dummy {
    /// The name that it shows.
    pub(crate) const DISPLAY: &'static str = "Dummy publisher";
}
