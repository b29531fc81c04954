//! Which layers of its tracks a viewer gets.
//!
//! Audio first; then every video track in its lowest layer, even if that is more than the link carries:
//! a track goes black only if the client asks. What is left raises tracks step by step, the highest
//! priority first. A raise needs room to spare and waits for its time; a queue on the way lowers at once.

mod allocate;
mod hold;
mod ladder;
mod limit;
mod meter;
mod proven;
mod share;

use super::DataRate;

pub use allocate::Allocator;
pub use meter::{LAYERS, LayerMeter, LayerRates, Layering};

/// Layers up to which a track is relayed.
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
    /// Everything.
    pub const ALL: Target = Target {
        encoding: 2,
        spatial: 2,
        temporal: 2,
    };

    /// Whether another one is more in some respect.
    fn is_below(self, other: Target) -> bool {
        self.encoding < other.encoding
            || self.spatial < other.spatial
            || self.temporal < other.temporal
    }
}

/// What a track is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackKind {
    /// It always flows.
    Audio,
    /// Its layers are chosen.
    Video,
}

/// A track that a viewer is to get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Track {
    /// Index of the m-line: it tells tracks apart.
    pub media: usize,
    /// What it is.
    pub kind: TrackKind,
    /// The higher comes first.
    pub priority: u8,
    /// What its source sends.
    pub rates: LayerRates,
    /// The most that the client wants.
    pub most: Target,
    /// False if the client does not want the track at present.
    pub wanted: bool,
    /// The publisher has been asked to keep to what this viewer can take ([`Decision::share`]).
    pub asked: bool,
}

/// Why a track is relayed as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Audio always flows.
    Audio,
    /// The client does not want it at present.
    NotWanted,
    /// The source has not been measured yet.
    Unmeasured,
    /// It is all that the source sends.
    Best,
    /// The client does not want more.
    ClientBound,
    /// More would not fit the link.
    Bandwidth,
    /// Not even this fits the link, but it is the least there is.
    Least,
    /// More would fit, but the last change was too recent, or a raise failed lately.
    Holding,
    /// A queue on the way is being emptied.
    EmptyingQueue,
    /// More would fit, but others come first.
    Priority,
}

impl Reason {
    /// All of them, in their order.
    pub const ALL: [Reason; 10] = [
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
    ];

    /// A word for statistics.
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
        }
    }
}

/// What is to be done with a track.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The track's m-line.
    pub media: usize,
    /// What to relay; none if the client does not want the track.
    pub target: Option<Target>,
    /// What that is expected to take.
    pub rate: DataRate,
    /// Why.
    pub reason: Reason,
    /// What is above the target is not to be relayed any longer, even if that stops the picture until
    /// the keyframe of a lower encoding. It would add to a queue that is too long already.
    pub cut: bool,
    /// The most that the publisher of a single layer is to send for this viewer; none if it need not be
    /// asked for less.
    pub share: Option<DataRate>,
}
