//! The RTX payload types (RFC 4588) in this side's offers.

use portunus_rtp::Pt;

use crate::codecs::CodecSpec;
use crate::description::Media;
use crate::media_lines::PtSet;

/// The repairs of payload types: the same on all m-lines and in all offers.
#[derive(Debug, Clone, Default)]
pub(crate) struct RtxNumbers {
    /// Payload types: of the media, of the repair.
    pairs: Vec<(Pt, Pt)>,
}

impl RtxNumbers {
    /// Assigns a free number to each repairable codec of `media`, the next one if it is free.
    pub(crate) fn propose(&mut self, media: &[Media]) {
        let codecs = || media.iter().flat_map(|line| &line.codecs);
        let mut taken: PtSet = codecs().map(|codec| codec.pt).collect();
        self.pairs.retain(|(_, repair)| !taken.contains(*repair));
        self.pairs
            .iter()
            .for_each(|(_, repair)| taken.insert(*repair));
        // Codecs whose next number is free get it. The others share the rest.
        for next_only in [true, false] {
            for codec in codecs().filter(|codec| repairable(codec)) {
                if self.number(codec).is_some() {
                    continue;
                }
                let next = codec.pt.0.checked_add(1).filter(|pt| is_dynamic(*pt));
                let others = (96..=127).chain(35..=63).filter(|_| !next_only);
                let mut numbers = next.into_iter().chain(others).map(Pt);
                if let Some(free) = numbers.find(|pt| !taken.contains(*pt)) {
                    taken.insert(free);
                    self.pairs.push((codec.pt, free));
                }
            }
        }
    }

    /// Returns the pairs for the codecs of `media`, in their order.
    pub(crate) fn of(&self, media: &Media) -> Vec<(Pt, Pt)> {
        let codecs = media.codecs.iter().filter(|codec| repairable(codec));
        codecs
            .filter_map(|codec| Some((codec.pt, self.number(codec)?)))
            .collect()
    }

    fn number(&self, codec: &CodecSpec) -> Option<Pt> {
        self.pairs
            .iter()
            .find(|(pt, _)| *pt == codec.pt)
            .map(|(_, repair)| *repair)
    }
}

/// Returns whether a codec is repairable. Retransmissions are for video, since those of audio
/// arrive too late.
fn repairable(codec: &CodecSpec) -> bool {
    codec.clock_rate == 90_000 && codec.has_feedback("nack")
}

/// Returns whether a number is free for dynamic use. 64 to 95 would be mistaken for RTCP (RFC 5761
/// section 4).
fn is_dynamic(pt: u8) -> bool {
    matches!(pt, 35..=63 | 96..=127)
}
