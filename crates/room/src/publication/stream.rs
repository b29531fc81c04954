//! An m-line of a publisher.

use portunus_media::{KeyframeCache, KeyframeInterval, TalkDetection};
use portunus_record::Recording;
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind, OfferedFlags};

use super::forwarders::Forwarder;
use crate::delay::Delay;

/// An m-line of a publisher.
#[derive(Debug)]
pub struct Stream {
    /// The kind of media.
    pub kind: Kind,
    /// The m-line's identification.
    pub mid: Mid,
    /// The index of the m-line in the publisher's description.
    pub index: usize,
    /// Whether the m-line was rejected, or is not sent any more.
    pub disabled: bool,
    /// The stream's name for people.
    pub description: Option<String>,
    /// The negotiated format.
    pub format: StreamFormat,
    /// The playout delay that the publisher asks for.
    pub(crate) delay: Delay,
    pub(super) gate: Gate,
    pub(super) audio: AudioLevel,
    pub(super) keyframes: Keyframes,
    pub(super) recording: Option<Recording>,
    pub(super) forwarders: Vec<Forwarder>,
    /// The highest layer that anybody at other nodes can see.
    pub(crate) far_layer: Option<u8>,
}

/// The format of a stream, as its publisher has negotiated it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamFormat {
    /// The codec. `None` for data, and for a disabled stream.
    pub codec: Option<CodecName>,
    /// The number of audio channels, if it is not the codec's usual one.
    pub channels: Option<u8>,
    /// The Opus features in use.
    pub opus: OfferedFlags,
    /// Whether Opus may come with redundancy (RFC 2198).
    pub red: bool,
    /// The format parameters, if a receiver cannot decode the packets without them.
    pub fmtp: Option<String>,
    /// The profile of H.264.
    pub h264_profile: Option<String>,
    /// The profile of VP9.
    pub vp9_profile: Option<String>,
    /// Whether the stream has several encodings.
    pub simulcast: bool,
    /// Whether its single encoding has several spatial layers.
    pub svc: bool,
    /// The ids of its header extensions.
    pub extensions: ExtensionIds,
}

/// The ids of the header extensions that receivers need to know. `None` if not negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtensionIds {
    /// The audio level (RFC 6464).
    pub audio_level: Option<u8>,
    /// The video orientation.
    pub video_orientation: Option<u8>,
    /// The playout delay.
    pub playout_delay: Option<u8>,
    /// The dependency descriptor of AV1.
    pub dependency_descriptor: Option<u8>,
}

/// The layers of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layering {
    /// One encoding with one spatial layer.
    Single,
    /// Several encodings.
    Simulcast,
    /// One encoding with several spatial layers.
    Svc,
}

impl StreamFormat {
    pub(crate) const fn layering(&self) -> Layering {
        match (self.simulcast, self.svc) {
            (true, _) => Layering::Simulcast,
            (false, true) => Layering::Svc,
            (false, false) => Layering::Single,
        }
    }
}

/// The publisher's and the moderator's switch of a stream. Both have to be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gate {
    /// Whether the publisher sends the stream.
    pub(super) send: bool,
    /// Whether a moderator has muted it.
    pub(super) muted: bool,
}

/// The audio level of a stream, and how the media plane was asked to watch it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct AudioLevel {
    pub(super) talking: bool,
    /// The average at the last change of `talking`, in -dBov.
    pub(super) average: Option<f64>,
    pub(super) monitor: AudioMonitor,
}

/// The measurements that the media plane takes of a stream of audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct AudioMonitor {
    /// When its publisher counts as talking. `None` if that is not detected.
    pub(super) talking: Option<TalkDetection>,
    /// Whether its share of speech is measured.
    pub(super) speech: bool,
}

/// The keyframe handling that the media plane was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Keyframes {
    /// The cache from the last keyframe on.
    pub(super) cache: Option<KeyframeCache>,
    /// The interval of keyframe requests.
    pub(super) interval: Option<KeyframeInterval>,
}

impl Stream {
    /// Returns a new m-line of a publisher. It is disabled.
    pub fn new(kind: Kind, mid: Mid, index: usize) -> Self {
        Stream {
            kind,
            mid,
            index,
            disabled: true,
            description: None,
            format: StreamFormat::default(),
            delay: Delay::default(),
            gate: Gate {
                send: true,
                muted: false,
            },
            audio: AudioLevel::default(),
            keyframes: Keyframes::default(),
            recording: None,
            forwarders: Vec::new(),
            far_layer: None,
        }
    }

    /// Returns whether it is sent to other servers or programs.
    pub(crate) fn is_forwarded(&self) -> bool {
        !self.forwarders.is_empty()
    }

    /// Returns whether its media is relayed.
    pub fn is_open(&self) -> bool {
        !self.disabled && self.gate.send && !self.gate.muted
    }

    /// Returns whether its publisher sends it.
    pub const fn is_sent(&self) -> bool {
        self.gate.send
    }

    /// Returns whether a moderator has muted it.
    pub const fn is_moderated(&self) -> bool {
        self.gate.muted
    }

    /// Returns whether it is audio with the audio level extension.
    pub fn has_levels(&self) -> bool {
        let levels = self.format.extensions.audio_level;
        self.kind == Kind::Audio && !self.disabled && levels.is_some()
    }

    /// Returns whether its publisher talks.
    pub const fn is_talking(&self) -> bool {
        self.audio.talking
    }

    /// Returns its average level at the last change of [`Self::is_talking`], in -dBov.
    pub const fn level(&self) -> Option<f64> {
        self.audio.average
    }

    /// Returns the least and the greatest playout delay that its publisher asks for, in 10 ms.
    pub fn playout_delay(&self) -> Option<(u16, u16)> {
        self.delay.range()
    }
}
