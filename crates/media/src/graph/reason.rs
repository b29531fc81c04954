//! Why a route relays the layers that it does.

use portunus_rtc::bandwidth::Reason;

/// Why a route relays the layers that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerReason {
    /// What was chosen is relayed, and this is why it is no more.
    Chosen(Reason),
    /// Another encoding was chosen, but has not come lately.
    Silent,
    /// Other layers were chosen, and their keyframe is waited for.
    Keyframe,
}

impl LayerReason {
    const OWN: [&'static str; 2] = ["silent", "keyframe"];
    /// How many there are.
    pub(crate) const COUNT: usize = Reason::ALL.len() + Self::OWN.len();

    /// The words for all of them, by [`LayerReason::index`].
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Reason::ALL.into_iter().map(Reason::name).chain(Self::OWN)
    }

    /// Its place among all.
    pub(crate) const fn index(self) -> usize {
        match self {
            LayerReason::Chosen(reason) => reason as usize,
            LayerReason::Silent => Reason::ALL.len(),
            LayerReason::Keyframe => Reason::ALL.len() + 1,
        }
    }

    /// A word for it, as docs/bandwidth.md has it.
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
