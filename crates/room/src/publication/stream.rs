//! An m-line of a publisher.

use portunus_media::{KeyframeCache, KeyframeInterval, TalkDetection};
use portunus_record::Recording;
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind, OfferedFlags};

use super::forward::Forwarder;
use crate::delay::Delay;

/// An m-line of a publisher.
#[derive(Debug)]
pub struct Stream {
    /// The kind of media.
    pub kind: Kind,
    /// The m-line's identification.
    pub mid: Mid,
    /// Its place among the m-lines of the publisher.
    pub index: usize,
    /// It was rejected, or is not sent any more.
    pub disabled: bool,
    /// Its codec. `None` for data, and for what is disabled.
    pub codec: Option<CodecName>,
    /// The channels of audio, if they are not the codec's usual ones.
    pub channels: Option<u8>,
    /// What people call it.
    pub description: Option<String>,
    /// What Opus is sent with.
    pub opus: OfferedFlags,
    /// The format parameters, if the packets cannot be understood without them.
    pub fmtp: Option<String>,
    /// The profile of H.264.
    pub h264_profile: Option<String>,
    /// The profile of VP9.
    pub vp9_profile: Option<String>,
    /// It has several encodings.
    pub simulcast: bool,
    /// It has several spatial layers in one encoding.
    pub svc: bool,
    /// The numbers of its header extensions.
    pub extensions: ExtensionIds,
    /// The playout delay that its publisher asks for.
    pub(crate) delay: Delay,
    /// The publisher lets it out.
    pub(super) send: bool,
    /// A moderator does not let it out.
    pub moderated: bool,
    pub(super) talk: Listened,
    /// The media plane keeps it from its last keyframe on.
    pub(super) kept: Option<KeyframeCache>,
    /// When the media plane asks for keyframes of it.
    pub(super) asked_every: Option<KeyframeInterval>,
    pub(super) recording: Option<Recording>,
    pub(super) forwarders: Vec<Forwarder>,
}

/// The numbers of the header extensions that those who take the media over need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtensionIds {
    /// How loud the audio is (RFC 6464).
    pub audio_level: Option<u8>,
    /// How the picture is turned.
    pub video_orientation: Option<u8>,
    /// How long the viewer shall delay it.
    pub playout_delay: Option<u8>,
    /// The dependency descriptor of AV1.
    pub dependency_descriptor: Option<u8>,
}

/// What the audio level says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Listened {
    pub(super) talking: bool,
    /// The average at its last change, in -dBov.
    pub(super) level: Option<f64>,
    /// What the media plane was asked to listen for.
    pub(super) detection: Option<TalkDetection>,
    /// The media plane was asked to measure how much is spoken.
    pub(super) measured: bool,
}

impl Stream {
    /// A new m-line of a publisher, which is disabled.
    pub fn new(kind: Kind, mid: Mid, index: usize) -> Self {
        Stream {
            kind,
            mid,
            index,
            disabled: true,
            codec: None,
            channels: None,
            description: None,
            opus: OfferedFlags::default(),
            fmtp: None,
            h264_profile: None,
            vp9_profile: None,
            simulcast: false,
            svc: false,
            extensions: ExtensionIds::default(),
            delay: Delay::default(),
            send: true,
            moderated: false,
            talk: Listened::default(),
            kept: None,
            asked_every: None,
            recording: None,
            forwarders: Vec::new(),
        }
    }

    /// Whether its media is relayed.
    pub fn is_open(&self) -> bool {
        !self.disabled && self.send && !self.moderated
    }

    /// Whether it is audio that says how loud it is.
    pub fn has_levels(&self) -> bool {
        self.kind == Kind::Audio && !self.disabled && self.extensions.audio_level.is_some()
    }

    /// Whether somebody talks on it.
    pub const fn is_talking(&self) -> bool {
        self.talk.talking
    }

    /// How loud it was on average at its last change, in -dBov.
    pub const fn level(&self) -> Option<f64> {
        self.talk.level
    }

    /// The least and the greatest playout delay that its publisher asks for, in units of 10 ms.
    pub fn playout_delay(&self) -> Option<(u16, u16)> {
        self.delay.range()
    }
}
