//! RTP header extensions (RFC 8285): the known kinds, and the ids that were negotiated.

mod abs_capture_time;
mod abs_send_time;
mod audio_level;
pub mod dependency_descriptor;
mod element;
mod playout_delay;
mod transport_cc;
mod video_layers_allocation;
mod video_orientation;

use std::fmt;

pub use abs_capture_time::AbsCaptureTime;
pub use abs_send_time::AbsSendTime;
pub use audio_level::AudioLevel;
pub use dependency_descriptor::{
    DependencyDescriptor, DependencyReader, MandatoryFields, TargetsPlace, TemplateStructure,
};
pub use element::{ExtensionForm, Extensions};
pub use playout_delay::PlayoutDelay;
pub use transport_cc::TransportCc;
pub use video_layers_allocation::{AllocatedLayer, LayerFormat, VideoLayersAllocation};
pub use video_orientation::{Rotation, VideoOrientation};

/// The header extensions that the server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ExtensionKind {
    /// `urn:ietf:params:rtp-hdrext:sdes:mid`
    Mid,
    /// `urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id`
    Rid,
    /// `urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id`
    RepairedRid,
    /// `urn:ietf:params:rtp-hdrext:ssrc-audio-level`
    AudioLevel,
    /// `http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time`
    AbsSendTime,
    /// `http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01`
    TransportCc,
    /// `urn:3gpp:video-orientation`
    VideoOrientation,
    /// `http://www.webrtc.org/experiments/rtp-hdrext/playout-delay`
    PlayoutDelay,
    /// `https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension`
    DependencyDescriptor,
    /// `http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time`
    AbsCaptureTime,
    /// `http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00`
    VideoLayersAllocation,
}

impl ExtensionKind {
    /// All kinds, in the order of the server's offers.
    pub const ALL: [ExtensionKind; 11] = [
        ExtensionKind::Mid,
        ExtensionKind::Rid,
        ExtensionKind::RepairedRid,
        ExtensionKind::AudioLevel,
        ExtensionKind::AbsSendTime,
        ExtensionKind::TransportCc,
        ExtensionKind::VideoOrientation,
        ExtensionKind::PlayoutDelay,
        ExtensionKind::DependencyDescriptor,
        ExtensionKind::AbsCaptureTime,
        ExtensionKind::VideoLayersAllocation,
    ];

    /// Returns the URI of the extension in SDP.
    pub const fn uri(self) -> &'static str {
        match self {
            ExtensionKind::Mid => "urn:ietf:params:rtp-hdrext:sdes:mid",
            ExtensionKind::Rid => "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
            ExtensionKind::RepairedRid => "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
            ExtensionKind::AudioLevel => "urn:ietf:params:rtp-hdrext:ssrc-audio-level",
            ExtensionKind::AbsSendTime => {
                "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
            }
            ExtensionKind::TransportCc => {
                "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
            }
            ExtensionKind::VideoOrientation => "urn:3gpp:video-orientation",
            ExtensionKind::PlayoutDelay => {
                "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
            }
            ExtensionKind::DependencyDescriptor => {
                "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
            }
            ExtensionKind::AbsCaptureTime => {
                "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
            }
            ExtensionKind::VideoLayersAllocation => {
                "http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00"
            }
        }
    }

    /// Returns the extension with this URI, if it is known.
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.uri() == uri)
    }
}

/// The negotiated ids (1 to 255, RFC 8285 section 4) of extensions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtensionMap {
    ids: [u8; ExtensionKind::ALL.len()],
}

impl ExtensionMap {
    /// Sets the id of `kind`. 0 removes it. An id belongs to one kind only, the last one.
    pub fn set(&mut self, kind: ExtensionKind, id: u8) {
        for slot in &mut self.ids {
            if *slot == id {
                *slot = 0;
            }
        }
        if let Some(slot) = self.ids.get_mut(kind as usize) {
            *slot = id;
        }
    }

    /// Returns the id of `kind`, if it was negotiated.
    pub fn id(&self, kind: ExtensionKind) -> Option<u8> {
        self.ids.get(kind as usize).copied().filter(|id| *id != 0)
    }

    /// Returns the kind with this id.
    pub fn kind(&self, id: u8) -> Option<ExtensionKind> {
        self.iter().find(|(_, i)| *i == id).map(|(kind, _)| kind)
    }

    /// Returns all negotiated kinds with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (ExtensionKind, u8)> + '_ {
        ExtensionKind::ALL
            .into_iter()
            .filter_map(|kind| Some((kind, self.id(kind)?)))
    }
}

/// A set of extension kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtensionSet(u16);

impl ExtensionSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// The set of all kinds.
    pub const ALL: Self = Self(u16::MAX);

    /// Adds a kind.
    pub fn insert(&mut self, kind: ExtensionKind) {
        self.0 |= 1 << kind as u8;
    }

    /// Returns whether both sets have a kind in common.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<ExtensionKind> for ExtensionSet {
    fn from_iter<I: IntoIterator<Item = ExtensionKind>>(kinds: I) -> Self {
        let mut set = Self::EMPTY;
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}

impl fmt::Debug for ExtensionMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
