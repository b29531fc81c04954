//! Packets for a gap (RFC 7845 section 4.1).

use super::OpusTime;
use super::packet::{CeltFrame, MAX_DURATION, Toc};

/// The length that a decoder conceals, as it would in a live stream: that of pauses in
/// discontinuous transmission. The rest of a gap is silent.
const CONCEALED: OpusTime = OpusTime(19_200);

/// The shortest frame. A shorter gap cannot be filled.
const SHORTEST: OpusTime = OpusTime(120);

/// A silent frame of CELT mode.
const SILENCE: [u8; 2] = [0xff, 0xfe];

/// The content of a gap's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    /// No bytes, so that the decoder conceals.
    Concealed,
    Silent,
}

/// A gap that is filled packet by packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// The first byte of the packet before it.
    before: Toc,
    left: OpusTime,
    /// The part that is concealed.
    concealed: OpusTime,
}

impl Gap {
    /// Returns a gap of this length after a packet that starts with `before`.
    pub(crate) fn new(before: Toc, length: OpusTime) -> Self {
        Self::going_on(before, OpusTime(0), length)
    }

    /// Returns the rest of a gap that is partly filled.
    pub(crate) fn going_on(before: Toc, filled: OpusTime, length: OpusTime) -> Self {
        Self {
            before,
            left: length,
            concealed: length.min(CONCEALED.since(filled)),
        }
    }
}

/// Returns its packets with their durations. The rest at the end is shorter than any frame.
impl Iterator for Gap {
    type Item = (Vec<u8>, OpusTime);

    fn next(&mut self) -> Option<Self::Item> {
        let concealing = (self.concealed, self.before, Fill::Concealed);
        let briefly = (self.concealed, self.before.briefest(), Fill::Concealed);
        let silent = (self.left, self.before.celt(CeltFrame::Long), Fill::Silent);
        let short = (self.left, self.before.celt(CeltFrame::Short), Fill::Silent);
        let (packet, length) = [concealing, briefly, silent, short]
            .into_iter()
            .find_map(|(length, toc, fill)| frames(toc, length, fill))?;
        self.left = self.left.since(length);
        self.concealed = self.concealed.since(length);
        Some((packet, length))
    }
}

/// Returns a packet of as many frames as fit into `length`, at most 120 ms.
fn frames(toc: Toc, length: OpusTime, fill: Fill) -> Option<(Vec<u8>, OpusTime)> {
    let frame = toc.frame();
    debug_assert!(frame >= SHORTEST);
    let count = length.min(MAX_DURATION).0.checked_div(frame.0)?;
    let in_byte = u8::try_from(count).ok().filter(|count| *count > 0)?;
    let mut packet = vec![toc.of_many().0, in_byte];
    if fill == Fill::Silent {
        packet.extend(SILENCE.into_iter().cycle().take(usize::from(in_byte) * 2));
    }
    Some((packet, OpusTime(frame.0 * count)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use proptest::prelude::*;

    use super::super::packet_duration;
    use super::*;

    proptest! {
        #[test]
        fn a_gap_is_filled_but_for_less_than_a_frame(before in any::<u8>(), length in 0..200_000_u64) {
            let mut filled = 0;
            for (packet, length) in Gap::new(Toc(before), OpusTime(length)) {
                prop_assert_eq!(packet_duration(&packet), Some(length));
                prop_assert_eq!(packet.first().unwrap() & 4, before & 4);
                filled += length.0;
            }
            prop_assert_eq!(filled, length / SHORTEST.0 * SHORTEST.0);
        }
    }

    #[test]
    fn a_short_gap_is_concealed_and_a_long_one_falls_silent() {
        let mut gap = Gap::new(Toc(0xf8), OpusTime(960));
        assert_eq!(gap.next().unwrap().0, [0xfb, 1]);
        assert_eq!(gap.next(), None);
        let mut concealed = 0;
        for (packet, length) in Gap::new(Toc(0x4c), OpusTime(48_000)) {
            match packet.len() {
                2 => concealed += length.0,
                _ => assert_eq!(packet.first(), Some(&0xff)),
            }
        }
        assert_eq!(concealed, 19_200);
    }
}
