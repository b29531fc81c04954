//! Chooses the layers that a viewer gets of each track.
//!
//! Audio comes first, then every video track in its lowest layer, even if that exceeds the link: a
//! track stops only if the client asks for it, or permits it for a link that does not carry the
//! lowest layer. The rest raises tracks step by step, the highest
//! priority first. A raise needs a margin and waits for its time. A queue on the way lowers tracks
//! at once.

mod allocate;
mod hysteresis;
mod ladder;
mod limit;
mod meter;
mod proven_rate;
mod share;

use super::DataRate;

pub use allocate::Allocator;
pub use meter::{LAYERS, LayerMeter, LayerRates, Layering};

/// The highest layers that are relayed of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// The simulcast encoding, 0 the lowest.
    pub encoding: u8,
    /// The spatial layer of SVC.
    pub spatial: u8,
    /// The temporal layer.
    pub temporal: u8,
}

impl Target {
    /// All layers.
    pub const ALL: Target = Target {
        encoding: 2,
        spatial: 2,
        temporal: 2,
    };

    /// Returns whether `other` is higher in some respect.
    fn is_below(self, other: Target) -> bool {
        self.encoding < other.encoding
            || self.spatial < other.spatial
            || self.temporal < other.temporal
    }
}

/// The kind of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackKind {
    /// Audio, which is always relayed.
    Audio,
    /// Video, whose layers are chosen.
    Video,
}

/// A track for a viewer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Track {
    /// The index of the m-line, which identifies the track.
    pub media: usize,
    /// The kind.
    pub kind: TrackKind,
    /// The priority. Higher ones come first.
    pub priority: u8,
    /// The rates that the source sends.
    pub rates: LayerRates,
    /// The highest layers that the client wants.
    pub most: Target,
    /// False if the client has paused the track.
    pub wanted: bool,
    /// Whether the track may pause while the link does not carry its lowest layer.
    pub pausable: bool,
    /// Whether the publisher has been asked to keep to what this viewer can receive
    /// ([`Decision::share`]).
    pub asked: bool,
}

/// The reason why a track is relayed as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Audio is always relayed.
    Audio,
    /// The client has paused the track.
    NotWanted,
    /// The source has not been measured yet.
    Unmeasured,
    /// The source does not send more.
    Best,
    /// The client does not want more.
    ClientBound,
    /// More would not fit the link.
    Bandwidth,
    /// Even this does not fit the link, but it is the lowest layer.
    Least,
    /// More would fit, but the last change was too recent, or a raise failed lately.
    Holding,
    /// A queue on the way is being emptied.
    EmptyingQueue,
    /// More would fit, but other tracks come first.
    Priority,
    /// The link does not carry even the lowest layer, and the track may pause.
    Paused,
}

impl Reason {
    /// All reasons, in their order.
    pub const ALL: [Reason; 11] = [
        Reason::Audio,
        Reason::NotWanted,
        Reason::Unmeasured,
        Reason::Best,
        Reason::ClientBound,
        Reason::Bandwidth,
        Reason::Least,
        Reason::Holding,
        Reason::EmptyingQueue,
        Reason::Priority,
        Reason::Paused,
    ];

    /// Returns the name for statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Audio => "audio",
            Reason::NotWanted => "not-wanted",
            Reason::Unmeasured => "unmeasured",
            Reason::Best => "best",
            Reason::ClientBound => "client-bound",
            Reason::Bandwidth => "bandwidth",
            Reason::Least => "least",
            Reason::Holding => "holding",
            Reason::EmptyingQueue => "emptying-queue",
            Reason::Priority => "priority",
            Reason::Paused => "paused",
        }
    }
}

/// A decision on a track.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The index of the track's m-line.
    pub media: usize,
    /// The layers to relay. `None` if the track is paused, by the client or by the link.
    pub target: Option<Target>,
    /// The expected rate.
    pub rate: DataRate,
    /// The reason.
    pub reason: Reason,
    /// Whether layers above the target are dropped at once, even if the video freezes until a
    /// keyframe of a lower encoding. They would add to a queue that is too long already.
    pub cut: bool,
    /// The most that the publisher of a single layer should send for this viewer. `None` if it is
    /// not limited.
    pub share: Option<DataRate>,
}
