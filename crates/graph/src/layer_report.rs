//! The layers that a route relays, and why, as the control plane sees them.

use portunus_rtc::bandwidth::Reason;

/// The layers that a route relays. `None` where the stream has no such layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layer {
    /// Simulcast encoding, 0 the lowest.
    pub substream: Option<u8>,
    /// Spatial layer of an SVC stream.
    pub spatial: Option<u8>,
    /// Temporal layer.
    pub temporal: Option<u8>,
    /// The number of layers that the sender says it sends, if it says so and there is a choice.
    pub sent: Option<SentLayers>,
}

/// The number of layers that a sender says it sends (video-layers-allocation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentLayers {
    /// Spatial layers, of the encoding with the most.
    pub spatial: u8,
    /// Temporal layers, of the layer with the most.
    pub temporal: u8,
}

/// Why a route relays these layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerReason {
    /// The chosen layers are relayed. The reason says why no higher ones were chosen.
    Chosen(Reason),
    /// Another encoding was chosen, but it has been silent lately.
    Silent,
    /// Other layers were chosen, and the route waits for their keyframe.
    Keyframe,
}

impl LayerReason {
    const OWN: [&'static str; 2] = ["silent", "keyframe"];
    /// The number of reasons.
    pub const COUNT: usize = Reason::ALL.len() + Self::OWN.len();

    /// The names of all reasons, in the order of [`LayerReason::index`].
    pub fn names() -> impl Iterator<Item = &'static str> {
        Reason::ALL.into_iter().map(Reason::name).chain(Self::OWN)
    }

    /// The position of this reason among all reasons.
    pub const fn index(self) -> usize {
        match self {
            LayerReason::Chosen(reason) => reason as usize,
            LayerReason::Silent => Reason::ALL.len(),
            LayerReason::Keyframe => Reason::ALL.len() + 1,
        }
    }

    /// The name of the reason, as in docs/bandwidth.md.
    pub const fn name(self) -> &'static str {
        match self {
            LayerReason::Chosen(reason) => reason.name(),
            LayerReason::Silent => "silent",
            LayerReason::Keyframe => "keyframe",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_word_and_place() {
        let chosen = Reason::ALL.into_iter().map(LayerReason::Chosen);
        let all = chosen.chain([LayerReason::Silent, LayerReason::Keyframe]);
        for (place, (reason, name)) in all.zip(LayerReason::names()).enumerate() {
            assert_eq!((reason.index(), reason.name()), (place, name));
        }
    }
}
